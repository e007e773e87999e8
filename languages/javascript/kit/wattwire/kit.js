'use strict';
// One node of one run; ../../README.md says what a cell calls.
const { once } = require('node:events');
const fs = require('node:fs');
const readline = require('node:readline');
const { setImmediate: turn, setTimeout: timer } = require('node:timers/promises');
const { messagesOf, Samples, UNKNOWN_NS, CORRUPT, FOREIGN } = require('./formats');

const PROBE = 2n ** 48n - 1n;
const [WARM_UP, FAILED, TIMEOUT] = [1, 2, 4];
const never = new Int32Array(new SharedArrayBuffer(4));
const line = (keyword, fields) => fs.writeSync(3, `${keyword} ${JSON.stringify(fields)}\n`);
const nodeError = (exitCode, reason, key) => Object.assign(new Error(reason), { exitCode, key });

/** ns of CLOCK_MONOTONIC as a Number: exact for 104 days of uptime, then within 2 ns. */
function now() {
  const [seconds, ns] = process.hrtime();
  return seconds * 1e9 + ns;
}

class Kit {
  constructor(spec, startedNs) {
    const { 'peers.nodes': nodes, loop, pattern, role } = spec;
    const isSender = ['publisher', 'client', 'ping'].includes(role);
    const slots = Math.max(0, Math.ceil((spec.duration_ns - spec.phase_ns) / spec.period_ns));
    Object.assign(this, { spec, startedNs, open: new Set(), queue: Promise.resolve() });
    Object.assign(this, { isClosed: loop === 'closed', isTopic: pattern === 'topic' });
    this.peer = nodes.length === 1 ? nodes[0] : 65_535;
    this.messages = messagesOf(spec, isSender ? [spec.node] : nodes);
    this.samples = new Samples(spec['record.capacity']);
    this.scheduled = this.isClosed ? spec.count : slots;
    this.startNs = this.stopNs = Infinity; // until they are heard
    this.next = this.arrivalNs = this.sent = this.received = 0;
    this.foreign = this.corrupt = this.probes = 0;
    const input = readline.createInterface({ input: process.stdin });
    input.on('line', (text) => input.emit(this.obey(text))).on('close', () => process.exit(5));
    this.stop = once(input, 'STOP');
    this.go = Promise.race([once(input, 'GO'), this.stop]);
  }
  obey(text) {
    const [, startNs = 0] = /^GO ([0-9]{1,18})$/.exec(text) ?? [];
    const nowNs = now();
    if (text === 'STOP') this.stopNs = nowNs;
    else if (startNs > nowNs) this.startNs = Number(startNs);
    else throw nodeError(2, `found ${text}; allowed: GO <after ${nowNs}>, STOP`, 'GO');
    return text.split(' ')[0];
  }
  /** Until `isThere()` says true, but at most ready_timeout_ms; the ns it took. */
  async matched(isThere) {
    const beginNs = now();
    for (let found; (found = await isThere()) !== true; await timer(1))
      if (now() - this.startedNs > this.spec.ready_timeout_ms * 1e6)
        throw nodeError(4, `nobody was there within ready_timeout_ms; the last try: ${found}`);
    return now() - beginNs;
  }
  /** Calls until a reply comes (C-07); the ns it took. */
  probe(call) {
    return this.matched(async () => {
      this.probes += 1;
      const message = this.messages.stamp((BigInt(this.spec.node) << 48n) | PROBE, now());
      const reply = await call(message, 250).catch((error) => error);
      return reply === null || reply instanceof Error ? reply : true;
    });
  }
  /** READY; `fields`: library, effective, guarantee; matched and discovery_ns if known. */
  ready(fields) {
    const startup_ns = now() - this.startedNs;
    line('READY', { matched: null, discovery_ns: null, ...fields, startup_ns });
  }
  /** The schedule: `call(message, timeoutMs)` → reply, null at timeout; rejects if failed. */
  async calls(call) {
    await this.go;
    const length = this.isClosed || this.isTopic ? 1 : this.spec.outstanding_max;
    const workers = Promise.all(Array.from({ length }, () => this.work(call)));
    await Promise.race([workers, this.stop]);
    const isBeyond = this.spec.count_beyond > 0 && this.next > this.scheduled;
    if (isBeyond) await workers; // the open call may end (C-15)
    for (const slot of this.open) this.end(slot, null);
    const { firstNs: begin_ns = null, lastNs: end_ns = null, sent, scheduled } = this;
    line('SENT', { begin_ns, end_ns, sent, scheduled, skipped: 0 });
    await this.stop;
  }
  /** Takes the next slot, waits until it is due, calls, and so on (C-33). */
  async work(call) {
    const { isClosed, messages, open, spec, startNs } = this;
    const most = this.scheduled + spec.count_beyond;
    for (let message = null, counter; (counter = this.next++) < most;) {
      const dueNs = isClosed ? startNs : startNs + spec.phase_ns + counter * spec.period_ns;
      if (!isClosed || this.firstNs === undefined) // a closed loop that has begun is always due
        this.queue = this.queue.then(() => this.isDue(dueNs)); // in the order of their slots
      if (!(await this.queue) || this.stopNs !== Infinity) return;
      if (counter === this.scheduled) line('COUNTED', {});
      const [seq, beginNs] = [(BigInt(spec.node) << 48n) | BigInt(counter), now()];
      const slot = { seq, intendedNs: isClosed ? beginNs : dueNs, beginNs, bytes: messages.bytes };
      open.add(slot);
      this.firstNs ??= beginNs;
      message = messages.stamp(seq, beginNs, message);
      const timeoutMs = Math.min(spec.timeout_ns / 1e6, 2 ** 31 - 1);
      const reply = await call(message, timeoutMs).catch((error) => error);
      if (open.has(slot)) this.end(slot, reply, message);
      if (reply === null) message = null; // the library may still hold it
      if (reply instanceof Error) await turn(); // so that a dead connection blocks nothing
    }
  }
  /** Waits until then, or until STOP; false where it is too late to send (C-10, C-15). */
  async isDue(dueNs) {
    const { duration_ns: durationNs, overrun_ns: overrunNs, spin_ns: spinNs } = this.spec;
    await turn(); // however late we are
    for (let leftMs; (leftMs = (dueNs - spinNs - now()) / 1e6) > 0 && this.stopNs === Infinity;) {
      if (leftMs > 2) await timer(Math.min(leftMs - 1, 100));
      else if (this.open.size > 0) await timer(Math.ceil(leftMs)); // it has whole milliseconds
      else Atomics.wait(never, 0, 0, leftMs); // no reply can arrive that would wait
    }
    while (now() < dueNs && this.stopNs === Infinity) await turn();
    return this.isClosed || now() <= this.startNs + durationNs + overrunNs;
  }
  end(slot, reply, message) {
    const endNs = now();
    let flags = 0;
    if (reply instanceof Error) flags = FAILED;
    else if (reply === null || endNs - slot.beginNs > this.spec.timeout_ns) flags = TIMEOUT;
    else if (!this.isTopic) {
      flags = this.messages.isDue(reply, message, slot.seq) ? 0 : CORRUPT;
      this.corrupt += flags / CORRUPT;
      this.received += 1;
    }
    this.sent += flags === FAILED && this.isTopic ? 0 : 1;
    this.lastNs = endNs;
    this.open.delete(slot);
    this.record(slot, this.peer, flags & (FAILED | TIMEOUT) ? UNKNOWN_NS : endNs, flags);
  }
  record(slot, peer, endNs, flags) {
    const isWarmUp = (slot.intendedNs ?? endNs) < this.startNs + this.spec.warmup_ns;
    this.samples.add(slot, peer, endNs, this.isTopic ? 0 : 1, isWarmUp ? flags | WARM_UP : flags);
  }
  /** Counts a request, or a subscriber's message; `reply` is to be answered, null: nothing. */
  serve(data) {
    const beginNs = now();
    const { literal } = this.messages;
    const found = this.messages.arrival(data);
    if (literal) found.seq = (BigInt(this.peer) << 48n) | BigInt(this.received);
    const isForeign = found.verdict === FOREIGN;
    const isProbe = literal ? beginNs < this.startNs : (found.seq ?? 0n) % 2n ** 48n === PROBE;
    const isRecorded = !isForeign && !isProbe && found.seq !== null;
    if (isForeign) this.foreign += 1;
    else if (isProbe) this.probes += 1;
    else this.arrivalNs = beginNs;
    if (isRecorded) this.received += 1;
    if (found.verdict === CORRUPT && !isProbe) this.corrupt += 1;
    const reply = isForeign || found.bytes === 0 ? null : this.messages.reply(data);
    return { ...found, beginNs, isForeign, isRecorded, reply };
  }
  /** The reply to this request was handed over. */
  served({ isRecorded, ...request }, endNs = now()) {
    if (isRecorded) this.record(request, Number(request.seq >> 48n), endNs, request.verdict);
  }
  receive(data) {
    const message = this.serve(data);
    this.served({ ...message, beginNs: message.sendNs }, message.beginNs);
  }
  /** Until STOP, and then until quiet or linger (C-15). */
  async drain() {
    await this.stop;
    const lastNs = this.stopNs + this.spec.linger_ms * 1e6;
    const quietNs = () => Math.max(this.arrivalNs, this.stopNs) + this.spec.quiet_ms * 1e6;
    for (let leftNs; (leftNs = Math.min(lastNs, quietNs()) - now()) > 0;) await timer(leftNs / 1e6);
  }
  finish(path) {
    const { spec, samples, sent, received, foreign, corrupt, probes } = this;
    samples.write(path, spec.role, spec.node, spec['payload.seed']);
    const { recorded, overflow } = samples;
    line('DONE', { sent, received, recorded, overflow, foreign, corrupt, probes });
  }
}

module.exports = { Kit, line, nodeError, now };
