'use strict';
// REST node: a server on express, a client on node:http; ../README.md has the wire.

const { run } = require('wattwire');

run({
  roles: { client: './client', server: './server', ping: './client', pong: './server' },
  settings: {
    http_version: ['default', '1.1'],
    keep_alive: null,
    tcp_nodelay: null,
    tls: null,
    server_workers: [0, 1],
  },
  capabilities: [
    'encoding.bytes',
    'encoding.text',
    'encoding.record',
    'pacing.kit',
    'loop.open',
    'loop.closed',
    'reply.echo',
    'reply.ack',
    'reply.literal',
    'literal',
    'async_client',
    'tls',
  ],
  bytesMax: { bytes: 16_777_216, text: 16_777_216, record: 4_194_304 },
});
