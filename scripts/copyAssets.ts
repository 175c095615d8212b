// The last step of `npm run build`: what tsc leaves behind (SQL, JSON, shell, pages already built) goes into dist, and the
// command becomes executable.
import { chmodSync, cpSync, existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { checkoutFacts } from '../src/run/plan/manifest.ts';
import { buildRelay } from './buildRelay.ts';

const ROOT = join(import.meta.dirname, '..');
const SOURCE = join(ROOT, 'src');
const TARGET = join(ROOT, 'dist');
/** The page is bundled by its own build (`npm run build:viewer`); its sources are no runtime files. */
const OWN_BUILD = /^viewer\/page\//;

const assets = readdirSync(SOURCE, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile() && !/\.tsx?$/.test(entry.name))
  .map((entry) => join(entry.parentPath, entry.name).slice(SOURCE.length + 1))
  .filter((path) => !OWN_BUILD.test(path.replaceAll('\\', '/')));

for (const path of assets) {
  mkdirSync(dirname(join(TARGET, path)), { recursive: true });
  cpSync(join(SOURCE, path), join(TARGET, path));
}

process.stderr.write(`copyAssets: ${buildRelay()}\n`);

// An installed package has no repository to ask which commit it is.
writeFileSync(join(TARGET, 'build.json'), `${JSON.stringify(checkoutFacts())}\n`);

const command = join(TARGET, 'cli', 'bin.js');
if (!existsSync(command)) {
  process.stderr.write(`copyAssets: ${command} is not there; run tsc -p tsconfig.build.json first\n`);
  process.exitCode = 1;
} else {
  chmodSync(command, 0o755);
}
