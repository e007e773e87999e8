'use strict';
// The API of roles; ../../README.md describes it.

const { setTimeout: timer } = require('node:timers/promises');
const { Calls } = require('./calls');
const { now } = require('./clock');
const {
  KINDS,
  PROBE_COUNTER,
  ROLES,
  SENDERS,
  UNKNOWN_NS,
  UNKNOWN_PEER,
  WARM_UP,
} = require('./constants');
const { Dialogue, line, nodeError } = require('./dialogue');
const { Arrival, CORRUPT, FOREIGN } = require('./messages');
const { Literal, Payload } = require('./payload');
const { RecordMessages } = require('./record');
const { Samples } = require('./samples');
const { Schedule } = require('./schedule');

const PROBE_TIMEOUT_MS = 250;

/** Returns the messages of a spec; `nodes` are the nodes whose messages belong to this run. */
function messagesOf(spec, nodes) {
  if (spec.payloadLiteral !== '') return new Literal(spec);
  if (spec.payloadEncoding === 'record') return new RecordMessages(spec, nodes);
  return new Payload(spec, nodes);
}

class Kit {
  constructor(spec, startedNs) {
    const [peer] = spec.peersNodes;
    const isSender = SENDERS.includes(spec.role);
    this.spec = spec;
    this.startedNs = startedNs;
    this.peer = spec.peersNodes.length === 1 ? peer : UNKNOWN_PEER;
    this.isLiteral = spec.payloadLiteral !== '';
    this.kind = spec.pattern === 'topic' ? KINDS.message : KINDS.call;
    this.messages = messagesOf(spec, isSender ? [spec.node] : spec.peersNodes);
    this.samples = new Samples(spec.recordCapacity);
    this.dialogue = new Dialogue();
    this.schedule = new Schedule(spec, this.dialogue);
    this.arrivalNs = 0; // time of the last arrival
    this.sent = 0;
    this.received = 0;
    this.foreign = 0;
    this.corrupt = 0;
    this.probes = 0;
  }

  /** Waits until `isThere()` is true, at most for ready_timeout_ms; returns the elapsed ns. */
  async matched(isThere) {
    const beginNs = now();
    const endNs = this.startedNs + this.spec.readyTimeoutMs * 1e6;
    for (;;) {
      const outcome = await isThere();
      if (outcome === true) return now() - beginNs;
      if (now() > endNs) {
        throw nodeError(4, `no peer within ready_timeout_ms; last attempt: ${outcome}`);
      }
      await timer(1);
    }
  }

  /** Sends probes until a reply arrives (C-07); returns the elapsed ns. */
  probe(send) {
    return this.matched(async () => {
      this.probes += 1;
      const message = this.messages.stamp(this.spec.node, PROBE_COUNTER, now());
      try {
        const reply = await send(message, PROBE_TIMEOUT_MS);
        return reply === null ? 'timeout' : true;
      } catch (error) {
        return error;
      }
    });
  }

  /** Prints READY. Adds the settings that `effective` lacks, with their requested values. */
  ready({ library, effective, guarantee, matched = null, discoveryNs = null }) {
    line('READY', {
      matched,
      discovery_ns: discoveryNs,
      startup_ns: now() - this.startedNs,
      library,
      effective: { ...this.spec.settings, ...effective },
      guarantee,
    });
  }

  /** Sends the messages of the schedule, from GO to STOP; Calls describes `send`. */
  async calls(send) {
    const calls = new Calls(this, send);
    await calls.run();
    this.sent = calls.sent;
  }

  /** Returns whether `reply` may be the reply to `message`; true if the kit cannot decide. */
  isReply(reply, message) {
    return this.messages.mayReplyTo(reply, message);
  }

  /** Counts a request and returns it; hand over its `reply` unless it is null. */
  serve(data) {
    const beginNs = now();
    const request = this.arrive(data, beginNs);
    if (!request.isForeign && request.bytes > 0) request.reply = this.messages.reply(data);
    return request;
  }

  /** Records that the request's reply was handed over. */
  served(request) {
    if (request.isRecorded) this.record(request, now(), request.node, request.verdict);
  }

  /** Counts and records a subscriber's message. */
  receive(data) {
    const nowNs = now();
    const message = this.arrive(data, nowNs);
    message.beginNs = message.sendNs;
    if (message.isRecorded) this.record(message, nowNs, message.node, message.verdict);
  }

  arrive(data, nowNs) {
    const arrival = new Arrival();
    arrival.beginNs = nowNs;
    arrival.verdict = this.messages.check(data, arrival);
    if (this.isLiteral) this.number(arrival);
    arrival.isForeign = arrival.verdict === FOREIGN;
    const isProbe = this.isProbe(arrival);

    if (arrival.isForeign) this.foreign += 1;
    else if (isProbe) this.probes += 1;
    else this.arrivalNs = nowNs;
    arrival.isRecorded = !arrival.isForeign && !isProbe && arrival.isReadable;
    if (arrival.isRecorded) this.received += 1;
    if (arrival.verdict === CORRUPT && !isProbe) this.corrupt += 1;
    return arrival;
  }

  /** Numbers a literal, which has no sequence, by counting arrivals (C-22). */
  number(arrival) {
    arrival.isReadable = true;
    arrival.node = this.peer;
    arrival.counter = this.received;
  }

  isProbe(arrival) {
    if (this.isLiteral) return arrival.beginNs < this.dialogue.startNs;
    return arrival.isReadable && arrival.counter === PROBE_COUNTER;
  }

  /** Adds a record; its due time, or else its end, decides on the warm-up flag (C-13). */
  record(message, endNs, peer, flags) {
    const timeNs = message.intendedNs === UNKNOWN_NS ? endNs : message.intendedNs;
    const isWarmUp = timeNs < this.dialogue.startNs + this.spec.warmupNs;
    this.samples.add(message, endNs, peer, this.kind, isWarmUp ? flags | WARM_UP : flags);
  }

  /** Waits for STOP, and then for quiet or linger (C-15). */
  async drain() {
    await this.dialogue.stop;
    const { stopNs } = this.dialogue;
    const lastNs = stopNs + this.spec.lingerMs * 1e6;
    for (;;) {
      const quietNs = Math.max(this.arrivalNs, stopNs) + this.spec.quietMs * 1e6;
      const leftNs = Math.min(lastNs, quietNs) - now();
      if (leftNs <= 0) return;
      await timer(leftNs / 1e6);
    }
  }

  /** Writes the samples and prints DONE. */
  finish(path) {
    this.samples.write(path, ROLES[this.spec.role], this.spec.node, this.spec.payloadSeed);
    line('DONE', {
      sent: this.sent,
      received: this.received,
      recorded: this.samples.recorded,
      overflow: this.samples.overflow,
      foreign: this.foreign,
      corrupt: this.corrupt,
      probes: this.probes,
    });
  }
}

module.exports = { Kit, messagesOf };
