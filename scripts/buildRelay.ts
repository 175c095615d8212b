// Compiles the relay (src/environment/relay/relay.c) for this machine's architecture into dist, unless the one there is newer.
//   node scripts/buildRelay.ts
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, renameSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';

const ROOT = join(import.meta.dirname, '..');
const SOURCE = join(ROOT, 'src', 'environment', 'relay', 'relay.c');

/** Says in a sentence what happened. Throws when there is a compiler and it refuses. */
export function buildRelay(): string {
  const target = join(ROOT, 'dist', 'environment', 'relay', `relay.${process.arch}`);
  if (existsSync(target) && statSync(target).mtimeMs > statSync(SOURCE).mtimeMs) return 'the relay is there';
  mkdirSync(dirname(target), { recursive: true });
  const made = `${target}.${process.pid}`;
  const done = spawnSync('cc', ['-O2', '-Wall', '-Wextra', '-static', '-s', '-o', made, SOURCE], {
    encoding: 'utf8',
  });
  if (done.error)
    return `the relay is not built (${done.error.message}): installed agents need it, and it needs a C compiler`;
  if (done.status !== 0) throw new Error(`the relay does not compile:\n${done.stderr}`);
  renameSync(made, target);
  return 'the relay is built';
}

if (import.meta.main) process.stderr.write(`${buildRelay()}\n`);
