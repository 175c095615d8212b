/** A name for an imported run: that of its folder or file, as one component of a path that is short enough for a run. */
import { basename, resolve } from 'node:path';

const LONGEST = 100;

export function importedName(source: string): string {
  // `..` is a path with a name, but not a name for a run.
  const name = basename(resolve(source))
    .replace(/\.json$/, '')
    .replace(/[^A-Za-z0-9_.-]/g, '_')
    .slice(0, LONGEST);
  return /^\.*$/.test(name) ? 'imported' : name;
}
