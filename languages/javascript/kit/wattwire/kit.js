'use strict';
// One node of one run; ../../README.md says what a cell calls.
const fs = require('node:fs');
const readline = require('node:readline');
const { Samples } = require('./samples');
const { PayloadShape, RecordShape, UNKNOWN_NS, CORRUPT, FOREIGN } = require('./shapes');

const PROBE = 2n ** 48n - 1n;
const [WARM_UP, FAILED, TIMEOUT] = [1, 2, 4];
const never = new Int32Array(new SharedArrayBuffer(4));
const turn = () => new Promise(setImmediate);
const timer = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });

/** ns of CLOCK_MONOTONIC as a Number: exact for 104 days of uptime, then within 2 ns. */
function now() {
  const [seconds, ns] = process.hrtime();
  return seconds * 1e9 + ns;
}

/** Ends the node with this exit code. */
function nodeError(exitCode, reason, key = null) {
  return Object.assign(new Error(reason), { exitCode, key });
}

/** What a cell throws where a message was not sent. */
class SendFailed extends Error {}

class Kit {
  constructor(spec, startedNs) {
    const isSender = ['publisher', 'client', 'ping'].includes(spec.role);
    const Shape = spec['payload.encoding'] === 'record' ? RecordShape : PayloadShape;
    const slots = Math.max(0, Math.ceil((spec.duration_ns - spec.phase_ns) / spec.period_ns));
    Object.assign(this, { spec, startedNs, isClosed: spec.loop === 'closed' });
    this.peer = spec['peers.nodes'].length === 1 ? spec['peers.nodes'][0] : 65_535;
    this.isTopic = spec.pattern === 'topic';
    this.shape = new Shape(spec, isSender ? [spec.node] : spec['peers.nodes']);
    this.samples = new Samples(spec['record.capacity']);
    this.scheduled = this.isClosed ? spec.count : slots;
    this.open = new Set();
    this.startNs = this.stopNs = Infinity; // until they are heard
    this.firstNs = this.lastNs = null;
    this.next = this.arrivalNs = this.sent = this.received = 0;
    this.foreign = this.corrupt = this.probes = 0;
    this.go = new Promise((resolve) => { this.heardGo = resolve; }); // or STOP
    this.stop = new Promise((resolve) => { this.heardStop = resolve; });
    const lines = readline.createInterface({ input: process.stdin });
    lines.on('line', (line) => this.obey(line)).on('close', () => process.exit(5));
  }

  static line(keyword, fields) {
    fs.writeSync(3, `${keyword} ${JSON.stringify(fields)}\n`);
  }

  obey(line) {
    const nowNs = now();
    const startNs = /^GO [0-9]{1,18}$/.test(line) ? Number(line.slice(3)) : 0;
    if (line !== 'STOP' && startNs < nowNs)
      throw nodeError(2, `found ${line}; allowed: GO <start_ns> after ${nowNs}, or STOP`, 'GO');
    if (line === 'STOP') {
      this.stopNs = nowNs;
      this.heardStop();
    } else {
      this.startNs = startNs;
    }
    this.heardGo();
  }

  // --- until READY ---

  listening(endpoints) {
    Kit.line('LISTENING', { endpoints });
  }

  /** Until `isThere()` says so, but at most ready_timeout_ms; the ns it took. */
  async matched(isThere) {
    const beginNs = now();
    for (; !(await isThere()); await timer(1))
      if (now() - this.startedNs > this.spec.ready_timeout_ms * 1e6)
        throw nodeError(4, 'the other side was not there within ready_timeout_ms');
    return now() - beginNs;
  }

  /** Calls until a reply comes (C-07); the ns it took. */
  probe(call) {
    return this.matched(async () => {
      this.probes += 1;
      const message = this.shape.stamp(null, (BigInt(this.spec.node) << 48n) | PROBE, now());
      const reply = await this.outcome(call, message, 250);
      return reply !== null && !(reply instanceof SendFailed);
    });
  }

  /** `fields`: library, effective, guarantee; matched and discovery_ns where they are known. */
  ready(fields) {
    const startup_ns = now() - this.startedNs;
    Kit.line('READY', { matched: null, discovery_ns: null, ...fields, startup_ns });
  }

  // --- publisher, client, ping ---

  /** The reply, null at the timeout, or what says that it was not sent. */
  async outcome(call, message, timeoutMs) {
    try {
      return await call(message, Math.min(timeoutMs, 2 ** 31 - 1));
    } catch (error) {
      if (error instanceof SendFailed) return error;
      throw error;
    }
  }

  /** The whole schedule: `call(message, timeoutMs)` resolves to a reply, null at the timeout. */
  async calls(call) {
    await this.go;
    const workers = this.isClosed ? 1 : Math.min(this.spec.outstanding_max, this.scheduled);
    const all = Promise.all(Array.from({ length: workers }, () => this.work(call)));
    await Promise.race([all, this.stop]);
    for (const slot of this.open) this.take(slot, this.isTopic ? new SendFailed() : null, null);
    const { firstNs: begin_ns, lastNs: end_ns, sent, scheduled } = this;
    Kit.line('SENT', { begin_ns, end_ns, sent, scheduled, skipped: 0 });
    await this.stop;
  }

