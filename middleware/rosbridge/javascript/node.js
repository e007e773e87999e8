'use strict';
// A client of the bridge in JavaScript, on roslib.

const { run } = require('wattwire');

run({
  roles: {
    publisher: './publisher',
    subscriber: './subscriber',
    ping: './ping',
    pong: './pong',
  },
  settings: {
    server: ['websocket'],
    encoding: null,
    wait: null,
    tcp_nodelay: null,
    queue_size: null,
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
  ],
  bytesMax: { bytes: 8_388_608, text: 8_388_608 },
});
