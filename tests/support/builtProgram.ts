// Tests start the program as it is published: from its bundle, which starts in a quarter of the time. It is built again when a source is newer.
import { existsSync, mkdirSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { bundle, copyAssets, LAST_WRITTEN, TARGET } from '../../scripts/build.ts';

const ROOT = join(import.meta.dirname, '..', '..');

/** Run by Vitest before its workers start, for each project; the second finds it built. */
export default async function setUp(): Promise<void> {
  const built = existsSync(LAST_WRITTEN) ? statSync(LAST_WRITTEN).mtimeMs : 0;
  const inputs = [
    ...readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' }).map((path) => join('src', path)),
    ...['package-lock.json', 'scripts/build.ts'],
  ].map((path) => join(ROOT, path));
  // A folder is newer, too, when a file was taken out of it.
  if (inputs.every((path) => statSync(path).mtimeMs < built)) return;
  mkdirSync(TARGET, { recursive: true });
  copyAssets();
  await bundle();
}
