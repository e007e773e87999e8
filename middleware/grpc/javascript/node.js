'use strict';
// gRPC node: grpc-js at both ends; ../README.md has the methods.

const { run } = require('wattwire');

run({
  roles: { client: './client', server: './server', ping: './client', pong: './server' },
  settings: { keep_alive: null, tls: null, server_workers: [0, 1] },
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
  bytesMax: { bytes: 4_000_000, text: 4_000_000, record: 3_000_000 },
});
