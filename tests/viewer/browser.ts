/** Chromium for the tests of the page: found on the PATH, skipped with a word where it is not, required when CI says so. */
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { type Browser, chromium, type Page } from 'playwright-core';
import { build } from 'vite';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'];

function findChromium(): string | undefined {
  const folders = (process.env.PATH ?? '').split(delimiter);
  return folders
    .flatMap((folder) => NAMES.map((name) => join(folder, name)))
    .concat(chromium.executablePath())
    .find((path) => existsSync(path));
}

/** True where browser tests can run; fails instead of skipping when SWEBATCH_REQUIRE_BROWSER=1. */
export function browserAvailable(): boolean {
  if (findChromium()) return true;
  const message = `no ${NAMES.join(', ')} on the PATH and none of Playwright's: the tests of the page need one`;
  if (process.env.SWEBATCH_REQUIRE_BROWSER === '1') throw new Error(message);
  process.stderr.write(`skipped: ${message}\n`);
  return false;
}

/** One process draws all pages: nobody but us serves them, and each process more takes half a second of processor time. */
const ARGS = ['--no-sandbox', '--process-per-site', '--disable-site-isolation-trials'];

export const launch = (): Promise<Browser> =>
  chromium.launch({ executablePath: findChromium()!, args: ARGS });

/** Builds the page from its sources, so that no test looks at yesterday's. */
export async function buildPage(): Promise<{ dir: string; remove: () => Promise<void> }> {
  const dir = await mkdtemp(join(tmpdir(), 'swebatch-page-'));
  await build({
    configFile: join(import.meta.dirname, '..', '..', 'src', 'viewer', 'page', 'vite.config.ts'),
    logLevel: 'error',
    build: { outDir: dir, emptyOutDir: true },
  });
  return { dir, remove: () => rm(dir, { recursive: true, force: true }) };
}

/** What went wrong in a page: errors of scripts and everything the console calls an error (a CSP breach is one). */
export function watchErrors(page: Page): string[] {
  const errors: string[] = [];
  page.on('pageerror', (error) => errors.push(error.message));
  page.on('console', (message) => {
    if (message.type() === 'error') errors.push(message.text());
  });
  return errors;
}
