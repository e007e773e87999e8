'use strict';
// Code that client and server share.

const { version } = require('jayson/package.json');

module.exports = { library: { name: 'jayson', version, build: `Node.js ${process.version}` } };
