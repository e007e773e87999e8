'use strict';
// Payloads, records and replies (C-17 to C-23, C-32).
const { isDeepStrictEqual } = require('node:util');

const UNKNOWN_NS = -(2 ** 63);
const [OK, CORRUPT, FOREIGN] = [0, 8, -1]; // CORRUPT is the record's flag
const ALPHABET = Buffer.from('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_');

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

/** What both shapes share; `nodes` are those whose arrivals are this run's. */
class Shape {
  constructor(spec, nodes) {
    Object.assign(this, { nodes, replyKind: spec.reply, isFull: spec.verify === 'full' });
  }

  /** { seq (null: unreadable), sendNs, bytes, verdict } by C-21. */
  arrival(data) {
    const found = { seq: null, sendNs: UNKNOWN_NS, bytes: 0, verdict: CORRUPT };
    this.readHeader(data, found);
    const isOurs = found.seq === null
      || (this.nodes.includes(Number(found.seq >> 48n)) && this.isOurs(data));
    if (!isOurs) found.verdict = FOREIGN;
    else if ((this.literal || found.seq !== null) && this.isIntact(data)) found.verdict = OK;
    return found;
  }

  /** The reply to a request (C-23). */
  reply(request) {
    if (this.replyKind === 'echo') return request;
    return this.replyKind === 'ack' ? this.ack(request) : this.replyLiteral;
  }

  /** Whether this reply is due to this message. */
  isDue(reply, message, seq) {
    if (this.replyKind !== 'echo' || this.literal)
      return isDeepStrictEqual(reply, this.reply(message));
    const found = this.arrival(reply);
    return found.verdict === OK && found.seq === seq;
  }
}

/** Bytes, characters or a literal, in Buffers. */
class PayloadShape extends Shape {
  constructor(spec, nodes) {
    super(spec, nodes);
    this.replyLiteral = Buffer.from(spec['reply.literal']);
    this.literal = spec['payload.literal'];
    this.isText = spec['payload.encoding'] === 'text';
    this.seqBytes = this.isText ? 16 : 8;
    this.header = Buffer.alloc(16);
    this.template = this.literal ? Buffer.from(this.literal) : Buffer.alloc(spec['payload.bytes']);
    this.bytes = this.fillEnd = this.template.length;
    this.fillAt = 2 * this.seqBytes;
    if (this.literal) return;
    if (this.bytes >= 3 * this.seqBytes) this.fillEnd -= this.seqBytes;
    const stream = fill(spec['payload.seed'], this.fillEnd - this.fillAt, this.isText);
    stream.copy(this.template, this.fillAt);
  }

  /** What is sent: `old`, where the same worker's last message may be rewritten. */
  stamp(old, seq, sendNs) {
    const message = old ?? Buffer.from(this.template);
    if (this.literal) return message;
    this.header.writeBigUInt64LE(seq);
    this.header.writeBigInt64LE(BigInt(sendNs), 8);
    message.write(this.header.toString(this.isText ? 'hex' : 'latin1'), 'latin1');
    message.copy(message, this.fillEnd, 0, this.bytes - this.fillEnd);
    return message;
  }

  readHeader(data, found) {
    const header = this.isText ? Buffer.from(data.toString('latin1', 0, 32), 'hex') : data;
    found.bytes = data.length;
    if (this.literal || header.length < 8) return;
    found.seq = header.readBigUInt64LE();
    if (header.length >= 16) found.sendNs = Number(header.readBigInt64LE(8));
  }

  isFill(data, end) {
    const at = Math.min(this.fillAt, end);
    return data.compare(this.template, at, end, at, end) === 0;
  }

  isOurs(data) {
    return this.isFill(data, Math.min(this.fillAt + 8, this.fillEnd, data.length));
  }

  isIntact(data) {
    if (this.literal) return data.equals(this.template);
    return data.length === this.bytes && (!this.isFull || this.isFill(data, this.fillEnd))
      && data.compare(data, 0, this.bytes - this.fillEnd, this.fillEnd) === 0;
  }

  ack(request) {
    return request.subarray(0, this.seqBytes);
  }
}

const isSeq = (text) => /^[0-9]{1,20}$/.test(text) && BigInt(text) < 2n ** 64n;
const isUint32 = (value) => Number.isInteger(value) && value >= 0 && value < 2 ** 32;

function makeRecord(seq, send_ns, name, [x, y, z, ox, oy, oz, w], samples) {
  const pose = { position: { x, y, z }, orientation: { x: ox, y: oy, z: oz, w } };
  return { header: { seq, send_ns }, name, pose, samples, trailer: { seq } };
}

/** Whether a decoded arrival has the names and types of C-32. */
function isRecord(found) {
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
class RecordShape extends Shape {
  constructor(spec, nodes) {
    super(spec, nodes);
    const count = Math.floor((spec['payload.bytes'] - 96) / 16);
    const words = [...fillWords(spec['payload.seed'], 9 + count)];
    const values = words.map((word) => Number(BigInt.asIntN(32, word >> 32n)) / 1024);
    this.bytes = 96 + 16 * count;
    this.samples = words.slice(9).map(
      (word, i) => ({ id: i, state: Number(word & 255n), value: values[9 + i] }));
    this.numbers = values.slice(2, 9);
    this.name = fill(spec['payload.seed'], 16, true).toString();
    this.pose = this.stamp(null, 0n, 0).pose;
    this.replyLiteral = makeRecord('0', '0', spec['reply.literal'], Array(7).fill(0), []);
  }

  stamp(_old, seq, sendNs) {
    return makeRecord(String(seq), String(sendNs), this.name, this.numbers, this.samples);
  }

  readHeader(record, found) {
    if (!isRecord(record)) return;
    found.seq = BigInt(record.header.seq);
    found.sendNs = Number(record.header.send_ns);
    found.bytes = 96 + 16 * record.samples.length;
  }

  isOurs(record) {
    return record.name === this.name;
  }

  isIntact({ header, trailer, pose, samples }) {
    const isSame = (s, i) => s.id === i && s.state === this.samples[i].state
      && s.value === this.samples[i].value;
    return samples.length === this.samples.length && trailer.seq === header.seq
      && (!this.isFull || (isDeepStrictEqual(pose, this.pose) && samples.every(isSame)));
  }

  ack({ header, trailer }) {
    return { ...this.replyLiteral, name: '', header, trailer };
  }
}

module.exports = { PayloadShape, RecordShape, UNKNOWN_NS, OK, CORRUPT, FOREIGN };
