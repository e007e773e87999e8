'use strict';
// Receives the messages of all publishers.

const { acceptAll } = require('./frames');

module.exports = (kit) => acceptAll(kit, () => (kind, number, payload) => kit.receive(payload));
