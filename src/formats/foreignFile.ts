/**
 * Files of another program, from bytes to checked data: only files are read, text has to be UTF-8, and a message names the line.
 */
import { isUtf8 } from 'node:buffer';
import { closeSync, existsSync, openSync, readdirSync, readFileSync, readSync, statSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { gunzipSync } from 'node:zlib';
import type { z } from 'zod';
import { cutNesting } from '../base/plausible.ts';
import { fileErrorText } from '../base/text/errorText.ts';
import { jsonChildren, jsonErrorLine, lineAt } from '../base/text/jsonChildren.ts';
import type { Listing } from './foreignFormat.ts';
import { SourceError } from './sourceError.ts';

/** Bytes that fit into one buffer and one text. */
const LARGEST = 500_000_000;

/** A pipe would be waited for, and a device never ends (observed: tests/formats/foreignFile.test.ts). A link is followed. Throws a SourceError. */
export const readForeignFile = (path: string): Buffer => gunzipped(path, readForeignBytes(path));

/** The bytes as they lie there. */
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

/** Runs of ours pack long trajectories. A stream that unpacks to more than fits throws. */
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

/** A file of another kind is not damaged; a file of this kind that cannot be read is. */
type JsonFault = 'not_json' | 'other_kind' | 'damaged';

/** The result of a reader: plain data, or why the file holds none. */
export type Read<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly fault: JsonFault; readonly message: string };

export const refused = (fault: JsonFault, message: string): Read<never> => ({ ok: false, fault, message });

interface ForeignJson {
  readonly value: unknown;
  /** Equal to the file's text line by line. */
  readonly text: string;
}

export class ForeignTextError extends Error {
  override readonly name = 'ForeignTextError';
  readonly line: number;
  constructor(message: string, line: number) {
    super(message);
    this.line = line;
  }
}

/** A file's text, or its bytes, which have to be UTF-8. */
export type RawBody = string | Uint8Array;

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Throws ForeignTextError: other characters in the place of wrong bytes would change a patch without a word. */
export function textOfBody(body: RawBody): string {
  if (typeof body === 'string') return body;
  try {
    return utf8.decode(body);
  } catch {
    const line = lineOfWrongByte(body);
    throw new ForeignTextError(`line ${line} is not UTF-8`, line);
  }
}

/** Bytes that are looked at together, up to the end of their last line. */
const BLOCK = 65_536;

function lineOfWrongByte(bytes: Uint8Array): number {
  let line = 1;
  for (let start = 0; start < bytes.length; ) {
    const found = bytes.indexOf(LF, start + BLOCK);
    const end = found < 0 ? bytes.length : found + 1;
    if (!isUtf8(bytes.subarray(start, end))) return line + wholeLines(bytes.subarray(start, end));
    for (let at = start; at < end; at++) if (bytes[at] === LF) line++;
    start = end;
  }
  return 1;
}

/** The number of lines before the one with the wrong byte. */
function wholeLines(bytes: Uint8Array): number {
  for (let lines = 0, start = 0; ; lines++) {
    const end = bytes.indexOf(LF, start);
    if (end < 0 || !isUtf8(bytes.subarray(start, end))) return lines;
    start = end + 1;
  }
}

/** Python's json writes NaN and Infinity where it has them, in costs and scores; JSON has no such words. */
const PYTHON_WORD = /"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?$)|-?\bInfinity\b|\bNaN\b/gs;

/** Throws ForeignTextError. Skips a byte order mark; reads NaN and Infinity as null. */
export function parseForeignJson(body: RawBody): ForeignJson {
  const all = textOfBody(body);
  const text = all.startsWith('\uFEFF') ? all.slice(1) : all;
  try {
    return { value: JSON.parse(text), text };
  } catch (error) {
    if (!/NaN|Infinity/.test(text)) throw notJson(error, text);
  }
  const plain = text.replace(PYTHON_WORD, (found) => (found.startsWith('"') ? found : 'null'));
  try {
    return { value: JSON.parse(plain), text: plain };
  } catch (error) {
    throw notJson(error, plain);
  }
}

const notJson = (error: unknown, text: string): ForeignTextError =>
  new ForeignTextError((error as Error).message, jsonErrorLine(error, text));

interface JsonEntry {
  readonly value: unknown;
  readonly line: number;
  /** The key, in an object; equal keys give an entry each. */
  readonly key?: string;
}

/** The values directly inside an array or object. */
export function jsonEntries({ text }: ForeignJson): JsonEntry[] {
  const opening = text.search(/[[{]/);
  return jsonChildren(text, opening, lineAt(text, opening)).map(({ start, end, line, key }) => ({
    value: JSON.parse(text.slice(start, end)),
    line,
    ...(key !== undefined && { key }),
  }));
}

/** The line where the value at a path begins, or the nearest value around it. */
function lineOfPath({ text }: ForeignJson, path: readonly PropertyKey[]): number {
  let from = text.search(/\S/);
  let line = lineAt(text, from);
  for (const step of path) {
    if (text[from] !== '{' && text[from] !== '[') break;
    const children = jsonChildren(text, from, line);
    const child = typeof step === 'number' ? children[step] : children.findLast((c) => c.key === step);
    if (!child) break;
    [from, line] = [child.start, child.line];
  }
  return line;
}

/** `line 12: resolved_ids.3: Invalid input: expected string, received number` */
function issueText(json: ForeignJson, error: z.ZodError): string {
  const [issue] = error.issues;
  if (!issue) return 'it cannot be read';
  const place = issue.path.length > 0 ? `${issue.path.join('.')}: ` : '';
  return `line ${lineOfPath(json, issue.path)}: ${place}${issue.message}`;
}

/** A reader of one kind of file. `isKind` tells a file of another kind from a damaged one, `otherKind` says what it is not. */
export const readerOf =
  <T>(schema: z.ZodType<T>, isKind: (value: unknown) => boolean, otherKind: string) =>
  (body: RawBody): Read<T> => {
    let json: ForeignJson;
    try {
      json = parseForeignJson(body);
    } catch (error) {
      if (!(error instanceof ForeignTextError)) throw error;
      return refused('not_json', `it is not JSON: ${error.message}`);
    }
    if (!isKind(json.value)) return refused('other_kind', otherKind);
    const parsed = schema.safeParse(cutNesting(json.value).value);
    return parsed.success
      ? { ok: true, value: parsed.data }
      : refused('damaged', issueText(json, parsed.error));
  };

/** Null for a file of another kind. Throws a SourceError for a damaged one. */
export function usable<T>(path: string, read: Read<T>): T | null {
  if (read.ok) return read.value;
  if (read.fault === 'damaged') throw new SourceError(`${path} cannot be used: ${read.message}`);
  return null;
}

/** The data of a file; null where there is no file, or one of another kind. `problems` gets the reason why a file cannot be read. */
export function readIfThere<T>(
  path: string,
  reader: (body: RawBody) => Read<T>,
  problems?: string[],
): T | null {
  if (!existsSync(path)) return null;
  const read = reader(readForeignFile(path));
  if (read.ok) return read.value;
  problems?.push(`${path}: ${read.message}`);
  return null;
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
