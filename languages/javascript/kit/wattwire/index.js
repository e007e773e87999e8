'use strict';
// The Node.js kit; ../../README.md is its API.
const STARTED_NS = process.hrtime()[0] * 1e9 + process.hrtime()[1]; // C-07: the first statement
const fs = require('node:fs');
const { Kit, SendFailed, now, nodeError } = require('./kit');

const [isText, isWhole] = [(value) => typeof value === 'string', Number.isInteger];
const KEYS = [
  ['a string', isText, `run cell pattern role loop pacing payload.encoding payload.literal reply
    reply.literal verify tls.authority tls.certificate tls.key`],
  ['an integer', isWhole, `contract node index peers.count period_ns phase_ns duration_ns count
    warmup_ns overrun_ns timeout_ns outstanding_max quiet_ms linger_ms ready_timeout_ms spin_ns
    payload.bytes payload.seed action.feedback record.capacity`],
  ['a list of integers', (found) => Array.isArray(found) && found.every(isWhole), 'peers.nodes'],
  ['a list of strings', (found) => Array.isArray(found) && found.every(isText), 'peers.endpoints'],
];

function badSpec(key, found, allowed) {
  return nodeError(2, `${key}: found ${JSON.stringify(found)}; allowed: ${allowed}`, key);
}

/** The spec (C-02); `settings` are those that the cell knows, by name. */
function readSpec(path, settings) {
  const text = fs.readFileSync(path, 'utf8');
  let spec = null;
  try {
    spec = JSON.parse(text);
  } catch { /* is no object */ }
  if (spec?.constructor !== Object)
    throw badSpec('--spec', text.slice(0, 80), 'a file with a JSON object');
  for (const [type, isType, names] of KEYS)
    for (const key of names.split(/\s+/))
      if (!isType(spec[key])) throw badSpec(key, spec[key], type);
  if (spec.contract !== 2) throw badSpec('contract', spec.contract, '2');
  for (const key of Object.keys(spec))
    if (key.startsWith('settings.') && !Object.hasOwn(settings, key.slice(9)))
      throw badSpec(key, spec[key], `settings ${Object.keys(settings)}`);
  return spec;
}

/** What the cell (see `run`) lacks for this spec (C-03). */
function lacking(spec, { roles, settings, capabilities, bytesMax = {} }) {
  const { role, 'payload.encoding': encoding, 'payload.bytes': bytes } = spec;
  const isLiteral = spec['payload.literal'] !== '';
  const overlaps = ['client', 'ping'].includes(role) && spec.outstanding_max > 1;
  const needed = [`encoding.${encoding}`, `pacing.${spec.pacing}`, `loop.${spec.loop}`,
    spec.pattern !== 'topic' && `reply.${spec.reply}`, isLiteral && 'literal',
    spec['tls.authority'] !== '' && 'tls', overlaps && spec.loop === 'open' && 'async_client'];
  const found = needed.filter((name) => name && !capabilities.includes(name));
  if (!Object.hasOwn(roles, role)) found.push(`role ${role}`);
  const least = isLiteral ? 0 : { bytes: 16, text: 32, record: 96 }[encoding];
  if (bytes < least || bytes > (bytesMax[encoding] ?? Infinity))
    found.push(`payload.bytes = ${bytes} with ${encoding}`);
  for (const [name, allowed] of Object.entries(settings))
    if (allowed && !allowed.includes(spec[`settings.${name}`]))
      found.push(`settings.${name} = ${spec[`settings.${name}`]}`);
  return found;
}

/** Runs this node and ends the process. */
async function run(cell) {
  const fail = (error) => {
    const { exitCode: code = 4, key = null } = error;
    if (!error.exitCode) console.error(error);
    Kit.line('ERROR', { code, key, reason: error.message });
    process.exit(code);
  };
  process.on('uncaughtException', fail);
  const words = process.argv.slice(2);
  const { '--spec': path, '--out': out } = { [words[0]]: words[1], [words[2]]: words[3] };
  if (words.length !== 4 || !path || !out)
    throw badSpec('command line', words, '--spec FILE --out DIR');
  const spec = readSpec(path, cell.settings);
  const found = lacking(spec, cell);
  if (found.length > 0) throw nodeError(3, `this cell does not have ${found.join(', ')}`);
  const kit = new Kit(spec, STARTED_NS);
  await require.main.require(cell.roles[spec.role])(kit);
  kit.finish(`${out}/samples.bin`);
  process.exit(0);
}

module.exports = { run, readSpec, SendFailed, now, nodeError };
