'use strict';
// Publishes each message on the topic.

const { setImmediate: turn } = require('node:timers/promises');
const { connect } = require('./session');

module.exports = async function publish(kit) {
  const session = await connect(kit);
  session.publishOn('topic');
  session.ready(await session.connected());
  await kit.calls(async (message) => {
    session.publish(message);
    await turn(); // the library does not report that it has written; the socket needs the loop
  });
  await session.close();
};
