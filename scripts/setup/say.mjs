// What the setup scripts say goes to stderr, so that the stdout of a command that runs them stays its own. What the programs say that they start is
// kept in a log, and its end is shown when one fails: of apt alone that is hundreds of lines.
import { spawnSync } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';

export function say(line) {
  process.stderr.write(`${line}\n`);
}

/** Something a person has to do; the message says what. */
export class SetupError extends Error {}

export const SETUP_LOG = fileURLToPath(new URL('../../.cache/setup.log', import.meta.url));
const SHOWN_LINES = 40;

/** Runs a program to its end. Throws SetupError with `what` it was for and the end of what the program said. */
export function runQuietly(program, args, what, { log = SETUP_LOG, ...options } = {}) {
  mkdirSync(dirname(log), { recursive: true });
  const file = openSync(log, 'w');
  const done = spawnSync(program, args, { ...options, stdio: ['ignore', file, file] });
  closeSync(file);
  if (done.error) throw new SetupError(`${what}: ${done.error.message}`);
  if (done.status === 0) return;
  const said = readFileSync(log, 'utf8').trim().split('\n').slice(-SHOWN_LINES).join('\n');
  throw new SetupError(`${what} ended with ${done.signal ?? done.status}. The end of ${log}:\n${said}`);
}
