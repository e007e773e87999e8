'use strict';
// Client and ping: the frame's number matches a reply to its call.

const { connectAll, ready, REQUEST, REPLY } = require('./frames');

module.exports = async function client(kit) {
  const waiting = new Map(); // number of a call → { resolve, reject } of its promise
  let calls = 0;
  const handle = (kind, number, payload) => {
    if (kind === REPLY) waiting.get(number)?.resolve(payload);
  };
  const ended = () => {
    const error = new Error('the server closed the connection');
    for (const pending of waiting.values()) pending.reject(error);
  };
  const [server] = await connectAll(kit, handle, ended);

  async function call(message, timeoutMs) {
    const number = calls;
    calls += 1;
    let alarm;
    try {
      return await new Promise((resolve, reject) => {
        waiting.set(number, { resolve, reject });
        alarm = setTimeout(resolve, timeoutMs, null);
        server.send(REQUEST, number, message).catch(reject);
      });
    } finally {
      clearTimeout(alarm);
      waiting.delete(number);
    }
  }

  ready(kit, 1, await kit.probe(call));
  await kit.calls(call);
};
