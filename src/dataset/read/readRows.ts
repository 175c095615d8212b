/**
 * Raw rows of files: JSON Lines piece by piece, so that a file of a gigabyte is never in memory as a whole; JSON; Parquet. Problems are collected,
 * not thrown: all are shown at once.
 */

import { closeSync, openSync, readSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import { within } from '../../base/async/timer.ts';
import { isRecord } from '../../base/isRecord.ts';
import { sha256 } from '../../base/sha256.ts';
import { errorText } from '../../base/text/errorText.ts';
import { jsonChildren, jsonErrorLine, lineAt } from '../../base/text/jsonChildren.ts';
import type { RowFile, RowInFile } from '../dataset.ts';
import { DatasetChangedError } from '../datasetChanged.ts';
import type { Instance } from '../instance.ts';
import { type NormalisedRow, rowHashOf } from './row.ts';

interface RawEntry {
  /** Line of the text, or row number of a table; from 1. */
  readonly line: number;
  readonly row: unknown;
  /** Key of an object keyed by id. */
  readonly key?: string;
  /** The line, and where it lies in the file, in bytes; JSON Lines only. Good until the next entry is read. */
  readonly start?: number;
  readonly bytes?: Uint8Array;
}
interface RawProblem {
  readonly line: number;
  readonly message: string;
}

const decoder = new TextDecoder('utf-8', { fatal: true });

/** A file with more problems is no dataset, and to read on would take minutes (tests/long/worstText.test.ts). */
const MOST_PROBLEMS = 1000;

interface Line {
  readonly line: number;
  readonly bytes: Uint8Array;
  readonly start: number;
}

const [TAB, LF, CR, SPACE] = [0x09, 0x0a, 0x0d, 0x20];

/** The end of a line that holds nothing but space, its LF included; `from` where it holds more. */
function blankEnd(piece: Uint8Array, from: number): number {
  let at = from;
  while (piece[at] === SPACE || piece[at] === CR || piece[at] === TAB) at++;
  return piece[at] === LF ? at + 1 : from;
}

/**
 * Lines that are not blank. Splits at LF alone: U+2028 is legal inside a JSON string, and a lone CR is not a line end here. CRLF ends with
 * space to JSON.
 */
function* split(pieces: Iterable<Uint8Array>): Generator<Line> {
  let begun: Uint8Array[] = [];
  let start = 0;
  let line = 1;
  const ended = (last: Uint8Array): Line => {
    const bytes = begun.length === 0 ? last : Buffer.concat([...begun, last]);
    const found = { line, bytes, start };
    begun = [];
    start += bytes.length + 1;
    line += 1;
    return found;
  };
  for (const piece of pieces) {
    let from = 0;
    while (from < piece.length) {
      const end = begun.length === 0 ? blankEnd(piece, from) : from;
      if (end > from) {
        start += end - from;
        line += 1;
        from = end;
        continue;
      }
      const lf = piece.indexOf(LF, from);
      if (lf < 0) break;
      yield ended(piece.subarray(from, lf));
      from = lf + 1;
    }
    if (from < piece.length) begun.push(piece.subarray(from));
  }
  if (begun.length > 0) yield ended(new Uint8Array(0));
}

/** The row of a line; undefined for an empty one. Throws what is wrong with it. */
export function rowOfLine(bytes: Uint8Array): unknown {
  const text = decoder.decode(bytes).trim(); // trim also takes a BOM
  return text === '' ? undefined : JSON.parse(text);
}

export function* jsonLines(pieces: Iterable<Uint8Array>): Generator<RawEntry | RawProblem> {
  let problems = 0;
  for (const { line, bytes, start } of split(pieces)) {
    try {
      const row = rowOfLine(bytes);
      if (row !== undefined) yield { line, row, start, bytes };
    } catch (error) {
      const utf8 = error instanceof SyntaxError ? 'not valid JSON' : 'not valid UTF-8';
      yield { line, message: `${utf8}: ${errorText(error)}` };
      problems += 1;
      if (problems < MOST_PROBLEMS) continue;
      yield { line, message: `${MOST_PROBLEMS} lines cannot be read; the rest was not looked at` };
      return;
    }
  }
}

/** An oddity of the file that stops nothing. */
interface RawNote {
  readonly note: string;
}

export type RawRows = readonly (RawEntry | RawProblem | RawNote)[];

/**
 * A dump of the datasets server wraps each row: `{rows: [{row_idx, row: {…}, truncated_cells: ["patch"]}]}`. The server's viewer cuts long cells
 * off, and half a patch or half a list of tests is still text.
 */
function unwrapped(row: unknown): { readonly row: unknown } | { readonly message: string } {
  if (!isRecord(row) || !isRecord(row.row)) return { row };
  const { row: inner, row_idx: at, truncated_cells: cut } = row;
  if (!Array.isArray(cut) || cut.length === 0) return { row: inner };
  const id = typeof inner.instance_id === 'string' ? ` (${inner.instance_id})` : '';
  return {
    message: `row ${typeof at === 'number' ? at : '?'}${id}: the dataset viewer cut off ${cut.map(String).join(', ')}; download the dataset's Parquet files`,
  };
}

/** A dump is a page, of 100 rows at most; `partial` and `truncated` are said of what the server itself has not. */
function lackOf(dump: Readonly<Record<string, unknown>>, rows: number): string | null {
  const total = dump.num_rows_total;
  if (typeof total === 'number' && total > rows) return `it is a page of ${rows} of ${total} rows`;
  return dump.partial === true || dump.truncated === true
    ? `the dataset viewer has only a part of the rows, of which ${rows} are here`
    : null;
}

/** An array of rows, an object keyed by id, one row, or a dump of the datasets server. */
function entriesOf(text: string, value: unknown): RawRows {
  if (typeof value !== 'object' || value === null)
    return [{ line: 1, message: 'the file holds neither a list nor an object of instances' }];
  if (isRecord(value) && typeof value.instance_id === 'string') return [{ line: 1, row: value }];
  const opening = text.search(/[[{]/);
  let children = jsonChildren(text, opening, lineAt(text, opening));
  const rows = isRecord(value) && Array.isArray(value.rows) && children.find((child) => child.key === 'rows');
  if (rows) children = jsonChildren(text, rows.start, rows.line);
  const lack = rows ? lackOf(value, children.length) : null;
  return [
    ...(lack === null ? [] : [{ note: `${lack}; download the dataset's Parquet files for all of them` }]),
    ...children.map(({ key, line, start, end }) => ({
      line,
      ...unwrapped(JSON.parse(text.slice(start, end))),
      ...(key !== undefined && { key }),
    })),
  ];
}

/** JSON or JSON Lines, told apart by what is inside: people give both either suffix. */
export function readJson(bytes: Uint8Array, expected: 'json' | 'jsonl'): RawRows {
  let text: string;
  try {
    text = decoder.decode(bytes).trimStart();
  } catch {
    return [...jsonLines([bytes])]; // names the line that is not UTF-8
  }
  if (expected === 'jsonl' && !text.startsWith('[')) return [...jsonLines([bytes])];
  const original = new TextDecoder('utf-8').decode(bytes); // without the BOM, with every line break
  try {
    return entriesOf(original, JSON.parse(text));
  } catch (error) {
    const lines = [...jsonLines([bytes])];
    const isLines = lines.every((line) => 'row' in line);
    if (isLines || (expected === 'json' && text.split('\n', 1)[0]?.trimEnd().endsWith('}'))) return lines;
    return [{ line: jsonErrorLine(error, text), message: `not valid JSON: ${errorText(error)}` }];
  }
}

/** Parquet has types that JSON and the hash over a row have not: 64-bit numbers, times, bytes. */
function plain(value: unknown): unknown {
  if (typeof value === 'bigint')
    return Number.isSafeInteger(Number(value)) ? Number(value) : value.toString();
  if (value instanceof Date) return value.toISOString();
  if (value instanceof Uint8Array) return new TextDecoder().decode(value);
  if (Array.isArray(value)) return value.map(plain);
  if (ArrayBuffer.isView(value)) return Array.from(value as unknown as ArrayLike<unknown>, plain);
  if (value instanceof Map) return Object.fromEntries([...value].map(([k, v]) => [String(k), plain(v)]));
  if (typeof value === 'object' && value !== null)
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, plain(inner)]));
  return value;
}

