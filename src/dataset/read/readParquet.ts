/** Rows of a Parquet file as plain JSON values. */
import { parquetReadObjects } from 'hyparquet';
import { compressors } from 'hyparquet-compressors';
import { errorText } from '../../base/text/errorText.ts';
import type { RawRows } from './readJson.ts';

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

export async function readParquet(bytes: Uint8Array): Promise<RawRows> {
  const file = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength) as ArrayBuffer;
  try {
    const rows = await parquetReadObjects({ file, compressors });
    return { entries: rows.map((row, i) => ({ line: i + 1, row: plain(row) })), problems: [] };
  } catch (error) {
    const reason = errorText(error);
    return {
      entries: [],
      problems: [{ line: 0, message: `not a readable Parquet file (${reason}); was the download complete?` }],
    };
  }
}
