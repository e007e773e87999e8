'use strict';
// Client and ping: node:http with an agent, which axios, got and node-fetch also use.

const http = require('node:http');
const https = require('node:https');
const { isTls, ready, requestOptions, timed } = require('web');
const { bodyOf, VERSION } = require('./common');

const CONTENT_TYPES = {
  bytes: 'application/octet-stream',
  text: 'text/plain; charset=utf-8',
  record: 'application/json',
};

function decoded(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

module.exports = async function client(kit) {
  const { request: post } = isTls(kit.spec) ? https : http;
  const body = bodyOf(kit.spec);
  const isRecord = body === 'record';
  const headers = { 'Content-Type': CONTENT_TYPES[body] };
  const options = { ...requestOptions(kit.spec), method: 'POST', headers };
  let tls = 'none';

  function take(response, resolve, reject) {
    const chunks = [];
    tls = response.socket.getProtocol?.() ?? 'none';
    response.on('data', (chunk) => chunks.push(chunk));
    response.on('end', () => {
      const { statusCode } = response;
      if (statusCode !== 200) return reject(new Error(`HTTP status ${statusCode}`));
      const found = Buffer.concat(chunks);
      return resolve(isRecord ? decoded(found) : found);
    });
  }

  const call = (message, timeoutMs) =>
    timed(timeoutMs, (resolve, reject) => {
      const request = post(options, (response) => take(response, resolve, reject));
      request.on('error', reject);
      request.end(isRecord ? JSON.stringify(message) : message);
      return () => request.destroy();
    });

  const discoveryNs = await kit.probe(call);
  const { node: version, llhttp } = process.versions;
  const keepAlive = options.agent.keepAlive ? 'on' : 'off';
  const made = { name: 'node:http', version, build: `llhttp ${llhttp}` };
  ready(kit, made, { http_version: VERSION, keep_alive: keepAlive, tls }, discoveryNs);
  await kit.calls(call);
};
