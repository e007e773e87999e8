'use strict';
// Server and pong: a reply carries its request's number.

const { SendFailed } = require('wattwire');
const { acceptAll, REPLY } = require('./frames');

module.exports = (kit) => acceptAll(kit, (frames) => async (kind, number, payload) => {
  const request = kit.serve(payload);
  if (request === null) return;
  try {
    await frames.send(REPLY, number, request.reply);
    kit.served(request);
  } catch (error) {
    if (!(error instanceof SendFailed)) throw error;
    // The client has left; its call is its own record.
  }
});
