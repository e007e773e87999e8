'use strict';
// A node in Node.js: contract/CONTRACT.md describes the contract, ../../README.md the API.

// The first statement of the process, from which startup_ns is measured (C-07).
const { now } = require('./clock');
const STARTED_NS = now();

const { ROLES } = require('./constants');
const { line, nodeError } = require('./dialogue');
const { Kit } = require('./kit');
const { badSpec, checkDeclaration, readSpec } = require('./spec');

const MIDDLEWARE_FAILED = 4;

/** Ends the process with an ERROR line; other errors than NodeError end it with 4 (C-04). */
function die(error) {
  const { exitCode: code = MIDDLEWARE_FAILED, key = null, message: reason } = error;
  if (code === MIDDLEWARE_FAILED) console.error(error.stack);
  line('ERROR', { code, key, reason });
  process.exit(code);
}

/** Returns the paths on the command line (C-01). */
function readArguments(words) {
  const options = { [words[0]]: words[1], [words[2]]: words[3] };
  const { '--spec': specPath, '--out': outPath } = options;
  if (words.length !== 4 || !specPath || !outPath) {
    throw badSpec('command line', words, '--spec FILE --out DIR');
  }
  return { specPath, outPath };
}

/** Rejects a name that is no role, such as `settings` of contract version 2. */
function checkNames(roles) {
  const others = Object.keys(roles).filter((name) => !Object.hasOwn(ROLES, name));
  const allowed = `${Object.keys(ROLES).join(', ')}; the manifests declare the rest`;
  if (others.length > 0) throw badSpec('run()', others, allowed);
}

/** Runs this node and ends the process; `roles` maps roles to modules. */
async function run(roles) {
  process.on('uncaughtException', die);
  checkNames(roles);
  const { specPath, outPath } = readArguments(process.argv.slice(2));
  const spec = readSpec(specPath);
  checkDeclaration(spec, roles);
  const kit = new Kit(spec, STARTED_NS);
  const role = require.main.require(roles[spec.role]);
  await role(kit);
  kit.finish(`${outPath}/samples.bin`);
  process.exit(0);
}

module.exports = { run, line, nodeError, now };
