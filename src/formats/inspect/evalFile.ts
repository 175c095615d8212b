/** Reads an .eval file: a zip with header.json, a file for each sample, and summaries. A long or damaged sample is taken from its summary. */

import { basename } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { crc32, createInflateRaw, createZstdDecompress } from 'node:zlib';
import { type Entry, openPromise, type ZipFile as RawZip } from 'yauzl';
import { errorText } from '../../base/text/errorText.ts';
import type { InspectLog } from './samples.ts';
import { type InspectSample, readInspectHeader, readInspectSample, readInspectSummaries } from './samples.ts';

/** A header with the ids of 100,000 samples has 4 MB. */
const MOST_HEADER = 64 * 1024 * 1024;
const MOST_SUMMARIES = 256 * 1024 * 1024;
/** JSON of this size takes a second and a gigabyte to read. */
const MOST_SAMPLE = 128 * 1024 * 1024;
/** Compressed rows of one arm. */
const MOST_RECORD = 1024 * 1024 * 1024;

/** The log, or why it cannot be read. */
export async function readEvalFile(path: string): Promise<Omit<InspectLog, 'path'> | string> {
  try {
    await using zip = await openZip(path);
    return await logIn(zip, basename(path));
  } catch (error) {
    if (error instanceof ZipError || (error as NodeJS.ErrnoException).code) return errorText(error);
    throw error;
  }
}

/** An entry of it; null where there is none, or no archive that can be read. */
export async function readFromEval(path: string, name: string): Promise<Buffer | null> {
  try {
    await using zip = await openZip(path);
    return zip.names.includes(name) ? await zip.read(name, MOST_RECORD) : null;
  } catch (error) {
    if (error instanceof ZipError || (error as NodeJS.ErrnoException).code) return null;
    throw error;
  }
}

async function logIn(zip: ZipFile, name: string): Promise<Omit<InspectLog, 'path'> | string> {
  const warnings: string[] = [];
  const started = '_journal/start.json';
  const headerName = zip.names.includes('header.json') ? 'header.json' : started;
  if (!zip.names.includes(headerName)) return 'it has no header.json: it is no log of Inspect';
  if (headerName === started) warnings.push(`${name} was never finished: it has no results of its own`);
  const header = readInspectHeader(await zip.read(headerName, MOST_HEADER));
  if (!header.ok) return `${headerName}: ${header.message}`;
  const summaries = await summariesIn(zip, warnings);
  const samples: InspectLog['samples'][number][] = [];
  for (const file of zip.names.filter((each) => /^samples\/[^/]+\.json$/.test(each))) {
    const found = await sampleIn(zip, file);
    const place = typeof found === 'string' ? placeInName(file) : `${found.id} ${found.epoch}`;
    const summary = summaries.get(place);
    summaries.delete(place);
    if (typeof found === 'string') {
      warnings.push(
        `${name}: ${found.startsWith(file) ? found : `${file}: ${found}`}${summary ? '; its summary is used' : ''}`,
      );
      samples.push({ ...(summary ?? lostSample(place, found)), unread: found });
      continue;
    }
    samples.push(found);
  }
  // Logs can be written without their samples.
  for (const summary of summaries.values())
    samples.push({ ...summary, unread: 'the log holds its summary alone' });
  return { header: header.value, samples, warnings };
}

/** The sample was run, and its end is not known. */
function lostSample(place: string, why: string): InspectSample {
  const [id = '', epoch = ''] = place.split(' ');
  const empty = { messages: [], attachments: {}, model_usage: {} };
  return { ...empty, id, epoch: Number(epoch) || 1, error: { message: `unreadable: ${why}`, traceback: '' } };
}

