/** Lists a file or folder of another tool, as far as its kind needs it. */
import { closeSync, openSync, readdirSync, readSync, statSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { type SourceKind, sourceKind } from '../../formats/sourceKind.ts';

const DEEPEST = 5;
/** Names that are looked at: the kind shows in the first few of any folder. */
const MOST_NAMES = 5000;
const HEAD_BYTES = 65_536;

/** Null where nothing is there, or nothing that is known. */
export function kindOfSource(source: string): SourceKind | null {
  const found = statSync(source, { throwIfNoEntry: false });
  if (!found) return null;
  const files = found.isDirectory() ? namesBelow(source) : null;
  const head = (path: string): string => headOf(path === '' ? source : join(source, path));
  return sourceKind({ name: basename(resolve(source)), files, head });
}

/** Level by level, so that a folder with many files does not hide the one beside it. Links to folders are not followed. */
function namesBelow(source: string): string[] {
  const found: string[] = [];
  let level = [''];
  for (let depth = 0; depth < DEEPEST && level.length > 0 && found.length < MOST_NAMES; depth++) {
    const below: string[] = [];
    for (const folder of level) {
      for (const entry of readdirSync(join(source, folder), { withFileTypes: true })) {
        const path = folder === '' ? entry.name : `${folder}/${entry.name}`;
        if (entry.isDirectory()) below.push(path);
        else found.push(path);
      }
      if (found.length + below.length >= MOST_NAMES) break;
    }
    level = below;
  }
  return found;
}

function headOf(path: string): string {
  if (!statSync(path, { throwIfNoEntry: false })?.isFile()) return '';
  const file = openSync(path, 'r');
  try {
    const head = Buffer.alloc(HEAD_BYTES);
    return head.toString('utf8', 0, readSync(file, head));
  } finally {
    closeSync(file);
  }
}
