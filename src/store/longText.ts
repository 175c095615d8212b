/**
 * Long texts of the record are stored as zlib streams, each with its length beside it. SQLite's own archives have this form: `sqlar_uncompress`
 * of the sqlite3 program reads it, so plain SQL does, and every language has zlib. zstd packs as well in 60 % of the time, and no SQL reads it.
 */
import { deflateSync, inflateSync } from 'node:zlib';

/** Below this size a stream saves little and hides the text. */
const LONG_BYTES = 1024;
/** The level of zlib, by measure of outputs and sources: 6 packs 8 % more and takes 1.7 times as long; 1 packs 5 % less in 80 % of the time. */
const LEVEL = 3;

interface Packed<Plain> {
  readonly value: Plain | Uint8Array;
  /** Null where it is stored as it is. */
  readonly bytes: number | null;
}

/** The stored form of a text or of bytes. */
export function pack<Plain extends string | Uint8Array>(plain: Plain): Packed<Plain> {
  if (plain.length < LONG_BYTES) return { value: plain, bytes: null };
  const bytes = typeof plain === 'string' ? Buffer.byteLength(plain) : plain.length;
  const packed = deflateSync(plain, { level: LEVEL });
  return packed.length < bytes * 0.9 ? { value: packed, bytes } : { value: plain, bytes: null };
}

/** The bytes of a broken stream are shown as they lie there: one such row must not hide all others. */
export function unpackBytes(value: unknown, bytes: unknown): Buffer {
  if (!(value instanceof Uint8Array)) return Buffer.from(String(value));
  const stored = Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  if (typeof bytes !== 'number') return stored;
  try {
    // In one piece: with room for more, zlib sees the end at once.
    return inflateSync(stored, { chunkSize: bytes + 64 });
  } catch {
    return stored;
  }
}

export const unpackText = (value: unknown, bytes: unknown): string =>
  typeof value === 'string' ? value : unpackBytes(value, bytes).toString('utf8');

/** A value as the sqlite3 program unpacks it (ext/misc/sqlar.c): what has its full length is no stream. */
export const sqlarUncompress = (value: unknown, bytes: unknown): unknown =>
  value instanceof Uint8Array && typeof bytes === 'number' && bytes > 0 && value.length !== bytes
    ? unpackBytes(value, bytes)
    : value;

/** A message holds its content once: in JSON of the whole, 0 stands for it. */
const CONTENT_ELSEWHERE = '"content":0';

export const withContent = (data: string, content: string): string =>
  lacksContent(data) ? data.replace(CONTENT_ELSEWHERE, () => `"content":${JSON.stringify(content)}`) : data;

/** No message has a number for its content; what a provider answered may have one somewhere below. */
function lacksContent(data: string): boolean {
  if (!data.includes(CONTENT_ELSEWHERE)) return false;
  try {
    return (JSON.parse(data) as { content?: unknown }).content === 0;
  } catch {
    return false;
  }
}

/** `short` is JSON of the same message whose content is 0. The whole stays where putting it back would not give the same bytes. */
export const withoutContent = (data: string, short: string, content: string): string =>
  withContent(short, content) === data ? short : data;

/** True where the content of a message is worth leaving out. */
export const isLong = (content: unknown): content is string =>
  typeof content === 'string' && content.length >= LONG_BYTES / 4;
