'use strict';
// RPC node: JSON-RPC 2.0 over HTTP by jayson at both ends; ../README.md has the wire.

const { run } = require('wattwire');

run({
  roles: { client: './client', server: './server', ping: './client', pong: './server' },
  settings: { keep_alive: null, tcp_nodelay: null, tls: null, server_workers: [0, 1] },
  capabilities: [
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
  bytesMax: { text: 16_777_216, record: 4_194_304 },
});
