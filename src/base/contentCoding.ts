/** Content codings of HTTP: a body as it was before it was packed. */
import { pipeline, Readable, type Transform } from 'node:stream';
import {
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createInflateRaw,
  createZstdDecompress,
} from 'node:zlib';

type Bytes = AsyncIterable<Buffer>;

const through =
  (make: () => Transform) =>
  (packed: Bytes): Bytes =>
    // The reader gets the error.
    pipeline(Readable.from(packed), make(), () => undefined);

/** The word means a zlib stream; some clients send what is inside of one. */
async function* inflated(packed: Bytes): AsyncGenerator<Buffer> {
  const parts = packed[Symbol.asyncIterator]();
  let head: Buffer = Buffer.alloc(0);
  while (head.length < 2) {
    const next = await parts.next();
    if (next.done) break;
    head = Buffer.concat([head, next.value]);
  }
  const isZlib = head.length > 1 && (head[0]! & 0x0f) === 8 && head.readUInt16BE(0) % 31 === 0;
  const whole = async function* (): Bytes {
    yield head;
    yield* { [Symbol.asyncIterator]: () => parts };
  };
  yield* through(isZlib ? createInflate : createInflateRaw)(whole());
}

const gunzipped = through(createGunzip);
const UNPACK: Readonly<Record<string, (packed: Bytes) => Bytes>> = {
  gzip: gunzipped,
  'x-gzip': gunzipped,
  deflate: inflated,
  br: through(createBrotliDecompress),
  zstd: through(createZstdDecompress),
};
export const KNOWN_CODINGS: readonly string[] = Object.keys(UNPACK);

/** Nobody packs more often, and each time multiplies what a small body may become. */
const MOST_CODINGS = 2;

/** The codings of a body, in that order; null where one of them is not known. */
export function codingsOf(header: string | undefined): readonly string[] | null {
  const names = (header ?? '')
    .split(',')
    .map((name) => name.trim().toLowerCase())
    .filter((name) => name !== '' && name !== 'identity');
  return names.length <= MOST_CODINGS && names.every((name) => Object.hasOwn(UNPACK, name)) ? names : null;
}

/** More bytes than are taken. */
export class TooLong extends Error {
  override readonly name = 'TooLong';
}

async function* atMost(bytes: Bytes, most: number): AsyncGenerator<Buffer> {
  let length = 0;
  for await (const part of bytes) {
    length += part.length;
    if (length > most) throw new TooLong(`more than ${most} bytes`);
    yield part;
  }
}

/** Throws TooLong where the body, as it came or unpacked, has more than `most` bytes. */
export const unpackedBody = (
  body: Bytes,
  codings: readonly string[],
  most = Number.POSITIVE_INFINITY,
): Bytes =>
  codings.toReversed().reduce((bytes, name) => atMost(UNPACK[name]!(bytes), most), atMost(body, most));
