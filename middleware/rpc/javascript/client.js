'use strict';
// Client and ping: jayson's HTTP client, with an agent of Node.js's.

const fs = require('node:fs');
const http = require('node:http');
const https = require('node:https');
const jayson = require('jayson');
const { ready } = require('./common');

/** A client of jayson's, which hands its options on to http.request. */
function open(spec) {
  const isTls = spec['tls.authority'] !== '';
  const library = isTls ? https : http;
  const { 'settings.keep_alive': keepAlive, 'settings.tcp_nodelay': nodelay } = spec;
  const changes = { ...library.globalAgent.options };
  if (keepAlive !== 'default') changes.keepAlive = keepAlive === 'on';
  if (nodelay !== 'default') changes.noDelay = nodelay === 'on';
  const { hostname, port, pathname: path } = new URL(spec['peers.endpoints'][0]);
  const options = { hostname, port, path, agent: new library.Agent(changes) };
  if (isTls) options.ca = fs.readFileSync(spec['tls.authority']);
  return isTls ? jayson.client.https(options) : jayson.client.http(options);
}

module.exports = async function client(kit) {
  const server = open(kit.spec);
  const isRecord = kit.spec['payload.encoding'] === 'record';
  const method = isRecord ? 'echo_record' : 'echo';
  const noAnswer = isRecord ? undefined : Buffer.alloc(0);
  let tls = 'none';
  server.on('http response', (response) => {
    tls = response.socket.getProtocol?.() ?? 'none';
  });

  /** The reply in what the library hands over; throws where the request was not sent. */
  function replyOf(request, error, response) {
    const isStatusOrBody = typeof error?.code === 'number' || error instanceof SyntaxError;
    if (error && !isStatusOrBody) throw error;
    if (error || response?.id !== request.id || response.error) return noAnswer;
    if (isRecord) return response.result;
    return typeof response.result === 'string' ? Buffer.from(response.result) : noAnswer;
  }

  async function call(message, timeoutMs) {
    let alarm;
    try {
      return await new Promise((resolve, reject) => {
        let sent = null;
        server.once('http request', (found) => { sent = found; });
        const params = [isRecord ? message : message.toString()];
        const request = server.request(method, params, (error, response) => {
          try {
            resolve(replyOf(request, error, response));
          } catch (unsent) {
            reject(unsent);
          }
        });
        alarm = setTimeout(() => {
          resolve(null);
          sent.destroy();
        }, timeoutMs);
      });
    } finally {
      clearTimeout(alarm);
    }
  }

  const discoveryNs = await kit.probe(call);
  ready(kit, { keep_alive: server.options.agent.keepAlive ? 'on' : 'off', tls }, discoveryNs);
  await kit.calls(call);
};
