'use strict';
// Code that cells over HTTP share; it is not part of the kit. ../../README.md describes it.

const { once } = require('node:events');
const fs = require('node:fs');
const http = require('node:http');
const https = require('node:https');
const { line } = require('../wattwire');

const isTls = (spec) => spec.tlsAuthority !== '';

/** Returns options for requests of node:http: the server's address, and a configured agent. */
function requestOptions(spec) {
  const library = isTls(spec) ? https : http;
  const { keep_alive: keepAlive, tcp_nodelay: nodelay } = spec.settings;
  const changes = { ...library.globalAgent.options };
  if (keepAlive !== 'default') changes.keepAlive = keepAlive === 'on';
  if (nodelay !== 'default') changes.noDelay = nodelay === 'on';
  const { hostname, port, pathname: path } = new URL(spec.peersEndpoints[0]);
  const options = { hostname, port, path, agent: new library.Agent(changes) };
  if (isTls(spec)) options.ca = fs.readFileSync(spec.tlsAuthority);
  return options;
}

const idleTimers = new Map(); // timers without a call, by their timeout in ms

/** Returns a started timer without a callback. It reuses an idle timer, which is cheaper. */
function takeTimer(timeoutMs) {
  if (!idleTimers.has(timeoutMs)) idleTimers.set(timeoutMs, []);
  const idle = idleTimers.get(timeoutMs);
  if (idle.length > 0) {
    const timer = idle.pop();
    timer.timeout.refresh();
    return timer;
  }
  const timer = { callback: null, idle };
  timer.timeout = setTimeout(() => timer.callback?.(), timeoutMs);
  return timer;
}

/** Runs a call. `begin(resolve, reject)` returns a function that aborts it at the timeout. */
function timed(timeoutMs, begin) {
  return new Promise((resolve, reject) => {
    const timer = takeTimer(timeoutMs);
    const onTimeout = () => {
      settle(resolve, null);
      end();
    };
    const settle = (settlePromise, value) => {
      if (timer.callback === onTimeout) {
        // otherwise this call has ended, and another call may use the timer
        timer.callback = null;
        timer.idle.push(timer);
      }
      settlePromise(value);
    };
    timer.callback = onTimeout;
    const end = begin(
      (reply) => settle(resolve, reply),
      (error) => settle(reject, error),
    );
  });
}

/** Returns the server's certificate and key, or an empty object without TLS. */
function secrets(spec) {
  if (!isTls(spec)) return {};
  return { cert: fs.readFileSync(spec.tlsCertificate), key: fs.readFileSync(spec.tlsKey) };
}

/** Binds a free port and prints LISTENING with `path`. */
async function listen(kit, server, path) {
  const host = kit.spec.hostAddress;
  server.listen({ host, port: 0 });
  await once(server, 'listening');
  const scheme = isTls(kit.spec) ? 'https' : 'http';
  line('LISTENING', { endpoints: [`${scheme}://${host}:${server.address().port}${path}`] });
}

/** Prints READY; `known` are values in force. */
function ready(kit, library, known, discoveryNs = null) {
  const { tcp_nodelay: nodelay } = kit.spec.settings;
  // Node.js sets TCP_NODELAY by default.
  const options = nodelay === undefined ? {} : { tcp_nodelay: nodelay !== 'off' };
  kit.ready({
    matched: discoveryNs === null ? null : 1,
    discoveryNs,
    library,
    effective: { ...options, transport: 'tcp/ipv4', ...known },
    guarantee: { delivery: 'reliable', ordering: 'none', overload: 'block' },
  });
}

module.exports = { isTls, listen, ready, requestOptions, secrets, timed };
