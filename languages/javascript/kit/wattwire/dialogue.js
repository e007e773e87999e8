'use strict';
// The dialogue with the harness (C-05 to C-09), and errors that end the node.

const { once } = require('node:events');
const fs = require('node:fs');
const readline = require('node:readline');
const { now } = require('./clock');

const LINES_DESCRIPTOR = 3;
const END_OF_INPUT = 5;

/** An error that ends the node with an exit code of C-02 to C-04; its ERROR line names the key. */
class NodeError extends Error {
  constructor(exitCode, reason, key = null) {
    super(reason);
    this.exitCode = exitCode;
    this.key = key;
  }
}

function nodeError(exitCode, reason, key) {
  return new NodeError(exitCode, reason, key);
}

function line(keyword, fields) {
  fs.writeSync(LINES_DESCRIPTOR, `${keyword} ${JSON.stringify(fields)}\n`);
}

/** GO and STOP from standard input; the end of input ends the process. */
class Dialogue {
  constructor() {
    // Infinity until GO and STOP arrive.
    this.startNs = Infinity;
    this.stopNs = Infinity;
    const input = readline.createInterface({ input: process.stdin });
    input.on('line', (text) => input.emit(this.obey(text)));
    input.on('close', () => process.exit(END_OF_INPUT));
    this.stop = once(input, 'STOP');
    this.goOrStop = Promise.race([once(input, 'GO'), this.stop]);
  }

  get isStopped() {
    return this.stopNs !== Infinity;
  }

  /** Processes a line and returns its keyword. */
  obey(text) {
    const nowNs = now();
    if (text === 'STOP') {
      this.stopNs = nowNs;
      return 'STOP';
    }
    const startNs = Number(/^GO ([0-9]{1,18})$/.exec(text)?.[1] ?? 0);
    if (startNs > nowNs) {
      this.startNs = startNs;
      return 'GO';
    }
    throw nodeError(2, `found ${text}; allowed: GO <after ${nowNs}>, STOP`, 'GO');
  }
}

module.exports = { Dialogue, line, nodeError };
