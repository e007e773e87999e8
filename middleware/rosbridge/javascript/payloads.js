'use strict';
// Payloads in the messages of std_msgs, in JSON and in the encodings that the library has decoded.

const { nodeError } = require('wattwire');

/** Value of the setting `encoding` → value of `compression` in a subscribe. */
const COMPRESSIONS = { json: 'none', cbor: 'cbor', 'cbor-raw': 'cbor-raw' };
const LENGTH_BYTES = 4;
/** The layout before the data of a std_msgs/UInt8MultiArray: two numbers of 32 bits. */
const LAYOUT_BYTES = 8;

/** Returns the message in JSON: a text as it is, bytes in base64. */
function messageOf(payload, isText) {
  return { data: payload.toString(isText ? 'utf8' : 'base64') };
}

function failed(message, reason) {
  const shown = JSON.stringify(message).slice(0, 120);
  return nodeError(4, `the bridge sent ${shown}, which has no payload: ${reason}`);
}

/** Returns the data of a serialized std_msgs/UInt8MultiArray or std_msgs/String. */
function deserialized(message, isText) {
  const { bytes } = message;
  const whole = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const start = isText ? 0 : LAYOUT_BYTES;
  if (whole.length < start + LENGTH_BYTES) throw failed(message, `it has ${whole.length} bytes`);
  if (!isText && whole.readUInt32LE(0) !== 0) throw failed(message, 'its layout has dimensions');
  const data = whole.subarray(start + LENGTH_BYTES);
  const length = whole.readUInt32LE(start);
  if (length !== data.length) {
    throw failed(message, `the data has ${data.length} bytes; its length says ${length}`);
  }
  return data;
}

/** Returns the function from a message, as the library passes it on, to the payload. */
function payloadReader(encoding, isText) {
  return (message) => {
    if (encoding === 'cbor-raw' && message.bytes instanceof Uint8Array) {
      return deserialized(message, isText);
    }
    const { data } = message;
    if (encoding === 'cbor' && !isText && data instanceof Uint8Array) {
      return Buffer.from(data.buffer, data.byteOffset, data.byteLength);
    }
    if (typeof data !== 'string') throw failed(message, 'data has another type');
    if (encoding === 'cbor-raw' || (encoding === 'cbor' && !isText)) {
      throw nodeError(
        4,
        `the bridge speaks no CBOR: subscribed with the compression '${encoding}', it sent ` +
          "JSON. Use settings.encoding = 'json', or a bridge with CBOR",
      );
    }
    return Buffer.from(data, isText ? 'utf8' : 'base64');
  };
}

module.exports = { COMPRESSIONS, messageOf, payloadReader };
