'use strict';
// Answers questions about the kit, a line each: tests/toolchains/test_kits.py has the questions.
// Byte strings are hexadecimal; "-" stands for none.

const fs = require('node:fs');
const { now, readSpec } = require('../wattwire');
const { messagesOf, Samples, ROLES, OK, CORRUPT } = require('../wattwire/formats');

function shape(encoding, bytes, seed, node, verify) {
  const spec = { 'payload.encoding': encoding, 'payload.bytes': Number(bytes), verify };
  Object.assign(spec, { 'payload.seed': BigInt(seed), 'payload.literal': '' });
  return messagesOf({ ...spec, reply: 'echo', 'reply.literal': '' }, [Number(node)]);
}

function stamped(made, seq, sendNs) {
  const old = made.stamp(1n, 2, null); // what stood there before must not shine through
  return made.stamp(BigInt(seq), Number(sendNs), old);
}

function verdict(made, message) {
  const found = made.arrival(message);
  return `${{ [OK]: 'ok', [CORRUPT]: 'corrupt' }[found.verdict] ?? 'foreign'} ${found.seq ?? '-'}`;
}

function decoded(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function add(samples, seq, intendedNs, beginNs, endNs, bytes, peer, kind, flags) {
  samples.add({ seq, intendedNs, beginNs, bytes }, peer, endNs, kind, flags);
}

const answers = {
  clock: () => now(),
  payload(seed, seq, sendNs, encoding, bytes) {
    return stamped(shape(encoding, bytes, seed, 0, 'full'), seq, sendNs).toString('hex');
  },
  check(seed, encoding, bytes, node, verify, hex) {
    const made = shape(encoding, bytes, seed, node, verify);
    return verdict(made, Buffer.from(hex.replace('-', ''), 'hex'));
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
    for (let at = 0; at + 7 < numbers.length; at += 8)
      add(samples, BigInt(numbers[at]), ...numbers.slice(at + 1, at + 8).map(Number));
    samples.write(path, ROLES[role], Number(node), BigInt(seed));
    return `${samples.recorded} ${samples.overflow}`;
  },
  spec(path) {
    try {
      readSpec(path, {});
      return 'ok';
    } catch (error) {
      if (error.exitCode === 2) return error.key;
      throw error;
    }
  },
};

for (const line of fs.readFileSync(0, 'utf8').split('\n').filter(Boolean)) {
  const [question, ...given] = line.split(' ');
  process.stdout.write(`${answers[question](...given)}\n`);
}
