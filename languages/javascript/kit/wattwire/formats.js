'use strict';
// Payloads, records, replies and sample files (C-17 to C-26, C-32).
const fs = require('node:fs');
const { isDeepStrictEqual } = require('node:util');

const UNKNOWN_NS = -(2 ** 63);
const UNREAD = { seq: null, sendNs: UNKNOWN_NS, bytes: 0 };
const [OK, CORRUPT, FOREIGN] = [0, 8, -1]; // CORRUPT is the record's flag
const ALPHABET = Buffer.from('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_');
const ROLES = ['publisher', 'subscriber', 'server', 'client', '', '', 'ping', 'pong'];

/** The first words of the fill (C-19). */
function fillWords(seed, count) {
  let state = BigInt(seed);
  return new BigUint64Array(count).map(() => {
    state = BigInt.asUintN(64, state + 0x9e3779b97f4a7c15n);
    let z = BigInt.asUintN(64, (state ^ (state >> 30n)) * 0xbf58476d1ce4e5b9n);
    z = BigInt.asUintN(64, (z ^ (z >> 27n)) * 0x94d049bb133111ebn);
    return z ^ (z >> 31n);
  });
}

/** The first bytes of the fill, or its characters (C-20). Hosts of Node.js are little-endian. */
function fill(seed, count, isText) {
  const stream = Buffer.from(fillWords(seed, Math.ceil(count / 8)).buffer, 0, count);
  return isText ? stream.map((byte) => ALPHABET[byte % 64]) : stream;
}

/** Bytes, characters or a literal, in Buffers. */
function payloadShape(spec) {
  const literal = spec['payload.literal'];
  const isText = spec['payload.encoding'] === 'text';
  const isFull = spec.verify === 'full';
  const seqBytes = isText ? 16 : 8;
  const template = literal ? Buffer.from(literal) : Buffer.alloc(spec['payload.bytes']);
  const bytes = template.length;
  const fillAt = 2 * seqBytes;
  const fillEnd = bytes - (bytes < 3 * seqBytes || literal ? 0 : seqBytes);
  if (!literal) fill(spec['payload.seed'], fillEnd - fillAt, isText).copy(template, fillAt);
  const header = Buffer.alloc(16);
  const isFill = (data, end) => end <= fillAt || !data.compare(template, fillAt, end, fillAt, end);
  return {
    bytes, isSame: (found, due) => due.equals(found),
    replyLiteral: Buffer.from(spec['reply.literal']),
    ack: (request) => request.subarray(0, seqBytes),
    isOurs: (data) => isFill(data, Math.min(fillAt + 8, fillEnd, data.length)),
    isIntact: (data) => (literal ? data.equals(template) : data.length === bytes
      && !data.compare(data, 0, bytes - fillEnd, fillEnd) && (!isFull || isFill(data, fillEnd))),
    read(data) {
      const head = isText ? Buffer.from(data.toString('latin1', 0, 32), 'hex') : data;
      if (literal || head.length < 16) return { ...UNREAD, bytes: data.length };
      const [seq, sendNs] = [head.readBigUInt64LE(), Number(head.readBigInt64LE(8))];
      return { seq, sendNs, bytes: data.length };
    },
    stamp(seq, sendNs, old) {
      const message = old ?? Buffer.from(template);
      if (literal) return message;
      header.writeBigUInt64LE(seq);
      header.writeBigInt64LE(BigInt(sendNs), 8);
      message.write(header.toString(isText ? 'hex' : 'latin1'), 'latin1');
      message.copy(message, fillEnd, 0, bytes - fillEnd);
      return message;
    },
  };
}

const poseOf = ([x, y, z, ox, oy, oz, w]) => (
  { position: { x, y, z }, orientation: { x: ox, y: oy, z: oz, w } });

/** Whether a decoded arrival has the names and types of C-32. */
function isRecord(found) {
  const isSeq = (text) => /^[0-9]{1,20}$/.test(text) && BigInt(text) < 2n ** 64n;
  const isUint32 = (value) => value === value >>> 0;
  try {
    const { header, name, pose: { position: p, orientation: o }, samples, trailer } = found;
    return isSeq(header.seq) && isSeq(trailer.seq) && /^-?[0-9]{1,19}$/.test(header.send_ns)
      && typeof name === 'string' && [p.x, p.y, p.z, o.x, o.y, o.z, o.w].every(Number.isFinite)
      && samples.every((s) => isUint32(s.id) && isUint32(s.state) && Number.isFinite(s.value));
  } catch {
    return false; // a part of it is missing, or no object
  }
}

