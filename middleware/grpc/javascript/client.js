'use strict';
// Client and ping.

const fs = require('node:fs');
const grpc = require('@grpc/grpc-js');
const { isTls } = require('web');
const { calls, methodOf, ready } = require('./common');

module.exports = async function client(kit) {
  const { spec } = kit;
  const { name, toKit, toWire } = methodOf(spec);
  const Calls = calls();
  const { DEADLINE_EXCEEDED } = grpc.status;
  const credentials = isTls(spec)
    ? grpc.credentials.createSsl(fs.readFileSync(spec.tlsAuthority))
    : grpc.credentials.createInsecure();
  // A global pool would reuse a closed channel's connection for the next channel.
  const options = { 'grpc.use_local_subchannel_pool': 1 };
  const open = () => new Calls(spec.peersEndpoints[0], credentials, options);
  const isKept = spec.settings.keep_alive !== 'off';
  const kept = isKept ? open() : null;

  async function call(message, timeoutMs) {
    const stub = kept ?? open();
    try {
      return await new Promise((resolve, reject) => {
        const deadline = Date.now() + timeoutMs;
        stub[name](toWire(message), { deadline }, (error, reply) => {
          if (!error) resolve(toKit(reply));
          else if (error.code === DEADLINE_EXCEEDED) resolve(null);
          else reject(error);
        });
      });
    } finally {
      if (!isKept) stub.close();
    }
  }

  const discoveryNs = await kit.probe(call);
  ready(kit, { keep_alive: isKept ? 'on' : 'off' }, discoveryNs);
  await kit.calls(call);
};
