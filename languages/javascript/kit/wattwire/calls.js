'use strict';
// The window of a client, ping or publisher.

const { setImmediate: turn } = require('node:timers/promises');
const { now } = require('./clock');
const { CORRUPT, FAILED, TIMEOUT, UNKNOWN_NS } = require('./constants');
const { line } = require('./dialogue');

const TIMER_MS_MAX = 2 ** 31 - 1;

/** The message that a worker sends; a worker reuses it for all its messages. */
class Call {
  constructor(node, bytes) {
    this.node = node;
    this.counter = 0;
    this.intendedNs = UNKNOWN_NS;
    this.beginNs = UNKNOWN_NS;
    this.bytes = bytes;
    this.isOpen = false;
  }
}

class Calls {
  /** `send(message, timeoutMs)` resolves to the reply or null (timeout), or rejects on failure. */
  constructor(kit, send) {
    const { spec } = kit;
    this.kit = kit;
    this.send = send;
    this.dialogue = kit.dialogue;
    this.messages = kit.messages;
    this.schedule = kit.schedule;
    this.isClosed = spec.loop === 'closed';
    this.isTopic = spec.pattern === 'topic';
    this.node = spec.node;
    this.timeoutNs = spec.timeoutNs;
    this.timeoutMs = Math.min(spec.timeoutNs / 1e6, TIMER_MS_MAX);
    this.workers = this.isClosed || this.isTopic ? 1 : spec.outstandingMax;
    this.calls = Array.from(
      { length: this.workers },
      () => new Call(this.node, kit.messages.bytes),
    );
    this.openCount = 0;
    this.hasOpenCalls = () => this.openCount > 0;
    this.queue = Promise.resolve(); // workers that wait for their slots, in the slots' order
    this.nextCounter = 0;
    this.sent = 0;
    this.firstNs = null;
    this.lastNs = null;
  }

  /** Runs the window, from GO to STOP. */
  async run() {
    const { scheduled, last } = this.schedule;
    await this.dialogue.goOrStop;
    const workers = Promise.all(this.calls.map((call) => this.work(call)));
    await Promise.race([workers, this.dialogue.stop]);
    const isBeyond = last > scheduled && this.nextCounter > scheduled;
    if (isBeyond) await workers; // the open call may end (C-15)
    for (const call of this.calls) {
      if (call.isOpen) this.end(call, now(), TIMEOUT);
    }
    line('SENT', {
      begin_ns: this.firstNs,
      end_ns: this.lastNs,
      sent: this.sent,
      scheduled,
      skipped: 0,
    });
    await this.dialogue.stop;
  }

  /** Repeatedly takes the next slot, waits until it is due, and makes a call (C-33). */
  async work(call) {
    let message;
    while (this.nextCounter < this.schedule.last) {
      const counter = this.nextCounter;
      this.nextCounter += 1;
      const dueNs = this.schedule.dueNs(counter);
      if (!(await this.isDue(dueNs)) || this.dialogue.isStopped) return;
      if (counter === this.schedule.scheduled) line('COUNTED', {});

      this.begin(call, counter, dueNs);
      message = this.messages.stamp(this.node, call.counter, call.beginNs, message);
      try {
        const reply = await this.send(message, this.timeoutMs);
        const endNs = now();
        if (call.isOpen) this.end(call, endNs, this.flagsOf(call, endNs, reply, message));
        if (reply === null) message = undefined; // the library may still hold it
      } catch {
        if (call.isOpen) this.end(call, now(), FAILED);
        await turn(); // keeps a dead connection from blocking the event loop
      }
    }
  }

  /** Waits in the slots' order. After its first call, a closed loop is always due. */
  isDue(dueNs) {
    if (this.isClosed && this.firstNs !== null) return true;
    this.queue = this.queue.then(() => this.schedule.isDue(dueNs, this.hasOpenCalls));
    return this.queue;
  }

  begin(call, counter, dueNs) {
    const beginNs = now();
    call.counter = counter;
    call.beginNs = beginNs;
    call.intendedNs = this.isClosed ? beginNs : dueNs;
    call.isOpen = true;
    this.openCount += 1;
    this.firstNs ??= beginNs;
  }

  flagsOf(call, endNs, reply, message) {
    if (reply === null || endNs - call.beginNs > this.timeoutNs) return TIMEOUT;
    if (this.isTopic) return 0;
    return this.messages.isReplyTo(reply, message, call.counter) ? 0 : CORRUPT;
  }

  end(call, endNs, flags) {
    const isUnanswered = flags === FAILED || flags === TIMEOUT;
    call.isOpen = false;
    this.openCount -= 1;
    this.lastNs = endNs;
    if (!this.isTopic || flags !== FAILED) this.sent += 1;
    if (!this.isTopic && !isUnanswered) {
      this.kit.received += 1;
      if (flags === CORRUPT) this.kit.corrupt += 1;
    }
    this.kit.record(call, isUnanswered ? UNKNOWN_NS : endNs, this.kit.peer, flags);
  }
}

module.exports = { Calls };
