'use strict';
// gRPC node: grpc-js at both ends; ../README.md has the methods.

const { run } = require('wattwire');

run({ client: './client', server: './server', ping: './client', pong: './server' });
