'use strict';
// RPC node: JSON-RPC 2.0 over HTTP by jayson at both ends; ../README.md has the wire.

const { run } = require('wattwire');

run({ client: './client', server: './server', ping: './client', pong: './server' });
