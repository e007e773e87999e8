'use strict';
// Stores records in memory during the window and writes their file afterwards (C-24 to C-26).

const fs = require('node:fs');
const {
  FILE_CLOCK,
  FILE_MAGIC,
  FILE_VERSION,
  HEADER,
  HEADER_BYTES,
  RECORD,
  RECORD_BYTES,
} = require('./constants');

/** Writes a signed integer in halves, because a BigInt per time would be allocated. */
function setInt64(view, at, value) {
  view.setUint32(at, value, true); // takes the value modulo 2³²
  view.setInt32(at + 4, Math.floor(value / 2 ** 32), true);
}

class Samples {
  constructor(capacity) {
    this.capacity = capacity;
    this.recorded = 0;
    this.overflow = 0;
    this.bytes = Buffer.alloc(HEADER_BYTES + RECORD_BYTES * capacity, 1); // no page fault later
    this.view = new DataView(this.bytes.buffer, this.bytes.byteOffset, this.bytes.length);
  }

  /** Adds a record; the message has node, counter, intendedNs, beginNs and bytes. */
  add(message, endNs, peer, kind, flags) {
    if (this.recorded === this.capacity) {
      this.overflow += 1;
      return;
    }
    const { view } = this;
    const at = HEADER_BYTES + RECORD_BYTES * this.recorded;
    this.recorded += 1;
    view.setUint32(at + RECORD.seq, message.counter, true);
    view.setUint16(at + RECORD.seq + 4, message.counter / 2 ** 32, true);
    view.setUint16(at + RECORD.seq + 6, message.node, true);
    setInt64(view, at + RECORD.intendedNs, message.intendedNs);
    setInt64(view, at + RECORD.beginNs, message.beginNs);
    setInt64(view, at + RECORD.endNs, endNs);
    view.setUint32(at + RECORD.bytes, message.bytes, true);
    view.setUint16(at + RECORD.peer, peer, true);
    view.setUint8(at + RECORD.kind, kind);
    view.setUint8(at + RECORD.flags, flags);
  }

  write(path, role, node, seed) {
    const { view } = this;
    this.bytes.fill(0, 0, HEADER_BYTES);
    this.bytes.write(FILE_MAGIC, HEADER.magic, 'latin1');
    view.setUint16(HEADER.version, FILE_VERSION, true);
    view.setUint16(HEADER.headerBytes, HEADER_BYTES, true);
    view.setUint16(HEADER.recordBytes, RECORD_BYTES, true);
    view.setUint8(HEADER.role, role);
    view.setUint8(HEADER.clock, FILE_CLOCK);
    view.setUint16(HEADER.node, node, true);
    setInt64(view, HEADER.count, this.recorded);
    setInt64(view, HEADER.overflow, this.overflow);
    setInt64(view, HEADER.seed, seed);
    fs.writeFileSync(path, this.bytes.subarray(0, HEADER_BYTES + RECORD_BYTES * this.recorded));
  }
}

module.exports = { Samples };
