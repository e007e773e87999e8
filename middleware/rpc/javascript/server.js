'use strict';
// Server and pong: jayson's HTTP server with one method for each encoding.

const jayson = require('jayson');
const { isTls, listen, ready, secrets } = require('web');
const { library } = require('./common');

const INVALID_PARAMS = -32602;
const FOREIGN = -32000;

/** The methods of ../README.md; a record of a wrong type is passed to the kit and counted. */
function methods(kit) {
  const isRecord = kit.spec.payloadEncoding === 'record';
  const answer = (params, callback) => {
    const isOne = Array.isArray(params) && params.length === 1;
    if (!isOne || (!isRecord && typeof params[0] !== 'string')) {
      return callback({ code: INVALID_PARAMS, message: 'Invalid params' });
    }
    const found = kit.serve(isRecord ? params[0] : Buffer.from(params[0]));
    if (found.reply === null && found.isForeign) {
      return callback({ code: FOREIGN, message: 'a request of another run' });
    }
    if (found.reply === null) return callback({ code: INVALID_PARAMS, message: 'Invalid params' });
    callback(null, isRecord ? found.reply : found.reply.toString());
    return kit.served(found); // the response has been written
  };
  return { [isRecord ? 'echo_record' : 'echo']: answer };
}

module.exports = async function serve(kit) {
  const { spec } = kit;
  const server = new jayson.Server(methods(kit));
  const listener = isTls(spec) ? server.https(secrets(spec)) : server.http();
  if (spec.settings.tcp_nodelay === 'off') {
    listener.on('connection', (socket) => socket.setNoDelay(false));
  }
  await listen(kit, listener, '/');
  const tls = isTls(spec) ? 'TLSv1.3' : 'none';
  ready(kit, library, { server: `jayson ${library.version}`, server_workers: 1, tls });
  await kit.drain();
};
