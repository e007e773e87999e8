'use strict';
// Code that client and server share.

const VERSION = '1.1'; // the HTTP version of node:http

/** Returns the form of a run's bodies: bytes, text or record. */
function bodyOf(spec) {
  return spec.payloadLiteral === '' ? spec.payloadEncoding : 'text';
}

module.exports = { bodyOf, VERSION };
