'use strict';
// Takes what every publisher sends.

const { acceptAll } = require('./frames');

module.exports = (kit) => acceptAll(kit, () => (kind, number, payload) => kit.receive(payload));
