'use strict';
// A client of the bridge on roslib: connection, topics, READY, and loss of the bridge.

const { once } = require('node:events');
const { setTimeout: timer } = require('node:timers/promises');
const { nodeError, now } = require('wattwire');
const { COMPRESSIONS, messageOf, payloadReader } = require('./payloads');
const packages = require('./package-lock.json').packages;

/** Place of the bridge's WebSocket server in the endpoints, after the master. */
const WEBSOCKET = 1;

/** Ends the node. The library catches what its callbacks throw, so the event loop throws it. */
function fail(reason) {
  const error = reason instanceof Error && reason.exitCode ? reason : nodeError(4, reason);
  setImmediate(() => {
    throw error;
  });
}

/** Resolves to a connected Session. */
async function connect(kit) {
  const beginNs = now();
  const { peersEndpoints, readyTimeoutMs } = kit.spec;
  const endpoint = peersEndpoints[WEBSOCKET];
  if (!/^.+:[0-9]{1,5}$/.test(endpoint ?? '')) {
    const shown = JSON.stringify(peersEndpoints);
    const allowed = 'HOST:PORT of the master and of the bridge';
    throw nodeError(2, `peers.endpoints: found ${shown}; allowed: ${allowed}`, 'peers.endpoints');
  }
  const library = await import('roslib'); // the library is an ECMAScript module
  const ros = new library.Ros({ url: `ws://${endpoint}` });
  try {
    await once(ros, 'connection', { signal: AbortSignal.timeout(readyTimeoutMs) });
  } catch (error) {
    const reason = error.message || 'no connection within ready_timeout_ms';
    throw nodeError(4, `no bridge at websocket ${endpoint} (${reason}); is it running?`);
  }
  return new Session(kit, library, ros, `websocket ${endpoint}`, beginNs);
}

class Session {
  constructor(kit, library, ros, endpoint, beginNs) {
    const { spec } = kit;
    this.kit = kit;
    this.library = library;
    this.ros = ros;
    this.endpoint = endpoint;
    this.beginNs = beginNs;
    this.isText = spec.payloadEncoding === 'text';
    this.messageType = this.isText ? 'std_msgs/String' : 'std_msgs/UInt8MultiArray';
    this.outgoing = null;
    this.unconfirmed = new Set();
    // The library would connect again, and lose messages without a report.
    this.lost = () => fail('the bridge was lost');
    ros.on('close', this.lost);
    ros.on('error', (error) => fail(error.exitCode ? error : `roslib reports: ${error.message}`));
    ros.on('status', (status) => this.handleStatus(status));
    ros.setStatusLevel('info');
  }

  topic(name, options) {
    const { ros, messageType } = this;
    const path = `/wattwire_${this.kit.spec.run}/${name}`;
    return new this.library.Topic({ ros, name: path, messageType, ...options });
  }

  publishOn(name, latch = false) {
    this.outgoing = this.topic(name, { latch });
    this.outgoing.advertise();
    this.expectStatus(this.outgoing.advertiseId);
  }

  subscribe(name, onPayload) {
    const { encoding } = this.kit.spec.settings;
    const read = payloadReader(encoding, this.isText);
    const topic = this.topic(name, { compression: COMPRESSIONS[encoding] });
    topic.subscribe((message) => onPayload(read(message)));
    this.expectStatus(topic.subscribeId);
  }

  publish(payload) {
    this.outgoing.publish(messageOf(payload, this.isText));
  }

  /** Handles the statuses of an operation, which the library emits as events of its id. */
  expectStatus(id) {
    this.unconfirmed.add(id);
    this.ros.on(`status:${id}`, (status) => this.handleStatus(status));
  }

  handleStatus({ level, msg, id }) {
    if (level === 'error') fail(`the bridge reports: ${msg}`);
    else this.unconfirmed.delete(id);
  }

  /** Waits until the bridge has confirmed the topics; resolves to the ns since connect(). */
  async connected() {
    await this.kit.matched(() => this.unconfirmed.size === 0 || 'the bridge has not confirmed');
    return now() - this.beginNs;
  }

  ready(discoveryNs) {
    const version = (name) => packages[`node_modules/${name}`].version;
    // roslib uses the WebSocket of Node.js if it has one.
    const socket = typeof WebSocket === 'function' ? 'Node.js' : `ws ${version('ws')}`;
    this.kit.ready({
      discoveryNs,
      library: { name: 'roslib', version: version('roslib'), build: `WebSocket of ${socket}` },
      effective: {
        type: this.messageType,
        protocol: 'rosbridge 2',
        bridge: this.endpoint,
      },
      guarantee: { delivery: 'best_effort', ordering: 'per_sender', overload: 'drop_oldest' },
    });
  }

  /** Lets the bridge read and publish what was sent, which it does not confirm, and leaves. */
  async close() {
    if (this.outgoing !== null) await timer(this.kit.spec.quietMs);
    this.ros.off('close', this.lost);
    this.ros.close();
  }
}

module.exports = { connect };
