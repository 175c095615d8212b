/** Rows of a Parquet file as plain JSON values. */
import { Worker } from 'node:worker_threads';
import { within } from '../../base/async/timer.ts';
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

/** A good file of the largest dataset takes seconds. */
const LEAST_MS = 60_000;
const MS_A_MEGABYTE = 1000;

/** One wrong byte can make the reader go round for ever, so it runs where it can be ended. It resolves by its own package. */
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
  if ('rows' in answer)
    return { entries: answer.rows.map((row, i) => ({ line: i + 1, row: plain(row) })), problems: [] };
  return {
    entries: [],
    problems: [
      { line: 0, message: `not a readable Parquet file (${answer.reason}); was the download complete?` },
    ],
  };
}
