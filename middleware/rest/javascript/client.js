'use strict';
// Client and ping: node:http with an agent, which axios, got and node-fetch stand on, too.

const fs = require('node:fs');
const http = require('node:http');
const https = require('node:https');
const { bodyOf, ready } = require('./common');

const CONTENT_TYPES = {
  bytes: 'application/octet-stream',
  text: 'text/plain; charset=utf-8',
  record: 'application/json',
};

/** What every request of a run has, and its library. */
function requestOptions(spec) {
  const library = spec['tls.authority'] ? https : http;
  const { 'settings.keep_alive': keepAlive, 'settings.tcp_nodelay': nodelay } = spec;
  const changes = { ...library.globalAgent.options };
  if (keepAlive !== 'default') changes.keepAlive = keepAlive === 'on';
  if (nodelay !== 'default') changes.noDelay = nodelay === 'on';
  const { hostname, port, pathname: path } = new URL(spec['peers.endpoints'][0]);
  const options = { hostname, port, path, method: 'POST', agent: new library.Agent(changes) };
  options.headers = { 'Content-Type': CONTENT_TYPES[bodyOf(spec)] };
  if (spec['tls.authority']) options.ca = fs.readFileSync(spec['tls.authority']);
  return [library, options];
}

function decoded(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

module.exports = async function client(kit) {
  const [library, options] = requestOptions(kit.spec);
  const isRecord = bodyOf(kit.spec) === 'record';
  let tls = 'none';

  function take(response, resolve) {
    const chunks = [];
    tls = response.socket.getProtocol?.() ?? 'none';
    response.on('data', (chunk) => chunks.push(chunk));
    response.on('end', () => {
      const body = Buffer.concat(response.statusCode === 200 ? chunks : []);
      resolve(isRecord ? decoded(body) : body);
    });
  }

  async function call(message, timeoutMs) {
    let alarm;
    try {
      return await new Promise((resolve, reject) => {
        const request = library.request(options, (response) => take(response, resolve));
        request.on('error', reject);
        alarm = setTimeout(() => {
          resolve(null);
          request.destroy();
        }, timeoutMs);
        request.end(isRecord ? JSON.stringify(message) : message);
      });
    } finally {
      clearTimeout(alarm);
    }
  }

  const discoveryNs = await kit.probe(call);
  const { node: version, llhttp } = process.versions;
  const keepAlive = options.agent.keepAlive ? 'on' : 'off';
  const made = { name: 'node:http', version, build: `llhttp ${llhttp}` };
  ready(kit, made, { keep_alive: keepAlive, tls }, discoveryNs);
  await kit.calls(call);
};
