'use strict';
// Server and pong: express, with a handler on one path.

const http = require('node:http');
const https = require('node:https');
const express = require('express');
const { version } = require('express/package.json');
const { isTls, listen, ready, secrets } = require('web');
const { bodyOf, VERSION } = require('./common');

const LIMIT_BYTES = 64 * 2 ** 20; // limit of a body; a record's JSON is longer than the record

function application(kit) {
  const body = bodyOf(kit.spec);
  const limit = LIMIT_BYTES;
  const parser = {
    bytes: () => express.raw({ limit }),
    text: () => express.text({ limit }),
    record: () => express.json({ limit }),
  }[body]();
  const app = express();
  app.post('/echo', parser, (request, response) => {
    const isRead = body === 'record' || request.body?.length > 0;
    if (!isRead) return response.status(400).end();
    const data = body === 'text' ? Buffer.from(request.body) : request.body;
    const found = kit.serve(data);
    if (found.reply === null) return response.status(found.isForeign ? 409 : 400).end();
    if (body === 'record') response.json(found.reply);
    else if (body === 'text') response.type('text/plain').send(found.reply.toString());
    else response.type('application/octet-stream').send(found.reply);
    return kit.served(found); // the last byte of the response has been written
  });
  // eslint-disable-next-line no-unused-vars -- express knows a handler of errors by its four
  app.use((error, request, response, next) => {
    // Invalid JSON is counted; an interrupted request has not arrived.
    if (error.type === 'entity.parse.failed') kit.serve(undefined);
    response.status(400).end();
  });
  return app;
}

module.exports = async function serve(kit) {
  const nodelay = kit.spec.settings.tcp_nodelay;
  const options = secrets(kit.spec);
  if (nodelay !== 'default') options.noDelay = nodelay === 'on';
  const { createServer } = isTls(kit.spec) ? https : http;
  const server = createServer(options, application(kit));
  await listen(kit, server, '/echo');
  const library = { name: 'express', version, build: `Node.js ${process.version}` };
  const tls = isTls(kit.spec) ? (server.maxVersion ?? 'TLSv1.3') : 'none';
  const about = { server: `express ${version}`, server_workers: 1 };
  ready(kit, library, { http_version: VERSION, ...about, tls });
  await kit.drain();
};
