'use strict';
// Server and pong: jayson's HTTP server with one method for each encoding.

const { once } = require('node:events');
const fs = require('node:fs');
const jayson = require('jayson');
const { line } = require('wattwire');
const { ready, version } = require('./common');

const INVALID_PARAMS = -32602;
const FOREIGN = -32000;

/** The methods of ../README.md; what has the wrong type is counted where it is a record. */
function methods(kit) {
  const isRecord = kit.spec['payload.encoding'] === 'record';
  const answer = (params, callback) => {
    const isOne = Array.isArray(params) && params.length === 1;
    if (!isOne || (!isRecord && typeof params[0] !== 'string'))
      return callback({ code: INVALID_PARAMS, message: 'Invalid params' });
    const found = kit.serve(isRecord ? params[0] : Buffer.from(params[0]));
    if (found.reply === null && found.isForeign)
      return callback({ code: FOREIGN, message: 'a request of another run' });
    if (found.reply === null) return callback({ code: INVALID_PARAMS, message: 'Invalid params' });
    callback(null, isRecord ? found.reply : found.reply.toString());
    return kit.served(found); // the response was written by then
  };
  return { [isRecord ? 'echo_record' : 'echo']: answer };
}

module.exports = async function serve(kit) {
  const { spec } = kit;
  const server = new jayson.Server(methods(kit));
  const isTls = spec['tls.authority'] !== '';
  const listener = isTls ? server.https({
    cert: fs.readFileSync(spec['tls.certificate']),
    key: fs.readFileSync(spec['tls.key']),
  }) : server.http();
  if (spec['settings.tcp_nodelay'] === 'off')
    listener.on('connection', (socket) => socket.setNoDelay(false));
  listener.listen({ host: '127.0.0.1', port: 0 });
  await once(listener, 'listening');
  const scheme = isTls ? 'https' : 'http';
  line('LISTENING', { endpoints: [`${scheme}://127.0.0.1:${listener.address().port}/`] });
  const tls = isTls ? 'TLSv1.3' : 'none';
  ready(kit, { server: `jayson ${version}`, server_workers: 1, tls });
  await kit.drain();
};
