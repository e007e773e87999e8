'use strict';
// REST node: a server on express, a client on node:http; ../README.md has the wire.

const { run } = require('wattwire');

run({ client: './client', server: './server', ping: './client', pong: './server' });
