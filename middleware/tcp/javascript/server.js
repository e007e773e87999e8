'use strict';
// Server and pong: a reply carries its request's number.

const { acceptAll, REPLY } = require('./frames');

module.exports = (kit) =>
  acceptAll(kit, (frames) => (kind, number, payload) => {
    const request = kit.serve(payload);
    if (request.reply === null) return;
    const left = () => {}; // the client's call is its own record
    frames.send(REPLY, number, request.reply).then(() => kit.served(request), left);
  });
