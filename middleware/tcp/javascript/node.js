'use strict';
// TCP node: length-prefixed frames, one connection for each pair of nodes.

const { run } = require('wattwire');

run({
  publisher: './publisher',
  subscriber: './subscriber',
  client: './client',
  server: './server',
  ping: './client',
  pong: './server',
});
