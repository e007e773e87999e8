'use strict';
// What client and server share.

const grpc = require('@grpc/grpc-js');
const { version } = require('@grpc/grpc-js/package.json');
const protoLoader = require('@grpc/proto-loader');
const { version: loader } = require('@grpc/proto-loader/package.json');
const { isTls, ready: tellReady } = require('web');

/** The service; numbers of 64 bits are strings of digits, as in the kit's records. */
function calls() {
  const options = { keepCase: true, longs: String, defaults: true };
  const found = protoLoader.loadSync(require.resolve('wattwire.proto'), options);
  return grpc.loadPackageDefinition(found).wattwire.Calls;
}

/** The method of a run, and how its messages become the kit's and the reverse. */
function methodOf(spec) {
  if (spec.payloadEncoding === 'record') {
    const same = (record) => record;
    return { name: 'Record', toKit: same, toWire: same };
  }
  if (spec.payloadEncoding === 'text' || spec.payloadLiteral !== '') {
    const toKit = ({ data }) => Buffer.from(data);
    return { name: 'Text', toKit, toWire: (message) => ({ data: message.toString() }) };
  }
  return { name: 'Bytes', toKit: ({ data }) => data, toWire: (message) => ({ data: message }) };
}

/** READY. */
function ready(kit, known, discoveryNs) {
  const library = { name: '@grpc/grpc-js', version, build: `proto-loader ${loader}` };
  const tls = isTls(kit.spec) ? 'on' : 'none';
  tellReady(kit, library, { tls, transport: 'http/2 over tcp/ipv4', ...known }, discoveryNs);
}

module.exports = { calls, methodOf, ready };
