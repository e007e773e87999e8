'use strict';
// The fill of payloads and records (C-19, C-20), which depends only on the seed.

const ALPHABET = Buffer.from('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_');

const wrap = (value) => BigInt.asUintN(64, value);

/** Returns the first `count` words of splitmix64. */
function fillWords(seed, count) {
  const words = new BigUint64Array(count);
  let state = BigInt(seed);
  for (let index = 0; index < count; index += 1) {
    state = wrap(state + 0x9e3779b97f4a7c15n);
    let word = state;
    word = wrap((word ^ (word >> 30n)) * 0xbf58476d1ce4e5b9n);
    word = wrap((word ^ (word >> 27n)) * 0x94d049bb133111ebn);
    words[index] = word ^ (word >> 31n);
  }
  return words;
}

/** Returns the first `count` bytes; all hosts that Node.js supports are little-endian. */
function fillBytes(seed, count) {
  return Buffer.from(fillWords(seed, Math.ceil(count / 8)).buffer, 0, count);
}

/** Returns the first `count` characters. */
function fillText(seed, count) {
  return fillBytes(seed, count).map((byte) => ALPHABET[byte % ALPHABET.length]);
}

module.exports = { fillBytes, fillText, fillWords };
