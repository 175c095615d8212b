/** Reads single files of a zip archive, bounded: what it says about sizes is somebody else's claim. Deflate, and zstd as newer writers use it. */
import { pipeline } from 'node:stream/promises';
import { crc32, createInflateRaw, createZstdDecompress } from 'node:zlib';
import { type Entry, openPromise, type ZipFile as RawZip } from 'yauzl';
import { errorText } from '../../base/text/errorText.ts';

/** The archive is damaged, or larger than we read. */
export class ZipError extends Error {
  override readonly name = 'ZipError';
}

export interface ZipFile extends AsyncDisposable {
  /** Files in the order of the directory; the last of equal names counts. */
  readonly names: readonly string[];
  /** Throws a ZipError; also when the file is longer than `most` bytes, whatever the archive says. */
  read(name: string, most: number): Promise<Buffer>;
}

/** A log of 100,000 samples is far below it; each entry costs memory. */
const MOST_ENTRIES = 500_000;
const STORED = 0;
const DEFLATE = 8;
const ZSTD = 93;

/** Throws a ZipError. */
export async function openZip(path: string): Promise<ZipFile> {
  let zip: RawZip;
  try {
    zip = await openPromise(path, { lazyEntries: true, autoClose: false });
  } catch (error) {
    throw new ZipError(`it is no zip archive, or cut off: ${errorText(error)}`);
  }
  try {
    const entries = await entriesOf(zip);
    return {
      names: [...entries.keys()],
      read: (name, most) => readEntry(zip, entries.get(name), { name, most }),
      [Symbol.asyncDispose]: async () => zip.close(),
    };
  } catch (error) {
    zip.close();
    throw error;
  }
}

async function entriesOf(zip: RawZip): Promise<Map<string, Entry>> {
  if (zip.entryCount > MOST_ENTRIES) throw new ZipError(`it holds ${zip.entryCount} files`);
  const entries = new Map<string, Entry>();
  try {
    for await (const entry of zip.eachEntry()) entries.set(entry.fileName, entry);
  } catch (error) {
    throw new ZipError(`its directory cannot be read: ${errorText(error)}`);
  }
  return entries;
}

function decoderOf({ compressionMethod }: Entry) {
  if (compressionMethod === DEFLATE) return createInflateRaw();
  if (compressionMethod === ZSTD) return createZstdDecompress();
  return null;
}

async function readEntry(
  zip: RawZip,
  entry: Entry | undefined,
  { name, most }: { readonly name: string; readonly most: number },
): Promise<Buffer> {
  if (!entry) throw new ZipError(`${name} is not in it`);
  const decoder = decoderOf(entry);
  if (entry.isEncrypted()) throw new ZipError(`${name} is encrypted`);
  if (!decoder && entry.compressionMethod !== STORED)
    throw new ZipError(
      `${name} is compressed by a method that is not known here (${entry.compressionMethod})`,
    );
  if (entry.uncompressedSize > most) throw tooLong(name, most);
  try {
    const raw = await zip.openReadStreamPromise(entry, { decodeFileData: false });
    const bytes = (source: AsyncIterable<Buffer>) => collected(source, name, most);
    const read = await (decoder ? pipeline(raw, decoder, bytes) : pipeline(raw, bytes));
    if (read.length !== entry.uncompressedSize || crc32(read) !== entry.crc32)
      throw new ZipError(`${name} is damaged: its length or checksum is another one`);
    return read;
  } catch (error) {
    throw error instanceof ZipError ? error : new ZipError(`${name} cannot be read: ${errorText(error)}`);
  }
}

/** Counts what comes out, so that a small archive cannot fill the memory. */
async function collected(source: AsyncIterable<Buffer>, name: string, most: number): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let length = 0;
  for await (const piece of source) {
    length += piece.length;
    if (length > most) throw tooLong(name, most);
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}

const tooLong = (name: string, most: number): ZipError =>
  new ZipError(`${name} is longer than ${Math.round(most / 2 ** 20)} MB`);
