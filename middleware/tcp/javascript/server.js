'use strict';
// Server and pong: a reply carries its request's number.

const { acceptAll, REPLY } = require('./frames');

module.exports = (kit) =>
  acceptAll(kit, (frames) => (kind, number, payload) => {
    const request = kit.serve(payload);
    if (request.reply === null) return;
    const left = () => {}; // the client has ended; only its own record remains
    frames.send(REPLY, number, request.reply).then(() => kit.served(request), left);
  });
