// Two folders, file by file, after what can never be equal was replaced.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { dumpDatabase } from './dumpDatabase.ts';
import { isSkipped, normalised, type Origin } from './rules.ts';

interface Compared {
  readonly files: number;
  /** One sentence for each file that differs. */
  readonly differences: readonly string[];
}

const filesOf = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !/-(?:wal|shm)$/.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .sort();

const DATABASE = /\.db(?:\.backup-[^/]*)?$/;

/** The data that a page carries: gzip in base64. */
const PACKED = /H4sI[\w+/=]+/g;
const unpacked = (base64: string) => gunzipSync(Buffer.from(base64, 'base64')).toString('latin1');

/** A file as text: a database as its schema and rows, gzip unpacked. */
function textOf(path: string): string {
  if (DATABASE.test(path)) return dumpDatabase(path);
  const bytes = readFileSync(path);
  const packed = bytes[0] === 0x1f && bytes[1] === 0x8b;
  const text = (packed ? gunzipSync(bytes) : bytes).toString('latin1');
  return path.endsWith('.html') ? text.replace(PACKED, unpacked) : text;
}

const WIDTH = 160;

/** The first line that differs, as both have it, from a little before the place. */
function firstDifference(old: string, now: string): string {
  const [before, after] = [old.split('\n'), now.split('\n')];
  const at = before.findIndex((line, n) => line !== after[n]);
  const line = at < 0 ? before.length : at;
  const [a, b] = [before[line] ?? '(no line)', after[line] ?? '(no line)'];
  let column = 0;
  while (column < a.length && a[column] === b[column]) column += 1;
  const from = Math.max(0, column - 40);
  return `line ${line + 1}: ${JSON.stringify(a.slice(from, from + WIDTH))} became ${JSON.stringify(b.slice(from, from + WIDTH))}`;
}

/** Rows of a run come in the order in which its parallel parts happened to end. */
function comparable(path: string, origin: Origin): string {
  const text = normalised(textOf(path), origin);
  return DATABASE.test(path) && origin === 'own run' ? text.split('\n').sort().join('\n') : text;
}

export function compareFolders(old: string, now: string, origin: Origin): Compared {
  const names = (folder: string) =>
    new Map(
      filesOf(folder)
        .filter((file) => !isSkipped(file, origin))
        .map((file) => [normalised(file, origin), file]),
    );
  const [before, after] = [names(old), names(now)];
  const all = [...new Set([...before.keys(), ...after.keys()])].sort();
  const differences = all.flatMap((file) => {
    const [first, second] = [before.get(file), after.get(file)];
    if (!second) return [`${file}: only the old version writes it`];
    if (!first) return [`${file}: only the new version writes it`];
    const [a, b] = [join(old, first), join(now, second)].map((path) => comparable(path, origin));
    return a === b ? [] : [`${file}: ${firstDifference(a!, b!)}`];
  });
  return { files: all.length, differences };
}
