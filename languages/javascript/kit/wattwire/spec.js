'use strict';
// Reads a spec into typed fields (C-02), and checks the capabilities that it requires (C-03).

const fs = require('node:fs');
const { isIPv4 } = require('node:net');
const { CONTRACT, Spec } = require('./constants');
const { nodeError } = require('./dialogue');

const SETTINGS_PREFIX = 'settings.';
/** Minimum payload sizes by encoding: the header, or a record without samples. */
const BYTES_MIN = { bytes: 16, text: 32, record: 96 };

const isString = (value) => typeof value === 'string';

function badSpec(key, found, allowed) {
  return nodeError(2, `${key}: found ${JSON.stringify(found)}; allowed: ${allowed}`, key);
}

/** The values of a spec's JSON object; reading a value checks its type. */
class Values {
  constructor(document, knownSettings) {
    this.document = document;
    this.knownSettings = knownSettings;
  }

  checked(key, isType, type) {
    const value = this.document[key];
    if (!isType(value)) throw badSpec(key, value, type);
    return value;
  }

  /** @returns {string} */
  string(key) {
    return this.checked(key, isString, 'a string');
  }

  /** @returns {number} */
  integer(key) {
    return this.checked(key, Number.isInteger, 'an integer');
  }

  /** @returns {string[]} */
  strings(key) {
    const isList = (value) => Array.isArray(value) && value.every(isString);
    return this.checked(key, isList, 'a list of strings');
  }

  /** @returns {number[]} */
  integers(key) {
    const isList = (value) => Array.isArray(value) && value.every(Number.isInteger);
    return this.checked(key, isList, 'a list of integers');
  }

  /**
   * Returns the settings by name. Throws an error for a setting that the cell does not know.
   * @returns {Record<string, string | number | boolean>}
   */
  settings() {
    const settings = {};
    for (const [key, value] of Object.entries(this.document)) {
      if (!key.startsWith(SETTINGS_PREFIX)) continue;
      const name = key.slice(SETTINGS_PREFIX.length);
      if (!this.knownSettings.includes(name)) {
        throw badSpec(key, value, `settings ${this.knownSettings}`);
      }
      settings[name] = value;
    }
    return settings;
  }
}

function parsed(path) {
  try {
    return JSON.parse(fs.readFileSync(path, 'utf8'));
  } catch {
    return null; // rejected below like other values that are not objects
  }
}

function checkAddress(key, address) {
  if (!isIPv4(address)) throw badSpec(key, address, 'an IPv4 address');
}

/** Returns the Spec in a file; `knownSettings` are the names of the cell's settings. */
function readSpec(path, knownSettings) {
  const document = parsed(path);
  if (document === null || typeof document !== 'object' || Array.isArray(document)) {
    throw badSpec('--spec', path, 'a file with a JSON object');
  }
  const spec = new Spec(new Values(document, knownSettings));
  if (spec.contract !== CONTRACT) throw badSpec('contract', spec.contract, `${CONTRACT}`);
  checkAddress('host.address', spec.hostAddress);
  for (const address of spec.peersAddresses) checkAddress('peers.addresses', address);
  return spec;
}

/** Returns the names of the capabilities that a spec requires (C-03). */
function neededCapabilities(spec) {
  const needed = [`encoding.${spec.payloadEncoding}`, `pacing.${spec.pacing}`, `loop.${spec.loop}`];
  if (spec.pattern !== 'topic') needed.push(`reply.${spec.reply}`);
  if (spec.payloadLiteral !== '') needed.push('literal');
  if (spec.tlsAuthority !== '') needed.push('tls');
  const isCaller = spec.role === 'client' || spec.role === 'ping';
  if (isCaller && spec.loop === 'open' && spec.outstandingMax > 1) needed.push('async_client');
  return needed;
}

/** Rejects a spec that the cell (see `run`) does not support. */
function checkCapabilities(spec, { roles, settings, capabilities, bytesMax = {} }) {
  const missing = neededCapabilities(spec).filter((name) => !capabilities.includes(name));
  if (!Object.hasOwn(roles, spec.role)) missing.push(`role ${spec.role}`);

  const bytes = spec.payloadBytes;
  const isTooShort = spec.payloadLiteral === '' && bytes < BYTES_MIN[spec.payloadEncoding];
  const isTooLong = bytes > (bytesMax[spec.payloadEncoding] ?? Infinity);
  if (isTooShort || isTooLong) missing.push(`${bytes} bytes`);

  for (const [name, allowed] of Object.entries(settings)) {
    if (allowed !== null && !allowed.includes(spec.settings[name])) {
      missing.push(`${name} = ${spec.settings[name]}`);
    }
  }
  if (missing.length > 0) throw nodeError(3, `this cell does not have ${missing.join(', ')}`);
}

module.exports = { badSpec, checkCapabilities, readSpec };
