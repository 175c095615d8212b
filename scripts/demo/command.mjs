// What the demos share: the program as it was built, and a name for the next run.
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { say } from '../setup/say.mjs';
import { npm, projectNode, REPO_ROOT } from '../setup/steps.mjs';

export const RESULTS = 'results';
const COMMAND = join(REPO_ROOT, 'dist', 'cli', 'bin.js');

function newest(folder) {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce(
      (time, entry) => Math.max(time, statSync(join(entry.parentPath ?? entry.path, entry.name)).mtimeMs),
      0,
    );
}

export function ensureBuild() {
  if (existsSync(COMMAND) && statSync(COMMAND).mtimeMs >= newest(join(REPO_ROOT, 'src'))) return;
  say('build: npm run build, some seconds');
  npm('run', 'build', '--silent');
}

export function swebatch(args) {
  say(`\n$ npx swebatch ${args.join(' ')}`);
  const done = spawnSync(projectNode(), [COMMAND, ...args], { cwd: REPO_ROOT, stdio: 'inherit' });
  return done.status ?? 1;
}

/** Runs of the results folder; none when there is no folder yet. */
export function runsSoFar() {
  const args = [COMMAND, 'ls', '-o', RESULTS, '--json'];
  const done = spawnSync(projectNode(), args, { cwd: REPO_ROOT, encoding: 'utf8' });
  return done.status === 0 ? JSON.parse(done.stdout) : [];
}