/** A good file of the largest dataset takes seconds. */
const LEAST_MS = 60_000;
const MS_A_MEGABYTE = 1000;

/**
 * The reader can go round for ever over one wrong byte (tests/dataset/brokenParquet.test.ts), so it runs where it can be ended. Imports resolve by
 * our package.
 */
const READER = `
const { parentPort, workerData } = require('node:worker_threads');
(async () => {
  const { parquetReadObjects } = await import(workerData.hyparquet);
  const { compressors } = await import(workerData.compressors);
  try {
    parentPort.postMessage({ rows: await parquetReadObjects({ file: workerData.file, compressors }) });
  } catch (error) {
    parentPort.postMessage({ reason: error instanceof Error ? error.message : String(error) });
  }
})();
`;

type Answer = { readonly rows: readonly Record<string, unknown>[] } | { readonly reason: string };

async function rowsOf(bytes: Uint8Array, ms: number): Promise<Answer> {
  const file = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength) as ArrayBuffer;
  const workerData = {
    file,
    hyparquet: import.meta.resolve('hyparquet'),
    compressors: import.meta.resolve('hyparquet-compressors'),
  };
  const worker = new Worker(READER, { eval: true, workerData, transferList: [file] });
  const answer = new Promise<Answer>((resolve) => {
    worker.once('message', resolve);
    worker.once('error', (error) => resolve({ reason: (error as Error).message }));
    worker.once('exit', () => resolve({ reason: 'the reader ended without an answer' }));
  });
  try {
    return (await within(answer, ms)) ?? { reason: `it was not read within ${ms / 1000} s` };
  } finally {
    await worker.terminate();
  }
}

