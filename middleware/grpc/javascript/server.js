'use strict';
// Server and pong.

const { promisify } = require('node:util');
const grpc = require('@grpc/grpc-js');
const { isTls, secrets } = require('web');
const { line } = require('wattwire');
const { calls, methodOf, ready } = require('./common');

function credentials(spec) {
  if (!isTls(spec)) return grpc.ServerCredentials.createInsecure();
  const { cert: cert_chain, key: private_key } = secrets(spec);
  return grpc.ServerCredentials.createSsl(null, [{ private_key, cert_chain }]);
}

module.exports = async function serve(kit) {
  const { name, toKit, toWire } = methodOf(kit.spec);
  const { FAILED_PRECONDITION, INVALID_ARGUMENT } = grpc.status;
  const answer = (call, callback) => {
    const found = kit.serve(toKit(call.request));
    if (found.reply === null) {
      const code = found.isForeign ? FAILED_PRECONDITION : INVALID_ARGUMENT;
      callback({ code, details: 'not a request of this run' });
      return;
    }
    callback(null, toWire(found.reply));
    kit.served(found);
  };
  const server = new grpc.Server();
  server.addService(calls().service, { [name]: answer });
  const bind = promisify(server.bindAsync.bind(server));
  const host = kit.spec.hostAddress;
  const port = await bind(`${host}:0`, credentials(kit.spec));
  line('LISTENING', { endpoints: [`${host}:${port}`] });
  ready(kit, { server_workers: 1 });
  await kit.drain();
};
