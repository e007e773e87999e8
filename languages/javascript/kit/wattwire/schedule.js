'use strict';
// The due times of messages (C-10, C-11), and waits for them.

const { setImmediate: turn, setTimeout: timer } = require('node:timers/promises');
const { now } = require('./clock');

const LONGEST_WAIT_MS = 100;
const SLEEP_MS = 2; // time before a due time for which the 1 ms timers are too coarse
const neverWoken = new Int32Array(new SharedArrayBuffer(4));

/** Blocks the thread, with the kernel's precision. */
function sleep(ms) {
  Atomics.wait(neverWoken, 0, 0, ms);
}

class Schedule {
  constructor(spec, dialogue) {
    this.dialogue = dialogue;
    this.isClosed = spec.loop === 'closed';
    this.periodNs = spec.periodNs;
    this.phaseNs = spec.phaseNs;
    this.durationNs = spec.durationNs;
    this.overrunNs = spec.overrunNs;
    this.spinNs = spec.spinNs;
    const slots = Math.ceil((spec.durationNs - spec.phaseNs) / spec.periodNs);
    this.scheduled = this.isClosed ? spec.count : Math.max(0, slots);
    this.last = this.scheduled + spec.countBeyond;
  }

  dueNs(counter) {
    const { startNs } = this.dialogue;
    return this.isClosed ? startNs : startNs + this.phaseNs + counter * this.periodNs;
  }

  /**
   * Waits until `dueNs` or STOP. Returns false if it is too late to send (C-10, C-15).
   * `hasOpenCalls` returns whether a reply may arrive during the wait.
   */
  async isDue(dueNs, hasOpenCalls) {
    await turn(); // also if the message is late
    while (!this.dialogue.isStopped) {
      const leftMs = (dueNs - this.spinNs - now()) / 1e6;
      if (leftMs <= 0) break;
      if (leftMs > SLEEP_MS) await timer(Math.min(leftMs - 1, LONGEST_WAIT_MS));
      else if (hasOpenCalls()) await timer(Math.ceil(leftMs));
      else sleep(leftMs); // no reply can arrive during the sleep
    }
    while (now() < dueNs && !this.dialogue.isStopped) await turn();
    return this.isClosed || now() <= this.dialogue.startNs + this.durationNs + this.overrunNs;
  }
}

module.exports = { Schedule };