export async function readParquet(
  bytes: Uint8Array,
  ms = LEAST_MS + (bytes.length / 1e6) * MS_A_MEGABYTE,
): Promise<RawRows> {
  const answer = await rowsOf(bytes, ms);
  if ('rows' in answer) return answer.rows.map((row, i) => ({ line: i + 1, row: plain(row) }));
  return [{ line: 0, message: `not a readable Parquet file (${answer.reason}); was the download complete?` }];
}

// Rows of a large dataset stay in its file: a plan needs their names, and only a run reads them again, one at a time.

/** Larger pieces wait longer for the garbage collector, and leave the processor's cache. */
const PIECE_BYTES = 2 ** 18;

/** The file in pieces. `seen` gets each of them. */
export function* piecesOf(path: string, seen: (piece: Uint8Array) => void): Generator<Uint8Array> {
  const file = openSync(path, 'r');
  try {
    for (;;) {
      const piece = Buffer.allocUnsafeSlow(PIECE_BYTES);
      const length = readSync(file, piece);
      if (length === 0) return;
      seen(piece.subarray(0, length));
      yield piece.subarray(0, length);
    }
  } finally {
    closeSync(file);
  }
}

/** The way from rows of a dataset to instances. */
export interface RowReading {
  normalise(row: unknown): NormalisedRow;
  /** Gives an instance the image that was asked for its whole dataset, where one was. */
  withImage(instance: Instance): Instance;
}

/** Throws when the file has changed since the row was read first. */
function readAgain(
  path: string,
  { start, length }: RowInFile,
  reading: RowReading,
  unchanged: (line: Uint8Array) => boolean,
): Instance {
  const file = openSync(path, 'r');
  try {
    const bytes = Buffer.alloc(length);
    const line = bytes.subarray(0, readSync(file, bytes, 0, length, start));
    const row = unchanged(line) ? reading.normalise(rowOfLine(line)) : undefined;
    if (row?.ok) return row.instance;
  } catch {
    // The throw below tells.
  } finally {
    closeSync(file);
  }
  throw new DatasetChangedError(path);
}

/** The length of a sha256. */
const HASH_BYTES = 32;

/** Hashes by number: as text they would be a third of what is kept of a row. */
function createHashes() {
  let bytes = Buffer.alloc(0);
  return {
    set(at: number, hash: string) {
      const end = (at + 1) * HASH_BYTES;
      if (end > bytes.length) bytes = Buffer.concat([bytes, Buffer.alloc(Math.max(bytes.length, end, 4096))]);
      bytes.write(hash, at * HASH_BYTES, 'hex');
    },
    /** Zeros where no hash was set. */
    get: (at: number) => bytes.toString('hex', at * HASH_BYTES, (at + 1) * HASH_BYTES),
  };
}

/** Makes rows that keep only their head and the hash of their line. Texts that many rows share are kept once. */
export function leaveInFile(path: string, reading: RowReading) {
  const lineHashes = createHashes();
  const read = (row: RowInFile) =>
    readAgain(path, row, reading, (line) => sha256(line) === lineHashes.get(row.at));
  /** Hashes of normalised rows that were asked for: a plan asks for none, and each costs as much as its reading. */
  const rowHashes = new Map<number, string>();
  const file: RowFile = {
    instance: (row) => reading.withImage(read(row)),
    rowHash(row) {
      const hash = rowHashes.get(row.at) ?? rowHashOf(read(row));
      rowHashes.set(row.at, hash);
      return hash;
    },
  };
  let at = 0;
  const texts = new Map<string, string>();
  const once = (text: string) => {
    const known = texts.get(text);
    if (known === undefined) texts.set(text, text);
    return known ?? text;
  };
  return ({ line, start, bytes }: RawEntry, instance: Instance): RowInFile => {
    const { instance_id, image } = instance;
    const [repo, difficulty] = [once(instance.repo), once(instance.difficulty)];
    lineHashes.set(at, sha256(bytes!));
    return {
      instance_id,
      repo,
      difficulty,
      image,
      file,
      at: at++,
      line,
      start: start!,
      length: bytes!.length,
    };
  };
}
