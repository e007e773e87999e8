'use strict';
// Answers each request of a ping, from the library's callback.

const { connect } = require('./session');

module.exports = async function pong(kit) {
  const session = await connect(kit);
  // A ping that subscribes anew for each reply (`wait = poll`) receives only a latched one.
  session.publishOn('reply', kit.spec.settings.wait === 'poll');
  session.subscribe('request', (payload) => {
    const request = kit.serve(payload);
    if (request.reply === null) return;
    session.publish(request.reply);
    kit.served(request);
  });
  session.ready(await session.connected());
  await kit.drain();
  await session.close();
};
