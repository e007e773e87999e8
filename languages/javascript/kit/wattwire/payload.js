'use strict';
// Payloads in Buffers: bytes, characters (C-19, C-20) and literals (C-22).

const { fillBytes, fillText } = require('./fill');
const { Arrival, CORRUPT, FOREIGN, OK } = require('./messages');

const HEADER_BYTES = 16;
const SEQ_BYTES = 8;
const WORD_BYTES = 8; // size of the first fill word, also in characters

/** Writes sequence and send time in halves, because a BigInt per message would be allocated. */
function writeHeader(header, node, counter, sendNs) {
  header.writeUIntLE(counter, 0, 6);
  header.writeUInt16LE(node, 6);
  header.writeUInt32LE(sendNs >>> 0, 8); // modulo 2³²
  header.writeInt32LE(Math.floor(sendNs / 2 ** 32), 12);
}

function readHeader(header, arrival) {
  arrival.isReadable = true;
  arrival.counter = header.readUIntLE(0, 6);
  arrival.node = header.readUInt16LE(6);
  arrival.sendNs = header.readInt32LE(12) * 2 ** 32 + header.readUInt32LE(8);
}

function isEqual(data, expected, begin, end) {
  return end <= begin || expected.compare(data, begin, end, begin, end) === 0;
}

class Payload {
  /** `nodes` are the nodes whose messages belong to this run. */
  constructor(spec, nodes) {
    this.nodes = nodes;
    this.bytes = spec.payloadBytes;
    this.isText = spec.payloadEncoding === 'text';
    this.isFull = spec.verify === 'full';
    this.replyKind = spec.reply;
    this.replyLiteral = Buffer.from(spec.replyLiteral);

    this.seqBytes = this.isText ? 2 * SEQ_BYTES : SEQ_BYTES;
    this.fillAt = 2 * this.seqBytes;
    this.trailerBytes = this.bytes >= 3 * this.seqBytes ? this.seqBytes : 0;
    this.fillEnd = this.bytes - this.trailerBytes;
    const fill = this.isText ? fillText : fillBytes;
    /** A whole message without the content of header and trailer. */
    this.template = Buffer.alloc(this.bytes);
    fill(spec.payloadSeed, this.fillEnd - this.fillAt).copy(this.template, this.fillAt);

    this.header = Buffer.alloc(HEADER_BYTES); // a text's header as bytes
    this.echo = new Arrival(); // reused for all replies to a client
  }

  stamp(node, counter, sendNs, message = Buffer.from(this.template)) {
    if (this.isText) {
      writeHeader(this.header, node, counter, sendNs);
      message.write(this.header.toString('hex'), 'latin1');
    } else {
      writeHeader(message, node, counter, sendNs);
    }
    message.copy(message, this.fillEnd, 0, this.trailerBytes);
    return message;
  }

  check(data, arrival) {
    arrival.bytes = data.length;
    arrival.isReadable = false;
    const header = this.headerOf(data);
    if (header.length < HEADER_BYTES) return CORRUPT;
    readHeader(header, arrival);
    if (!this.nodes.includes(arrival.node) || !this.hasFirstWord(data)) return FOREIGN;
    return this.isIntact(data) ? OK : CORRUPT;
  }

  /** Returns the header as bytes; it is shorter if it is truncated or has invalid characters. */
  headerOf(data) {
    if (!this.isText) return data;
    const digits = data.toString('latin1', 0, this.fillAt);
    const bytes = this.header.write(digits, 'hex');
    return bytes === HEADER_BYTES ? this.header : this.header.subarray(0, bytes);
  }

  hasFirstWord(data) {
    const end = Math.min(this.fillAt + WORD_BYTES, this.fillEnd, data.length);
    return isEqual(data, this.template, this.fillAt, end);
  }

  isIntact(data) {
    if (data.length !== this.bytes) return false;
    if (data.compare(data, 0, this.trailerBytes, this.fillEnd) !== 0) return false;
    return !this.isFull || isEqual(data, this.template, this.fillAt, this.fillEnd);
  }

  reply(request) {
    if (this.replyKind === 'echo') return request;
    return this.replyKind === 'ack' ? request.subarray(0, this.seqBytes) : this.replyLiteral;
  }

  mayReplyTo(reply, message) {
    if (this.replyKind === 'literal') return true;
    return reply.subarray(0, this.seqBytes).equals(message.subarray(0, this.seqBytes));
  }

  isReplyTo(reply, message, counter) {
    if (this.replyKind !== 'echo') return this.reply(message).equals(reply);
    return this.check(reply, this.echo) === OK && this.echo.counter === counter;
  }
}

/** A literal: every message has the same bytes, without a sequence. */
class Literal {
  constructor(spec) {
    this.message = Buffer.from(spec.payloadLiteral);
    this.bytes = this.message.length;
    this.replyKind = spec.reply;
    this.replyLiteral = Buffer.from(spec.replyLiteral);
    this.ackBytes = spec.payloadEncoding === 'text' ? 2 * SEQ_BYTES : SEQ_BYTES;
  }

  stamp() {
    return this.message;
  }

  check(data, arrival) {
    arrival.bytes = data.length;
    return this.message.equals(data) ? OK : CORRUPT;
  }

  reply(request) {
    if (this.replyKind === 'echo') return request;
    return this.replyKind === 'ack' ? request.subarray(0, this.ackBytes) : this.replyLiteral;
  }

  mayReplyTo() {
    return true;
  }

  isReplyTo(reply) {
    return this.reply(this.message).equals(reply);
  }
}

module.exports = { Literal, Payload };
