'use strict';
// What client and server share.

const VERSION = '1.1'; // of HTTP: what node:http speaks

/** What a run's bodies are: bytes, text or record. */
function bodyOf(spec) {
  return spec.payloadLiteral === '' ? spec.payloadEncoding : 'text';
}

module.exports = { bodyOf, VERSION };