/** Plain objects of C-32's names; seq and send_ns are strings of digits. */
function recordShape(spec) {
  const words = fillWords(spec['payload.seed'], Math.floor((spec['payload.bytes'] - 96) / 16) + 9);
  const values = Array.from(words, (word) => Number(BigInt.asIntN(32, word >> 32n)) / 1024);
  const makeSample = (word, id) => ({ id, state: Number(word & 255n), value: values[9 + id] });
  const samples = Array.from(words.subarray(9), makeSample);
  const isSample = ({ id, state, value }, i) => (
    id === i && state === samples[i].state && value === samples[i].value);
  const name = fill(spec['payload.seed'], 16, true).toString();
  const pose = poseOf(values.slice(2));
  const make = (seq, send_ns) => (
    { header: { seq, send_ns }, name, pose, samples, trailer: { seq } });
  const blank = { ...make('0', '0'), name: '', pose: poseOf(Array(7).fill(0)), samples: [] };
  return {
    bytes: 96 + 16 * samples.length,
    replyLiteral: { ...blank, name: spec['reply.literal'] },
    ack: ({ header, trailer }) => ({ ...blank, header, trailer }),
    stamp: (seq, sendNs) => make(String(seq), String(sendNs)),
    isSame: isDeepStrictEqual, isOurs: (found) => found.name === name,
    isIntact: (found) => found.samples.length === samples.length
      && found.trailer.seq === found.header.seq && (spec.verify !== 'full'
      || (isDeepStrictEqual(found.pose, pose) && found.samples.every(isSample))),
    read(found) {
      if (!isRecord(found)) return UNREAD;
      const { header: { seq, send_ns }, samples: { length } } = found;
      return { seq: BigInt(seq), sendNs: Number(send_ns), bytes: 96 + 16 * length };
    },
  };
}

/** Messages of one run; `nodes` are those whose arrivals are this run's. */
function messagesOf(spec, nodes) {
  const shape = (spec['payload.encoding'] === 'record' ? recordShape : payloadShape)(spec);
  const { reply: kind, 'payload.literal': literal } = spec;
  const replies = { echo: (request) => request, ack: shape.ack, literal: () => shape.replyLiteral };
  /** { seq (null: unreadable), sendNs, bytes, verdict } by C-21. */
  const arrival = (data) => {
    const found = { ...shape.read(data), verdict: CORRUPT };
    const isReadable = found.seq !== null;
    if (isReadable && !(nodes.includes(Number(found.seq >> 48n)) && shape.isOurs(data)))
      found.verdict = FOREIGN;
    else if ((isReadable || literal) && shape.isIntact(data)) found.verdict = OK;
    return found;
  };
  const isDue = (reply, message, seq) => {
    if (kind !== 'echo' || literal) return shape.isSame(reply, replies[kind](message));
    const found = arrival(reply);
    return found.verdict === OK && found.seq === seq;
  };
  return { ...shape, literal, arrival, isDue, reply: replies[kind] };
}

/** Records in memory during the window, and their file after it (C-24 to C-26). */
class Samples {
  constructor(capacity) {
    Object.assign(this, { capacity, recorded: 0, overflow: 0 });
    this.words = new BigUint64Array(8 + 5 * capacity).fill(1n); // now, and no page fault later
  }
  /** A record of five words (C-25): `seq` is a BigInt, times are Numbers. */
  add({ seq, intendedNs = UNKNOWN_NS, beginNs, bytes }, peer, endNs, kind, flags) {
    const last = BigInt(bytes + peer * 2 ** 32) | (BigInt(kind + 256 * flags) << 48n);
    const record = [seq, BigInt(intendedNs), BigInt(beginNs), BigInt(endNs), last];
    if (this.recorded === this.capacity) this.overflow += 1;
    else this.words.set(record, 8 + 5 * this.recorded++);
  }
  write(path, role, node, seed) {
    const form = 1n | (64n << 16n) | (40n << 32n) | (BigInt(ROLES.indexOf(role) + 256) << 48n);
    const header = [Buffer.from('WATTWIRE').readBigUInt64LE(), form, node, this.recorded];
    this.words.set([...header, this.overflow, seed, 0, 0].map(BigInt));
    fs.writeFileSync(path, this.words.subarray(0, 8 + 5 * this.recorded));
  }
}

module.exports = { messagesOf, Samples, ROLES, UNKNOWN_NS, OK, CORRUPT, FOREIGN };
