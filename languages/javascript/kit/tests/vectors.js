'use strict';
// Answers the questions of tests/toolchains/test_kits.py about the kit, one line for each line.
// Byte strings are hexadecimal; "-" is an empty value.

const fs = require('node:fs');
const { now } = require('../wattwire');
const { messagesOf } = require('../wattwire/kit');
const { Arrival, CORRUPT, OK } = require('../wattwire/messages');
const { Samples } = require('../wattwire/samples');
const { readSpec } = require('../wattwire/spec');

const VERDICTS = { [OK]: 'ok', [CORRUPT]: 'corrupt' };

const nodeOf = (seq) => Number(BigInt(seq) >> 48n);
const counterOf = (seq) => Number(BigInt.asUintN(48, BigInt(seq)));

function shape(encoding, bytes, seed, node, verify) {
  const spec = {
    payloadEncoding: encoding,
    payloadBytes: Number(bytes),
    payloadSeed: BigInt(seed),
    payloadLiteral: '',
    reply: 'echo',
    replyLiteral: '',
    verify,
  };
  return messagesOf(spec, [Number(node)]);
}

function stamped(messages, seq, sendNs) {
  const message = messages.stamp(0, 1, 2); // the next stamp must overwrite this one
  return messages.stamp(nodeOf(seq), counterOf(seq), Number(sendNs), message);
}

function verdict(messages, message) {
  const arrival = new Arrival();
  const name = VERDICTS[messages.check(message, arrival)] ?? 'foreign';
  const seq = (BigInt(arrival.node) << 48n) | BigInt(arrival.counter);
  return `${name} ${arrival.isReadable ? seq : '-'}`;
}

function decoded(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function add(samples, seq, intendedNs, beginNs, endNs, bytes, peer, kind, flags) {
  const message = { node: nodeOf(seq), counter: counterOf(seq), intendedNs, beginNs, bytes };
  samples.add(message, endNs, peer, kind, flags);
}

const answers = {
  clock: () => now(),
  payload(seed, seq, sendNs, encoding, bytes) {
    return stamped(shape(encoding, bytes, seed, 0, 'full'), seq, sendNs).toString('hex');
  },
  check(seed, encoding, bytes, node, verify, hex) {
    const messages = shape(encoding, bytes, seed, node, verify);
    return verdict(messages, Buffer.from(hex.replace('-', ''), 'hex'));
  },
  record(seed, seq, sendNs, bytes) {
    return JSON.stringify(stamped(shape('record', bytes, seed, 0, 'full'), seq, sendNs));
  },
  'check-record'(seed, bytes, node, verify, hex) {
    const text = Buffer.from(hex.replace('-', ''), 'hex').toString();
    return verdict(shape('record', bytes, seed, node, verify), decoded(text));
  },
  samples(path, role, node, seed, capacity, ...numbers) {
    const samples = new Samples(Number(capacity));
    for (let at = 0; at + 7 < numbers.length; at += 8) {
      add(samples, numbers[at], ...numbers.slice(at + 1, at + 8).map(Number));
    }
    samples.write(path, Number(role), Number(node), Number(seed));
    return `${samples.recorded} ${samples.overflow}`;
  },
  spec(path) {
    try {
      readSpec(path);
      return 'ok';
    } catch (error) {
      if (error.exitCode === 2) return error.key;
      throw error;
    }
  },
};

for (const line of fs.readFileSync(0, 'utf8').split('\n').filter(Boolean)) {
  const [question, ...words] = line.split(' ');
  process.stdout.write(`${answers[question](...words)}\n`);
}
