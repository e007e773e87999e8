'use strict';
// Arrivals and their verdicts (C-21).
//
// Every kind of message (payload.js, record.js) has the length `bytes` and these methods:
//   stamp(node, counter, sendNs, message)   returns the message; it may overwrite `message`
//   check(data, arrival)                    reads an arrival and returns its verdict
//   reply(request)                          returns a server's reply (C-23)
//   mayReplyTo(reply, message)              returns false for the reply to another call
//   isReplyTo(reply, message, counter)      returns whether a client's reply is correct

const { CORRUPT, UNKNOWN_NS } = require('./constants');

/** Verdicts of an arrival; CORRUPT is the record's flag. */
const OK = 0;
const FOREIGN = -1;

/** A message that has arrived. */
class Arrival {
  constructor() {
    this.verdict = CORRUPT;
    /** Whether the sequence was readable; if not, node and counter are unknown. */
    this.isReadable = false;
    this.node = 0;
    this.counter = 0;
    this.sendNs = UNKNOWN_NS;
    this.bytes = 0;
    // The kit sets the fields below.
    this.intendedNs = UNKNOWN_NS;
    this.beginNs = 0;
    this.isForeign = false;
    this.isRecorded = false;
    this.reply = null;
  }
}

module.exports = { Arrival, CORRUPT, FOREIGN, OK };
