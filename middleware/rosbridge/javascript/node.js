'use strict';
// A client of the bridge in JavaScript, on roslib.

const { run } = require('wattwire');

run({ publisher: './publisher', subscriber: './subscriber', ping: './ping', pong: './pong' });
