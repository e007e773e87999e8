'use strict';
// Client and ping: jayson's HTTP client, with an agent of Node.js's.

const jayson = require('jayson');
const { isTls, ready, requestOptions, timed } = require('web');
const { library } = require('./common');

module.exports = async function client(kit) {
  // jayson passes its options to http.request.
  const server = jayson.client[isTls(kit.spec) ? 'https' : 'http'](requestOptions(kit.spec));
  const isRecord = kit.spec.payloadEncoding === 'record';
  const method = isRecord ? 'echo_record' : 'echo';
  const noAnswer = isRecord ? undefined : Buffer.alloc(0);
  let tls = 'none';
  let last = null;
  server.on('http request', (request) => {
    last = request;
  });
  if (isTls(kit.spec)) {
    server.on('http response', (response) => {
      tls = response.socket.getProtocol();
    });
  }

  /** Returns the reply in the library's response; throws an error if the call failed (C-36). */
  function replyOf(request, error, response) {
    if (typeof error?.code === 'number') throw new Error(`HTTP status ${error.code}`);
    if (error && !(error instanceof SyntaxError)) throw error;
    if (response?.error) throw new Error(`JSON-RPC error ${JSON.stringify(response.error)}`);
    if (error || response?.id !== request.id) return noAnswer;
    if (isRecord) return response.result;
    return typeof response.result === 'string' ? Buffer.from(response.result) : noAnswer;
  }

  const call = (message, timeoutMs) =>
    timed(timeoutMs, (resolve, reject) => {
      const params = [isRecord ? message : message.toString()];
      const request = server.request(method, params, (error, response) => {
        try {
          resolve(replyOf(request, error, response));
        } catch (failure) {
          reject(failure);
        }
      });
      const sent = last; // the request that the statement above created
      return () => sent.destroy();
    });

  const discoveryNs = await kit.probe(call);
  const keepAlive = server.options.agent.keepAlive ? 'on' : 'off';
  ready(kit, library, { keep_alive: keepAlive, tls }, discoveryNs);
  await kit.calls(call);
};
