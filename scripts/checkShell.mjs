// Part of `npm run check`: shellcheck over every shell script of the repository. It is a program of its own, not a package: where it is
// missing a person is told how to get it, and CI fails.
import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '..');
const HOW =
  'apt-get install shellcheck, brew install shellcheck, or https://github.com/koalaman/shellcheck#installing';

const tracked = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
  cwd: ROOT,
  encoding: 'utf8',
});
const isScript = (path) =>
  path.endsWith('.sh') ||
  (path.startsWith('.ci/') && /^#!.*\b(?:ba|da)?sh\n/.test(readFileSync(join(ROOT, path), 'utf8')));
const scripts = tracked.split('\0').filter((path) => path !== '' && isScript(path));

// A script names what it shares with others by `. ./FILE`, relative to itself.
const done = spawnSync('shellcheck', ['--external-sources', '--source-path=SCRIPTDIR', ...scripts], {
  cwd: ROOT,
  stdio: 'inherit',
});
if (done.error?.code === 'ENOENT') {
  process.stderr.write(
    `checkShell: shellcheck is not installed, ${scripts.length} scripts are unchecked: ${HOW}\n`,
  );
  process.exitCode = process.env.CI ? 1 : 0;
} else {
  process.exitCode = done.status ?? 1;
}
