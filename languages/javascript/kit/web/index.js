'use strict';
// What cells over HTTP share, no part of the kit; ../../README.md describes it.

const { once } = require('node:events');
const fs = require('node:fs');
const http = require('node:http');
const https = require('node:https');
const { line } = require('../wattwire');

const isTls = (spec) => spec.tlsAuthority !== '';

/** Options of node:http's requests: where a run's go, with an agent of the settings' own. */
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

const idle = new Map(); // alarms between two calls, by their ms

/** An alarm that rings for nobody yet. Its timer is wound up again: a new one costs more. */
function takeAlarm(timeoutMs) {
  if (!idle.has(timeoutMs)) idle.set(timeoutMs, []);
  const others = idle.get(timeoutMs);
  if (others.length > 0) {
    const alarm = others.pop();
    alarm.timer.refresh();
    return alarm;
  }
  const alarm = { ring: null, others };
  alarm.timer = setTimeout(() => alarm.ring?.(), timeoutMs);
  return alarm;
}

/** A call: `begin(resolve, reject)` returns what ends it; null where that is due at the timeout. */
function timed(timeoutMs, begin) {
  return new Promise((resolve, reject) => {
    const alarm = takeAlarm(timeoutMs);
    const ring = () => {
      settle(resolve, null);
      end();
    };
    const settle = (how, found) => {
      if (alarm.ring === ring) {
        // else this call has ended, and the alarm may be another one's
        alarm.ring = null;
        alarm.others.push(alarm);
      }
      how(found);
    };
    alarm.ring = ring;
    const end = begin(
      (found) => settle(resolve, found),
      (error) => settle(reject, error),
    );
  });
}

/** The server's certificate and its key; without TLS there are none. */
function secrets(spec) {
  if (!isTls(spec)) return {};
  return { cert: fs.readFileSync(spec.tlsCertificate), key: fs.readFileSync(spec.tlsKey) };
}

/** LISTENING, of a server of node:http that is at `path`. */
async function listen(kit, server, path) {
  server.listen({ host: '127.0.0.1', port: 0 });
  await once(server, 'listening');
  const scheme = isTls(kit.spec) ? 'https' : 'http';
  line('LISTENING', { endpoints: [`${scheme}://127.0.0.1:${server.address().port}${path}`] });
}

/** READY; `effective` are the settings as they were asked for, but for what is known better. */
function ready(kit, library, known, discoveryNs = null) {
  const settings = { ...kit.spec.settings };
  // Node.js sets it by itself.
  if ('tcp_nodelay' in settings) settings.tcp_nodelay = settings.tcp_nodelay !== 'off';
  kit.ready({
    matched: discoveryNs === null ? null : 1,
    discoveryNs,
    library,
    effective: { ...settings, transport: 'tcp/ipv4', ...known },
    guarantee: { delivery: 'reliable', ordering: 'none', overload: 'block' },
  });
}

module.exports = { isTls, listen, ready, requestOptions, secrets, timed };
