/** Files that somebody else's program left: read only where they are files. */
import { closeSync, openSync, readdirSync, readFileSync, readSync, statSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { fileErrorText } from '../base/text/errorText.ts';
import type { Listing, ReadVerdicts, StatedVerdicts } from './foreignFormat.ts';

/** What is there cannot be read; the message names it and says what was expected. */
export class SourceError extends Error {
  override readonly name = 'SourceError';
  readonly hint: string | undefined;
  constructor(message: string, hint?: string) {
    super(message);
    this.hint = hint;
  }
}

export function checked(read: ReadVerdicts): StatedVerdicts {
  if (!read.ok) throw new SourceError(read.message);
  return read;
}

/** What fits into one buffer and one text. */
const LARGEST = 500_000_000;

/** A pipe would be waited for, and a device never ends. A link is followed. Throws a SourceError. */
export const readForeignFile = (path: string): Buffer => gunzipped(path, readForeignBytes(path));

/** As they lie there. */
export function readForeignBytes(path: string): Buffer {
  const found = statSync(path);
  if (!found.isFile()) throw new SourceError(`${path} is not a file`, 'take it out of the folder');
  if (found.size > LARGEST)
    throw new SourceError(`${path} has ${found.size} bytes, and files of up to ${LARGEST} are read`);
  return orUnreadable(path, () => readFileSync(path));
}

/** Some files of the system have a name and a size, and cannot be read. */
function orUnreadable<T>(path: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw new SourceError(`${path} cannot be read: ${fileErrorText(error)}`);
  }
}

/** What a run of ours writes of a long trajectory. A stream that unpacks to more than fits throws. */
export const gunzipped = (path: string, bytes: Buffer): Buffer =>
  path.endsWith('.gz') ? gunzipSync(bytes, { maxOutputLength: LARGEST }) : bytes;

const PIECE = 1 << 20;
const LF = 0x0a;

interface ForeignLine {
  readonly line: number;
  readonly bytes: Buffer;
  /** False for a last line without an end: its writer may have died. */
  readonly ended: boolean;
}

/** Line by line, so that a file of gigabytes is never in memory as a whole. Splits at LF alone. Throws a SourceError. */
export function* linesOf(path: string): Generator<ForeignLine> {
  if (!statSync(path).isFile()) throw new SourceError(`${path} is not a file`, 'take it out of the folder');
  const file = openSync(path, 'r');
  try {
    let begun: Buffer[] = [];
    let held = 0;
    let line = 1;
    for (;;) {
      const piece = Buffer.alloc(PIECE);
      const read = orUnreadable(path, () => readSync(file, piece));
      if (read === 0) break;
      const given = piece.subarray(0, read);
      let from = 0;
      for (let end = given.indexOf(LF); end >= 0; end = given.indexOf(LF, from)) {
        yield { line: line++, bytes: Buffer.concat([...begun, given.subarray(from, end)]), ended: true };
        begun = [];
        held = 0;
        from = end + 1;
      }
      held += read - from;
      if (held > LARGEST) throw new SourceError(`${path}: line ${line} has more than ${LARGEST} bytes`);
      if (from < read) begun.push(given.subarray(from));
    }
    if (begun.length > 0) yield { line, bytes: Buffer.concat(begun), ended: false };
  } finally {
    closeSync(file);
  }
}

/** The first bytes; empty where there is no file. */
export function beginningOf(path: string, bytes: number): string {
  if (!statSync(path, { throwIfNoEntry: false })?.isFile()) return '';
  const file = openSync(path, 'r');
  try {
    const head = Buffer.alloc(bytes);
    return head.toString(
      'utf8',
      0,
      orUnreadable(path, () => readSync(file, head)),
    );
  } finally {
    closeSync(file);
  }
}

const DEEPEST = 5;
/** Names that are looked at: the kind shows in the first few of any folder. */
const MOST_NAMES = 5000;
const HEAD_BYTES = 65_536;

/** A file or folder, listed as far as its kind needs it; null where nothing is there. */
export function listingOf(source: string): Listing | null {
  const found = statSync(source, { throwIfNoEntry: false });
  if (!found) return null;
  const head = (path: string): string => beginningOf(path === '' ? source : join(source, path), HEAD_BYTES);
  return { name: basename(resolve(source)), files: found.isDirectory() ? namesBelow(source) : null, head };
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

/** Names of the files that lie in the folder itself. */
export const topOf = (files: readonly string[]): string[] => files.filter((file) => !file.includes('/'));

/** Whether the beginning of a file of JSON names all of these keys. */
export const hasKeys = (head: string, ...keys: readonly string[]): boolean =>
  keys.every((key) => head.includes(`"${key}"`));
