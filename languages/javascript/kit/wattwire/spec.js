'use strict';
// Reads a spec into typed fields (C-02), and checks it against what it declares (C-03).

const fs = require('node:fs');
const { isIPv4 } = require('node:net');
const { CONTRACT, Spec } = require('./constants');
const { nodeError } = require('./dialogue');

const SETTING = 'settings.';
const ALLOWED = 'declared.allowed.';

const isString = (value) => typeof value === 'string';
const isBoolean = (value) => typeof value === 'boolean';

/** The lists of declared settings, each with the type of its settings. */
const SETTING_LISTS = [
  ['declared.string_settings', isString, 'a string'],
  ['declared.integer_settings', Number.isInteger, 'an integer'],
  ['declared.boolean_settings', isBoolean, 'true or false'],
];

function badSpec(key, found, allowed) {
  return nodeError(2, `${key}: found ${JSON.stringify(found)}; allowed: ${allowed}`, key);
}

/** The values of a spec's JSON object; reading a value checks its type. */
class Values {
  constructor(document) {
    this.document = document;
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
   * Returns the declared settings by name. Throws an error for a setting that is not declared.
   * @returns {Record<string, string | number | boolean>}
   */
  settings() {
    const settings = {};
    for (const [list, isType, type] of SETTING_LISTS) {
      for (const name of this.strings(list)) {
        settings[name] = this.checked(SETTING + name, isType, type);
      }
    }
    for (const [name, value] of this.withPrefix(SETTING)) {
      if (!Object.hasOwn(settings, name)) {
        throw badSpec(SETTING + name, value, `settings ${Object.keys(settings)}`);
      }
    }
    return settings;
  }

  /**
   * Returns the supported values by setting, for the settings of which only some are supported.
   * @returns {Record<string, Array<string | number | boolean>>}
   */
  allowed() {
    const names = this.withPrefix(ALLOWED).map(([name]) => name);
    const list = (name) => this.checked(ALLOWED + name, Array.isArray, 'a list');
    return Object.fromEntries(names.map((name) => [name, list(name)]));
  }

  /** Returns the rest of the key and the value of each key with a prefix. */
  withPrefix(prefix) {
    const entries = Object.entries(this.document).filter(([key]) => key.startsWith(prefix));
    return entries.map(([key, value]) => [key.slice(prefix.length), value]);
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

/** Returns the Spec in a file. */
function readSpec(path) {
  const document = parsed(path);
  if (document === null || typeof document !== 'object' || Array.isArray(document)) {
    throw badSpec('--spec', path, 'a file with a JSON object');
  }
  const { contract } = document;
  if (contract !== CONTRACT) throw badSpec('contract', contract, `${CONTRACT}`);
  const spec = new Spec(new Values(document));
  checkAddress('host.address', spec.hostAddress);
  for (const address of spec.peersAddresses) checkAddress('peers.addresses', address);
  return spec;
}

/** Returns the names of the capabilities that a spec requires (C-03). */
function neededCapabilities(spec) {
  const needed = [`encoding.${spec.payloadEncoding}`, `pacing.${spec.pacing}`, `loop.${spec.loop}`];
  if (spec.pattern !== 'topic') needed.push(`reply.${spec.reply}`);
  if (spec.payloadLiteral !== '') needed.push('literal');
  const isCaller = spec.role === 'client' || spec.role === 'ping';
  if (isCaller && spec.loop === 'open' && spec.outstandingMax > 1) needed.push('async_client');
  return needed;
}

/** Returns the declared bounds of `payload.bytes` for the encoding of the spec. */
function declaredSizes(spec) {
  const { payloadEncoding: encoding, declaredPayloadBytesMin: bytesMin } = spec;
  if (encoding === 'record') return [0, spec.declaredRecordBytesMax];
  const shortest = encoding === 'text' ? 2 * bytesMin : bytesMin;
  return [spec.payloadLiteral === '' ? shortest : 0, spec.declaredPayloadBytesMax];
}

/** Rejects a spec that requires something that it does not declare, or a role without a module. */
function checkDeclaration(spec, roles) {
  const isDeclared = (name) => spec.declaredCapabilities.includes(name);
  const missing = neededCapabilities(spec).filter((name) => !isDeclared(name));
  const hasRole = Object.hasOwn(roles, spec.role) && spec.declaredRoles.includes(spec.role);
  if (!hasRole) missing.push(`role ${spec.role}`);

  const { payloadBytes: bytes } = spec;
  const [least, most] = declaredSizes(spec);
  if (bytes < least || bytes > most) {
    missing.push(`payload.bytes ${bytes} (supported: ${least} to ${most})`);
  }
  for (const [name, allowed] of Object.entries(spec.allowed)) {
    const value = spec.settings[name];
    if (!allowed.includes(value)) missing.push(`${name} = ${value} (supported: ${allowed})`);
  }
  if (missing.length > 0) throw nodeError(3, `this cell does not have ${missing.join(', ')}`);
}

module.exports = { badSpec, checkDeclaration, readSpec };
