/**
 * A run as one file that brings all of it back: gzip of JSON lines, each a row of the record. The file lies beside other tools' formats and the
 * files of a run's folder, or in them, and says what they cannot (earlier attempts, lost calls, verdicts, names of arms).
 */
import { Readable } from 'node:stream';
import { createGunzip, gzipSync } from 'node:zlib';
import { z } from 'zod';
import { VERSION } from '../../base/files/packageFile.ts';
import { errorText } from '../../base/text/errorText.ts';
import { SourceError } from '../../formats/sourceError.ts';
import { SCHEMA_VERSION, type Store } from '../../store/open.ts';
import { type RecordedRow, rowsOfRun } from '../../store/records/wholeRun.ts';

const FORMAT = 'swebatch-record';
const MEMBER_CHARS = 4 * 1024 * 1024;
/** Texts of the record are short or compressed already: the most that was seen is 12 (a thousand commands that print nothing). */
const MOST_RATIO = 100;
const ROOM_BYTES = 64 * 1024 * 1024;

export function* recordFile(store: Store, runId: number, arm?: string): Generator<Uint8Array> {
  let text = `${JSON.stringify({ format: FORMAT, schema: SCHEMA_VERSION, program: `swebatch ${VERSION}` })}\n`;
  for (const [table, row] of rowsOfRun(store, runId, arm)) {
    const cells = Object.entries(row).map(([name, value]) => [
      name,
      value instanceof Uint8Array ? { base64: Buffer.from(value).toString('base64') } : value,
    ]);
    text += `${JSON.stringify([table, Object.fromEntries(cells)])}\n`;
    if (text.length < MEMBER_CHARS) continue;
    yield packed(text);
    text = '';
  }
  yield packed(text);
}

/** The record is of another version of the schema. The files beside it can be read all the same. */
export class OtherSchema extends Error {
  override readonly name = 'OtherSchema';
}

/** Bodies are compressed in the record already: of 185 MB, level 6 saves 0.2 % in twice the time. */
const packed = (text: string): Buffer => gzipSync(text, { level: 1 });

const headSchema = z.object({ format: z.literal(FORMAT), schema: z.number(), program: z.string() });
const bytesSchema = z.object({ base64: z.base64() }).transform(({ base64 }) => Buffer.from(base64, 'base64'));
const rowSchema = z.tuple([
  z.string(),
  z.record(z.string(), z.union([z.string(), z.number(), z.null(), bytesSchema])),
]);

/** `path` is for the message of its SourceError. */
export async function* readRecordFile(path: string, bytes: Buffer): AsyncGenerator<RecordedRow> {
  const wrong = (why: string) => new SourceError(`${path} cannot be read: ${why}`);
  let isHead = true;
  try {
    for await (const line of linesOf(bytes)) {
      const value: unknown = JSON.parse(line);
      if (!isHead) {
        yield rowSchema.parse(value) as RecordedRow;
        continue;
      }
      isHead = false;
      const { schema, program } = headSchema.parse(value);
      if (schema !== SCHEMA_VERSION)
        throw new OtherSchema(
          `${path} has a record that ${program} wrote (schema ${schema}; this one knows ${SCHEMA_VERSION}): it is read without, so earlier attempts and lost calls may be missing`,
        );
    }
  } catch (error) {
    if (error instanceof SourceError || error instanceof OtherSchema) throw error;
    throw wrong(
      error instanceof z.ZodError
        ? `it is no record of swebatch: ${error.issues[0]?.message}`
        : errorText(error),
    );
  }
  if (isHead) throw wrong('it is empty');
}

async function* linesOf(bytes: Buffer): AsyncGenerator<string> {
  let room = bytes.length * MOST_RATIO + ROOM_BYTES;
  let open: Buffer[] = [];
  for await (const chunk of Readable.from([bytes]).pipe(createGunzip()) as AsyncIterable<Buffer>) {
    room -= chunk.length;
    if (room < 0) throw new Error('it unpacks to far more than a record holds');
    let from = 0;
    for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, from)) {
      open.push(chunk.subarray(from, at));
      yield Buffer.concat(open).toString('utf8');
      open = [];
      from = at + 1;
    }
    open.push(chunk.subarray(from));
  }
  if (open.some(({ length }) => length > 0)) throw new Error('it is cut off');
}
