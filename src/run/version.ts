/** The version of this program, from its package.json (two folders up from src/service and from dist/service alike). */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

export const PACKAGE_ROOT = join(import.meta.dirname, '..', '..');

export const VERSION = (
  JSON.parse(readFileSync(join(PACKAGE_ROOT, 'package.json'), 'utf8')) as { version: string }
).version;
