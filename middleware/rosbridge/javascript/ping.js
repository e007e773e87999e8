'use strict';
// Pingpong over two topics of the bridge.

const { now } = require('wattwire');
const { connect } = require('./session');

module.exports = async function ping(kit) {
  const beginNs = now();
  const session = await connect(kit);
  let receive = () => {}; // handles a reply while a call is open

  async function call(message, timeoutMs) {
    let alarm;
    try {
      return await new Promise((resolve) => {
        alarm = setTimeout(resolve, timeoutMs, null);
        receive = (reply) => {
          // A std_msgs message has no call number: only the payload identifies the call.
          if (kit.isReply(reply, message)) resolve(reply);
        };
        session.publish(message);
      });
    } finally {
      clearTimeout(alarm);
      receive = () => {};
    }
  }

  session.publishOn('request');
  session.subscribe('reply', (reply) => receive(reply));
  await session.connected();
  await kit.probe(call);
  session.ready(now() - beginNs);
  await kit.calls(call);
  await session.close();
};
