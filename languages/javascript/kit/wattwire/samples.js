'use strict';
// Records in memory during the window, and their file after it (C-24 to C-26).
const fs = require('node:fs');

const ROLES = ['publisher', 'subscriber', 'server', 'client', '', '', 'ping', 'pong'];
const MAGIC = Buffer.from('WATTWIRE').readBigUInt64LE();
const [HEADER_WORDS, RECORD_WORDS] = [8, 5];

class Samples {
  constructor(capacity) {
    Object.assign(this, { capacity, recorded: 0, overflow: 0 });
    // Filled, so that no page fault falls into the window.
    this.words = new BigUint64Array(HEADER_WORDS + capacity * RECORD_WORDS).fill(1n);
  }

  /** The fields of C-25: `seq` is a BigInt, times are Numbers. */
  add(seq, intendedNs, beginNs, endNs, bytes, peer, kind, flags) {
    const at = HEADER_WORDS + this.recorded * RECORD_WORDS;
    if (at === this.words.length) {
      this.overflow += 1;
      return;
    }
    this.recorded += 1;
    this.words[at] = seq;
    this.words[at + 1] = BigInt(intendedNs);
    this.words[at + 2] = BigInt(beginNs);
    this.words[at + 3] = BigInt(endNs);
    this.words[at + 4] = BigInt(bytes + peer * 2 ** 32) | (BigInt(kind + 256 * flags) << 48n);
  }

  /** `role` is the number of C-24, or its name. */
  write(path, role, node, seed) {
    const kinds = 1n | (64n << 16n) | (40n << 32n) | (BigInt(ROLES.indexOf(role)) << 48n);
    const header = [MAGIC, kinds | (1n << 56n), node, this.recorded, this.overflow, seed, 0, 0];
    this.words.set(header.map(BigInt));
    fs.writeFileSync(path, this.words.subarray(0, HEADER_WORDS + this.recorded * RECORD_WORDS));
  }
}

module.exports = { Samples, ROLES };