  /** Takes the next slot, waits until it is due, calls, and so on (C-33). */
  async work(call) {
    const { spec, shape, startNs } = this;
    for (let message = null; this.next < this.scheduled;) {
      const counter = this.next;
      this.next += 1;
      const dueNs = this.isClosed ? startNs : startNs + spec.phase_ns + counter * spec.period_ns;
      if (!(await this.isDue(dueNs))) return;
      const seq = (BigInt(spec.node) << 48n) | BigInt(counter);
      const beginNs = now();
      const slot = { seq, intendedNs: this.isClosed ? beginNs : dueNs, beginNs };
      this.open.add(slot);
      this.sent += 1;
      this.firstNs ??= beginNs;
      message = shape.stamp(message, seq, beginNs);
      const reply = await this.outcome(call, message, spec.timeout_ns / 1e6);
      if (this.open.has(slot)) this.take(slot, reply, message);
      if (reply === null) message = null; // the library may still hold it
    }
  }

  /**
   * Waits until then; false where nothing is to be sent any more (C-10, C-15). Timers have whole
   * milliseconds: while no reply can arrive the thread sleeps through the last two.
   */
  async isDue(dueNs) {
    const { duration_ns: durationNs, overrun_ns: overrunNs, spin_ns: spinNs } = this.spec;
    if (!this.isClosed || this.firstNs === null) await turn(); // however late we are
    for (let leftNs; (leftNs = dueNs - now()) > 0 && this.stopNs === Infinity;) {
      const restMs = (leftNs - spinNs) / 1e6;
      if (restMs <= 0) await turn();
      else if (restMs > 2) await timer(Math.min(restMs - 1, 100));
      else if (this.open.size > 0) await timer(Math.ceil(restMs));
      else Atomics.wait(never, 0, 0, restMs);
    }
    const lastNs = this.isClosed ? Infinity : this.startNs + durationNs + overrunNs;
    return this.stopNs === Infinity && now() <= lastNs;
  }

  take(slot, reply, message) {
    const nowNs = now();
    let [endNs, flags] = [nowNs, 0];
    if (reply instanceof SendFailed) {
      this.sent -= 1;
      [endNs, flags] = [this.isTopic ? nowNs : UNKNOWN_NS, FAILED];
    } else if (!this.isTopic && (reply === null || nowNs - slot.beginNs > this.spec.timeout_ns)) {
      [endNs, flags] = [UNKNOWN_NS, TIMEOUT];
    } else if (!this.isTopic) {
      flags = this.shape.isDue(reply, message, slot.seq) ? 0 : CORRUPT;
      this.received += 1;
      this.corrupt += flags / CORRUPT;
    }
    this.open.delete(slot);
    this.lastNs = nowNs;
    this.record(slot, endNs, this.shape.bytes, this.peer, flags, slot.intendedNs);
  }

  record({ seq, intendedNs = UNKNOWN_NS, beginNs }, endNs, bytes, peer, flags, whenNs) {
    const isWarmUp = whenNs < this.startNs + this.spec.warmup_ns;
    this.samples.add(seq, intendedNs, beginNs, endNs, bytes, peer, this.isTopic ? 0 : 1,
      flags | (isWarmUp ? WARM_UP : 0));
  }

  // --- subscriber, server, pong ---

  /** Judges and counts an arrival; null where it is foreign or unreadable. */
  arrive(data, beginNs) {
    const { literal } = this.shape;
    const found = { ...this.shape.arrival(data), beginNs };
    found.isProbe = literal ? beginNs < this.startNs : found.seq !== null && (found.seq & PROBE) === PROBE;
    if (found.verdict === FOREIGN) {
      this.foreign += 1;
      return null;
    }
    if (found.isProbe) {
      this.probes += 1;
      return found;
    }
    this.arrivalNs = beginNs;
    if (found.verdict === CORRUPT) this.corrupt += 1;
    if (literal) found.seq = (BigInt(this.peer) << 48n) | BigInt(this.received);
    if (found.seq === null) return null;
    this.received += 1;
    return found;
  }

  /** The callback was entered with this message. */
  receive(data) {
    const nowNs = now();
    const found = this.arrive(data, nowNs);
    if (found !== null) this.served({ ...found, beginNs: found.sendNs }, nowNs);
  }

  /** A request in hand: what is to be answered is `reply` of what this returns; null: nothing. */
  serve(data) {
    const found = this.arrive(data, now());
    return found && { ...found, reply: this.shape.reply(data) };
  }

  /** The reply to this request was handed over. */
  served(request, endNs = now()) {
    const { seq, bytes, verdict, isProbe } = request;
    if (!isProbe) this.record(request, endNs, bytes, Number(seq >> 48n), verdict, endNs);
  }

  /** Until STOP, and then until quiet or linger (C-15). */
  async drain() {
    await this.stop;
    const { quiet_ms: quietMs, linger_ms: lingerMs } = this.spec;
    const leftNs = () => Math.min(Math.max(this.arrivalNs, this.stopNs) + quietMs * 1e6,
      this.stopNs + lingerMs * 1e6) - now();
    while (leftNs() > 0) await timer(Math.ceil(leftNs() / 1e6));
  }

  /** Samples and DONE. */
  finish(path) {
    const { spec, samples, sent, received, foreign, corrupt, probes } = this;
    samples.write(path, spec.role, spec.node, spec['payload.seed']);
    const { recorded, overflow } = samples;
    Kit.line('DONE', { sent, received, recorded, overflow, foreign, corrupt, probes });
  }
}

module.exports = { Kit, SendFailed, now, nodeError };
