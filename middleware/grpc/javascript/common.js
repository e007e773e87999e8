'use strict';
// Code that client and server share.

const grpc = require('@grpc/grpc-js');
const { version } = require('@grpc/grpc-js/package.json');
const protoLoader = require('@grpc/proto-loader');
const { version: loader } = require('@grpc/proto-loader/package.json');
const { isTls, ready: tellReady } = require('web');

/** The service; 64-bit numbers are strings of digits, as in the kit's records. */
function calls() {
  const options = { keepCase: true, longs: String, defaults: true };
  const found = protoLoader.loadSync(require.resolve('wattwire.proto'), options);
  return grpc.loadPackageDefinition(found).wattwire.Calls;
}

/** The method of a run, and the conversion of its messages to and from the kit's. */
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

/** Prints READY. */
function ready(kit, known, discoveryNs) {
  const library = { name: '@grpc/grpc-js', version, build: `proto-loader ${loader}` };
  const tls = isTls(kit.spec) ? 'on' : 'none';
  tellReady(kit, library, { tls, transport: 'http/2 over tcp/ipv4', ...known }, discoveryNs);
}

module.exports = { calls, methodOf, ready };
