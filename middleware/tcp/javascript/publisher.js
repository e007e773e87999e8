'use strict';
// Sends each message once to every subscriber.

const { now } = require('wattwire');
const { connectAll, ready, MESSAGE } = require('./frames');

module.exports = async function publish(kit) {
  const beginNs = now();
  const subscribers = await connectAll(kit);
  ready(kit, subscribers.length, now() - beginNs);
  await kit.calls(async (message) => {
    const sent = subscribers.map((frames) => frames.send(MESSAGE, 0, message));
    // Send to all subscribers, even if a send fails.
    const failed = (await Promise.allSettled(sent)).find((one) => one.status === 'rejected');
    if (failed) throw failed.reason;
  });
};
