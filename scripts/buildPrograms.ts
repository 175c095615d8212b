// Compiles the programs that run in containers of ours (src/environment/relay and watch) for this machine's architecture into dist,
// unless those there are newer.
//   node scripts/buildPrograms.ts
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, renameSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';

const ROOT = join(import.meta.dirname, '..');

function build(name: string): string {
  const folder = join(ROOT, 'src', 'environment', name);
  const sources = readdirSync(folder)
    .filter((file) => file.endsWith('.c'))
    .map((file) => join(folder, file));
  const target = join(ROOT, 'dist', 'environment', name, `${name}.${process.arch}`);
  const newest = Math.max(...sources.map((source) => statSync(source).mtimeMs));
  if (existsSync(target) && statSync(target).mtimeMs > newest) return `${name} is there`;
  mkdirSync(dirname(target), { recursive: true });
  const made = `${target}.${process.pid}`;
  const done = spawnSync('cc', ['-O2', '-Wall', '-Wextra', '-static', '-s', '-o', made, ...sources], {
    encoding: 'utf8',
  });
  if (done.error) return `${name} is not built (${done.error.message}): it needs a C compiler`;
  if (done.status !== 0) throw new Error(`${name} does not compile:\n${done.stderr}`);
  renameSync(made, target);
  return `${name} is built`;
}

/** Says in a sentence what happened. Throws when there is a compiler and it refuses. */
export const buildPrograms = (): string => ['relay', 'watch'].map(build).join(', ');

if (import.meta.main) process.stderr.write(`${buildPrograms()}\n`);
