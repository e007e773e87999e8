'use strict';
// TCP node: length-prefixed frames, one connection for each pair of nodes.

const { run } = require('wattwire');

run({
  roles: {
    publisher: './publisher',
    subscriber: './subscriber',
    client: './client',
    server: './server',
    ping: './client',
    pong: './server',
  },
  // The last four are limited: the library has no call for three, and this cell has no second
  // connection (node.toml).
  settings: {
    bind_address: null,
    tcp_nodelay: null,
    writes: null,
    tcp_quickack: ['default'],
    connections: [1],
    receive_buffer_bytes: [0],
    send_buffer_bytes: [0],
  },
  capabilities: [
    'encoding.bytes',
    'encoding.text',
    'pacing.kit',
    'loop.open',
    'loop.closed',
    'reply.echo',
    'reply.ack',
    'reply.literal',
    'literal',
    'async_client',
  ],
});
