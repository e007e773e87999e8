'use strict';
// Receives the messages of the topic.

const { connect } = require('./session');

module.exports = async function subscribe(kit) {
  const session = await connect(kit);
  session.subscribe('topic', (payload) => kit.receive(payload));
  session.ready(await session.connected());
  await kit.drain();
  await session.close();
};
