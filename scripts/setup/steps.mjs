// The steps of setting a machine up, shared by setup.mjs and demo.mjs. Each looks first and does only what is missing.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ensureEngine } from './engine.mjs';
import { missingPackages } from './packages.mjs';
import { runQuietly, SetupError, say } from './say.mjs';
import { ensureTestTools } from './testTools.mjs';

export const REPO_ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** The Node that the project brings; the one that runs this file may be too old for anything but this. */
export function projectNode() {
  return join(REPO_ROOT, 'node_modules', '.bin', 'node');
}

/** Runs a step of our own in the foreground: it says a line for each thing that it does. */
function runStep(program, args, what) {
  const done = spawnSync(program, args, { cwd: REPO_ROOT, stdio: ['inherit', 2, 2] });
  if (done.error) throw new SetupError(`${what}: ${done.error.message}`);
  if (done.status !== 0)
    throw new SetupError(`${what} ended with ${done.signal ?? done.status}; what it said stands above.`);
}

/** npm as it was started, else the one on the path. */
export function npm(...args) {
  const cli = process.env.npm_execpath;
  const fromNpm = cli !== undefined && /npm-cli\.c?js$/.test(cli) && existsSync(cli);
  const [program, first] = fromNpm ? [process.execPath, [cli]] : ['npm', []];
  runQuietly(program, [...first, ...args], `npm ${args.join(' ')}`, { cwd: REPO_ROOT });
}

function ensurePackages() {
  const missing = missingPackages(REPO_ROOT);
  if (missing.length === 0) return;
  say(`packages: npm ci for ${missing.length} of them, about half a minute`);
  npm('ci', '--no-audit', '--no-fund');
}

/** What needs an engine does not run without one, and the tests say so at their end; where it is required, that is a failure. */
async function ensureEngineForTests() {
  try {
    await ensureEngine();
    return true;
  } catch (error) {
    if (!(error instanceof SetupError) || process.env.SWEBATCH_REQUIRE_DOCKER === '1') throw error;
    say(`tests: ${error.message}`);
    return false;
  }
}

/** Does everything; gives the exit code: 0, or 2 with a text that says what to do. */
export async function setUp({ packages, images, forTests = false }) {
  try {
    if (packages) ensurePackages();
    if (forTests) ensureTestTools();
    if (forTests && !(await ensureEngineForTests())) return 0;
    if (!forTests) await ensureEngine();
    if (images) runStep(projectNode(), ['scripts/buildDemoImages.ts'], 'building the images');
    return 0;
  } catch (error) {
    if (!(error instanceof SetupError)) throw error;
    say(`setup: ${error.message}`);
    return 2;
  }
}
