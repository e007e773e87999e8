'use strict';
// What arrives (C-21).
//
// Every kind of message (payload.js, record.js) has the same methods, and `bytes`, the length:
//   stamp(node, counter, sendNs, message)   the message, written over one that is free
//   check(data, arrival)                    reads an arrival and returns its verdict
//   reply(request)                          what a server answers (C-23)
//   isReplyTo(reply, message, counter)      whether a client's reply is the right one

const { CORRUPT, UNKNOWN_NS } = require('./constants');

/** Verdicts of an arrival; CORRUPT is the record's flag. */
const OK = 0;
const FOREIGN = -1;

/** A message that has arrived. */
class Arrival {
  constructor() {
    this.verdict = CORRUPT;
    /** Whether the sequence could be read: without it there is neither node nor counter. */
    this.isReadable = false;
    this.node = 0;
    this.counter = 0;
    this.sendNs = UNKNOWN_NS;
    this.bytes = 0;
    // What the kit adds.
    this.intendedNs = UNKNOWN_NS;
    this.beginNs = 0;
    this.isForeign = false;
    this.isRecorded = false;
    this.reply = null;
  }
}

module.exports = { Arrival, CORRUPT, FOREIGN, OK };
