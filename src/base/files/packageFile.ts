/** Files that come with the program: its configurations and the bundled dataset. */
import { existsSync, readFileSync } from 'node:fs';
import { isAbsolute, join, resolve } from 'node:path';

/** The package's root, from src/base/files as from dist/base/files. */
export const PACKAGE_ROOT = join(import.meta.dirname, '..', '..', '..');

/** The path from a folder of the caller; where nothing is there, a file of the package with the same path: `datasets/demo/replies`. */
export function orPackaged(path: string, cwd = ''): string {
  const own = resolve(cwd, path);
  if (isAbsolute(path) || !path.startsWith('datasets/') || existsSync(own)) return own;
  const packaged = join(PACKAGE_ROOT, path);
  return existsSync(packaged) ? packaged : own;
}

export const VERSION = (
  JSON.parse(readFileSync(join(PACKAGE_ROOT, 'package.json'), 'utf8')) as { version: string }
).version;