/** `samples/<id>_epoch_<n>.json` as "<id> <n>". */
const placeInName = (file: string): string =>
  file.replace(/^samples\//, '').replace(/_epoch_(\d+)\.json$/, ' $1');

async function sampleIn(zip: ZipFile, file: string): Promise<InspectSample | string> {
  try {
    const read = readInspectSample(await zip.read(file, MOST_SAMPLE));
    return read.ok ? read.value : read.message;
  } catch (error) {
    if (error instanceof ZipError) return error.message;
    throw error;
  }
}

/** The summaries of a log that was cut off stand in its journal, a few in each file. */
async function summariesIn(zip: ZipFile, warnings: string[]): Promise<Map<string, InspectSample>> {
  const whole = zip.names.includes('summaries.json');
  const names = whole
    ? ['summaries.json']
    : zip.names.filter((each) => /^_journal\/summaries\/\d+\.json$/.test(each));
  const found = new Map<string, InspectSample>();
  for (const name of names) {
    try {
      const read = readInspectSummaries(await zip.read(name, MOST_SUMMARIES));
      if (!read.ok) warnings.push(`${name}: ${read.message}`);
      else for (const each of read.value) found.set(`${each.id} ${each.epoch}`, each);
    } catch (error) {
      if (!(error instanceof ZipError)) throw error;
      warnings.push(error.message);
    }
  }
  return found;
}

/** The archive is damaged, or larger than we read. */
export class ZipError extends Error {
  override readonly name = 'ZipError';
}

interface ZipFile extends AsyncDisposable {
  /** Files in the order of the directory; the last of equal names counts. */
  readonly names: readonly string[];
  /** Throws a ZipError; also when the file is longer than `most` bytes, whatever the archive says. */
  read(name: string, most: number): Promise<Buffer>;
}

/** A log of 100,000 samples is far below it; each entry costs memory. Observed with the limits below: tests/formats/zipFile.test.ts. */
const MOST_ENTRIES = 500_000;
/** The most bytes of all files together: 400 of 50 MB took over a minute. Samples beyond are taken from their summaries. */
const MOST_UNPACKED = 2 * 1024 * 1024 * 1024;
const STORED = 0;
const DEFLATE = 8;
const ZSTD = 93;

/** `unpacked`: bytes that are read of all files together. Throws a ZipError. */
export async function openZip(path: string, unpacked = MOST_UNPACKED): Promise<ZipFile> {
  let zip: RawZip;
  try {
    zip = await openPromise(path, { lazyEntries: true, autoClose: false });
  } catch (error) {
    throw new ZipError(`it is no zip archive, or cut off: ${errorText(error)}`);
  }
  try {
    const entries = await entriesOf(zip);
    const room: Room = { most: unpacked, left: unpacked };
    return {
      names: [...entries.keys()],
      read: (name, most) => readEntry(zip, entries.get(name), { name, most, room }),
      [Symbol.asyncDispose]: async () => zip.close(),
    };
  } catch (error) {
    zip.close();
    throw error;
  }
}

async function entriesOf(zip: RawZip): Promise<Map<string, Entry>> {
  if (zip.entryCount > MOST_ENTRIES) throw new ZipError(`it holds ${zip.entryCount} files`);
  const all: Entry[] = [];
  try {
    for await (const entry of zip.eachEntry()) all.push(entry);
  } catch (error) {
    throw new ZipError(`its directory cannot be read: ${errorText(error)}`);
  }
  refuseOverlap(all);
  return new Map(all.map((entry) => [entry.fileName, entry]));
}

/** The length of the header in front of each file, without its name. */
const HEADER_BYTES = 30;

/** No program writes such an archive: 400 entries of one body of 50 MB are a file of 50 KB that reads as 20 GB. */
function refuseOverlap(entries: readonly Entry[]): void {
  const inOrder = entries.toSorted((a, b) => a.relativeOffsetOfLocalHeader - b.relativeOffsetOfLocalHeader);
  for (const [k, entry] of inOrder.entries()) {
    const next = inOrder[k + 1];
    const end = entry.relativeOffsetOfLocalHeader + HEADER_BYTES + entry.compressedSize;
    if (next && next.relativeOffsetOfLocalHeader < end)
      throw new ZipError(`its files lie over each other: ${next.fileName} begins within ${entry.fileName}`);
  }
}

/** The room of all files of an archive together. */
interface Room {
  readonly most: number;
  left: number;
}

function decoderOf({ compressionMethod }: Entry) {
  if (compressionMethod === DEFLATE) return createInflateRaw();
  if (compressionMethod === ZSTD) return createZstdDecompress();
  return null;
}

async function readEntry(
  zip: RawZip,
  entry: Entry | undefined,
  { name, most, room }: { readonly name: string; readonly most: number; readonly room: Room },
): Promise<Buffer> {
  if (!entry) throw new ZipError(`${name} is not in it`);
  const decoder = decoderOf(entry);
  if (entry.isEncrypted()) throw new ZipError(`${name} is encrypted`);
  if (!decoder && entry.compressionMethod !== STORED)
    throw new ZipError(
      `${name} is compressed by a method that is not known here (${entry.compressionMethod})`,
    );
  if (entry.uncompressedSize > most) throw tooLong(name, most);
  if (entry.uncompressedSize > room.left) throw noRoom(name, room);
  try {
    const raw = await zip.openReadStreamPromise(entry, { decodeFileData: false });
    const bytes = (source: AsyncIterable<Buffer>) => collected(source, { name, most, room });
    const read = await (decoder ? pipeline(raw, decoder, bytes) : pipeline(raw, bytes));
    if (read.length !== entry.uncompressedSize || crc32(read) !== entry.crc32)
      throw new ZipError(`${name} is damaged: its length or checksum is another one`);
    return read;
  } catch (error) {
    throw error instanceof ZipError ? error : new ZipError(`${name} cannot be read: ${errorText(error)}`);
  }
}

/** Counts what comes out, so that a small archive cannot fill the memory. */
async function collected(
  source: AsyncIterable<Buffer>,
  { name, most, room }: { readonly name: string; readonly most: number; readonly room: Room },
): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let length = 0;
  for await (const piece of source) {
    length += piece.length;
    room.left -= piece.length;
    if (length > most) throw tooLong(name, most);
    if (room.left < 0) throw noRoom(name, room);
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}

const noRoom = (name: string, { most }: Room): ZipError =>
  new ZipError(`${name} is not read: the archive unpacks to more than ${Math.floor(most / 2 ** 20)} MB`);
const tooLong = (name: string, most: number): ZipError =>
  new ZipError(`${name} is longer than ${Math.round(most / 2 ** 20)} MB`);
