// What tests use beside packages and Docker. As root on Debian or Ubuntu it is installed; elsewhere the person is told, and the tests that need it do not run.
import { existsSync, readFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { aptInstall, onDebian } from './engine.mjs';
import { runQuietly, SetupError, say } from './say.mjs';

const MODULES = fileURLToPath(new URL('../../node_modules', import.meta.url));

/** A browser for the viewer, a registry to pull from, tools for a small disk, the checker of shell scripts, a compiler for the relay, pip for the reference models. */
const TOOLS = [
  {
    programs: ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'],
    packages: ['chromium'],
  },
  { programs: ['docker-registry'], packages: ['docker-registry'] },
  { programs: ['mkfs.ext4'], packages: ['e2fsprogs'] },
  { programs: ['shellcheck'], packages: ['shellcheck'] },
  { programs: ['cc'], packages: ['gcc', 'libc6-dev'] },
  { programs: ['pip', 'pip3'], packages: ['python3', 'python3-pip'] },
  { programs: ['git'], packages: ['git'] },
];

/** The tools of which no program is in one of the folders. */
export function missingTools(folders) {
  return TOOLS.filter(
    ({ programs }) => !programs.some((name) => folders.some((folder) => existsSync(join(folder, name)))),
  );
}

/** Ubuntu's own package of Chromium only points to a snap, which no container has: there it is the one that Playwright publishes. */
function installFromPlaywright() {
  say('tests: Chromium from Playwright');
  const args = [join(MODULES, 'playwright-core', 'cli.js'), 'install', '--with-deps', 'chromium'];
  runQuietly(join(MODULES, '.bin', 'node'), args, 'playwright install chromium');
}

const isUbuntu = () => /^ID="?ubuntu"?$/m.test(readFileSync('/etc/os-release', 'utf8'));

/** Never throws for want of a tool: what does not run without it says so at the end of the tests. */
export function ensureTestTools() {
  const folders = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin', '/sbin'];
  const missing = missingTools(folders);
  if (missing.length === 0) return;
  const packages = missing.flatMap((tool) => tool.packages);
  if (process.getuid?.() !== 0 || !onDebian()) {
    say(`tests: ${packages.join(', ')} would be needed by some tests, which do not run without`);
    return;
  }
  const fromPlaywright = isUbuntu() && packages.includes('chromium');
  const fromApt = packages.filter((name) => !(fromPlaywright && name === 'chromium'));
  try {
    if (fromApt.length > 0) aptInstall(fromApt);
    if (fromPlaywright) installFromPlaywright();
  } catch (error) {
    if (!(error instanceof SetupError)) throw error;
    say(`tests: ${error.message} The tests that need it do not run.`);
  }
}
