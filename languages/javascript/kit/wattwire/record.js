'use strict';
// Records (C-32): plain objects with the contract's names; seq and send_ns are strings of digits.

const { isDeepStrictEqual } = require('node:util');
const { fillText, fillWords } = require('./fill');
const { Arrival, CORRUPT, FOREIGN, OK } = require('./messages');

const BYTES_MIN = 96;
const SAMPLE_BYTES = 16;
const SAMPLES_AT = 9; // index of the first sample's word
const NAME_CHARACTERS = 16;

const isUint32 = (value) => value === value >>> 0;

function isSeq(text) {
  return /^[0-9]{1,20}$/.test(text) && BigInt(text) < 2n ** 64n;
}

function isPose({ position, orientation }) {
  const { x, y, z } = position;
  const { x: ox, y: oy, z: oz, w } = orientation;
  return [x, y, z, ox, oy, oz, w].every(Number.isFinite);
}

function isSample({ id, state, value }) {
  return isUint32(id) && isUint32(state) && Number.isFinite(value);
}

/** Returns whether a decoded value has the names and types of a record. */
function isRecord(value) {
  try {
    const { header, name, pose, samples, trailer } = value;
    return (
      isSeq(header.seq) &&
      isSeq(trailer.seq) &&
      /^-?[0-9]{1,19}$/.test(header.send_ns) &&
      typeof name === 'string' &&
      isPose(pose) &&
      samples.every(isSample)
    );
  } catch {
    return false; // a part is missing or is not an object
  }
}

/** Returns the pose with seven values in the order of the contract's table. */
function makePose([x, y, z, ox, oy, oz, w]) {
  return { position: { x, y, z }, orientation: { x: ox, y: oy, z: oz, w } };
}

class RecordMessages {
  /** `nodes` are the nodes whose messages belong to this run. */
  constructor(spec, nodes) {
    const count = Math.floor((spec.payloadBytes - BYTES_MIN) / SAMPLE_BYTES);
    const words = fillWords(spec.payloadSeed, SAMPLES_AT + count);
    const values = Array.from(words, (word) => Number(BigInt.asIntN(32, word >> 32n)) / 1024);

    this.nodes = nodes;
    this.bytes = BYTES_MIN + SAMPLE_BYTES * count;
    this.isFull = spec.verify === 'full';
    this.replyKind = spec.reply;
    this.name = fillText(spec.payloadSeed, NAME_CHARACTERS).toString();
    this.pose = makePose(values.slice(2, SAMPLES_AT));
    this.samples = Array.from({ length: count }, (_, id) => ({
      id,
      state: Number(words[SAMPLES_AT + id] & 255n),
      value: values[SAMPLES_AT + id],
    }));

    this.blankPose = makePose([0, 0, 0, 0, 0, 0, 0]);
    this.replyLiteral = this.blank({ seq: '0', send_ns: '0' }, { seq: '0' }, spec.replyLiteral);
    this.echo = new Arrival(); // reused for all replies to a client
  }

  /** Returns a record without samples, for all replies except echo. */
  blank(header, trailer, name) {
    return { header, name, pose: this.blankPose, samples: [], trailer };
  }

  stamp(node, counter, sendNs) {
    const seq = String((BigInt(node) << 48n) | BigInt(counter));
    return {
      header: { seq, send_ns: String(sendNs) },
      name: this.name,
      pose: this.pose,
      samples: this.samples,
      trailer: { seq },
    };
  }

  check(data, arrival) {
    arrival.bytes = 0;
    arrival.isReadable = isRecord(data);
    if (!arrival.isReadable) return CORRUPT;

    const seq = BigInt(data.header.seq);
    arrival.bytes = BYTES_MIN + SAMPLE_BYTES * data.samples.length;
    arrival.node = Number(seq >> 48n);
    arrival.counter = Number(BigInt.asUintN(48, seq));
    arrival.sendNs = Number(data.header.send_ns);
    if (!this.nodes.includes(arrival.node) || data.name !== this.name) return FOREIGN;
    return this.isIntact(data) ? OK : CORRUPT;
  }

  isIntact(data) {
    if (data.samples.length !== this.samples.length) return false;
    if (data.trailer.seq !== data.header.seq) return false;
    if (!this.isFull) return true;
    return isDeepStrictEqual(data.pose, this.pose) && this.hasExpectedSamples(data);
  }

  hasExpectedSamples(data) {
    return this.samples.every((expected, index) => {
      const { id, state, value } = data.samples[index];
      return id === expected.id && state === expected.state && value === expected.value;
    });
  }

  reply(request) {
    if (this.replyKind === 'echo') return request;
    if (this.replyKind === 'literal') return this.replyLiteral;
    return this.blank(request.header, request.trailer, '');
  }

  mayReplyTo(reply, message) {
    if (this.replyKind === 'literal' || reply === undefined) return true;
    return reply.header?.seq === message.header.seq;
  }

  isReplyTo(reply, message, counter) {
    if (this.replyKind !== 'echo') return isDeepStrictEqual(reply, this.reply(message));
    return this.check(reply, this.echo) === OK && this.echo.counter === counter;
  }
}

module.exports = { RecordMessages };
