'use strict';
// The Node.js kit: spec and process. ../../README.md is its API.
const STARTED_NS = process.hrtime()[0] * 1e9 + process.hrtime()[1]; // C-07: the first statement
const fs = require('node:fs');
const { Kit, line, nodeError, now } = require('./kit');

const [isText, isWhole] = [(found) => typeof found === 'string', Number.isInteger];
const KEYS = [ // C-02
  ['a string', isText, `run cell pattern role loop pacing payload.encoding payload.literal reply
    reply.literal verify tls.authority tls.certificate tls.key`],
  ['an integer', isWhole, `contract node index peers.count period_ns phase_ns duration_ns count
    count_beyond warmup_ns overrun_ns timeout_ns outstanding_max quiet_ms linger_ms ready_timeout_ms
    spin_ns payload.bytes payload.seed action.feedback record.capacity`],
  ['a list of integers', (found) => Array.isArray(found) && found.every(isWhole), 'peers.nodes'],
  ['a list of strings', (found) => Array.isArray(found) && found.every(isText), 'peers.endpoints'],
];
const badSpec = (key, found, allowed) => (
  nodeError(2, `${key}: found ${JSON.stringify(found)}; allowed: ${allowed}`, key));

/** The spec (C-02); `settings` are those that the cell knows, by name. */
function readSpec(path, settings) {
  let spec = null;
  try {
    spec = JSON.parse(fs.readFileSync(path, 'utf8'));
  } catch { /* refused below */ }
  if (spec?.constructor !== Object) throw badSpec('--spec', path, 'a file with a JSON object');
  for (const [type, isType, names] of KEYS)
    for (const key of names.split(/\s+/))
      if (!isType(spec[key])) throw badSpec(key, spec[key], type);
  if (spec.contract !== 2) throw badSpec('contract', spec.contract, '2');
  for (const key of Object.keys(spec))
    if (key.startsWith('settings.') && !Object.hasOwn(settings, key.slice(9)))
      throw badSpec(key, spec[key], `settings ${Object.keys(settings)}`);
  return spec;
}

/** Refuses what the cell (see `run`) does not have (C-03). */
function checkCapabilities(spec, { roles, settings, capabilities, bytesMax = {} }) {
  const { role, 'payload.encoding': encoding, 'payload.bytes': bytes } = spec;
  const overlaps = ['client', 'ping'].includes(role) && spec.outstanding_max > 1;
  const found = [`encoding.${encoding}`, `pacing.${spec.pacing}`, `loop.${spec.loop}`,
    spec.pattern !== 'topic' && `reply.${spec.reply}`, spec['payload.literal'] && 'literal',
    spec['tls.authority'] && 'tls', overlaps && spec.loop === 'open' && 'async_client',
  ].filter((name) => name && !capabilities.includes(name));
  if (!Object.hasOwn(roles, role)) found.push(`role ${role}`);
  const least = spec['payload.literal'] ? 0 : { bytes: 16, text: 32, record: 96 }[encoding];
  if (bytes < least || bytes > (bytesMax[encoding] ?? Infinity)) found.push(`${bytes} bytes`);
  for (const [name, allowed] of Object.entries(settings))
    if (allowed && !allowed.includes(spec[`settings.${name}`])) found.push(`that ${name}`);
  if (found.length > 0) throw nodeError(3, `this cell does not have ${found.join(', ')}`);
}

/** Runs this node and ends the process. */
async function run(cell) {
  process.on('uncaughtException', ({ exitCode: code = 4, key = null, message: reason, stack }) => {
    if (code === 4) console.error(stack);
    line('ERROR', { code, key, reason });
    process.exit(code);
  });
  const words = process.argv.slice(2);
  const { '--spec': path, '--out': out } = { [words[0]]: words[1], [words[2]]: words[3] };
  if (words.length !== 4 || !path || !out) throw badSpec('command line', words, '--spec, --out');
  const spec = readSpec(path, cell.settings);
  checkCapabilities(spec, cell);
  const kit = new Kit(spec, STARTED_NS);
  await require.main.require(cell.roles[spec.role])(kit);
  kit.finish(`${out}/samples.bin`);
  process.exit(0);
}

module.exports = { run, readSpec, line, nodeError, now };
