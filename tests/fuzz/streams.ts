// Streams: whatever the bytes and however they are cut, the same comes out.
import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { createDemux } from '../../src/environment/docker/startProcess.ts';
import {
  createFenceFinder,
  createFrameReader,
  fenceOf,
  parseEnd,
} from '../../src/environment/exec/endReport.ts';
import { createCollector } from '../../src/environment/exec/outputCollector.ts';
import { readEvents } from '../../src/model/http/httpTry.ts';
import { DIALECTS } from '../support/foreign/modelReaders.ts';
import { attemptWith } from './attemptWith.ts';
import { CORPORA, textLike } from './corpus.ts';
import { type Target, target } from './target.ts';

const same = (a: unknown, b: unknown): void => {
  if (!isDeepStrictEqual(a, b)) throw new Error(`differ:\n${JSON.stringify(a)}\n${JSON.stringify(b)}`);
};

function cut(bytes: Uint8Array, places: readonly number[]): Buffer[] {
  const at = [...new Set(places.map((n) => n % (bytes.length + 1)))].sort((a, b) => a - b);
  return [0, ...at].map((from, i) => Buffer.from(bytes.subarray(from, at[i] ?? bytes.length)));
}

const places = fc.array(fc.nat(), { maxLength: 20 });
const NONCE = '0123456789abcdef01234567';
const piece = fc.oneof(
  fc.uint8Array({ maxLength: 20 }),
  fc
    .constantFrom(
      '\x1e',
      '\x1e0 0 0 0\x1e',
      '\x1enocwd\x1e',
      fenceOf(NONCE),
      fenceOf(NONCE).slice(0, 9),
      '\x1eNaN 0 0 0\x1e',
      '\x1e1e400 0 0 0\x1e',
    )
    .map((text) => new Uint8Array(Buffer.from(text))),
);
const bytes = fc.array(piece, { maxLength: 30 }).map((parts) => Buffer.concat(parts));

const ends = (chunks: readonly Buffer[]) => {
  const found: unknown[] = [];
  const feed = createFrameReader((text) => found.push(parseEnd(text)));
  for (const chunk of chunks) feed(chunk);
  return found;
};

const fenced = (chunks: readonly Buffer[]) => {
  const before: Buffer[] = [];
  const find = createFenceFinder(fenceOf(NONCE), (data) => before.push(Buffer.from(data)));
  let after: Buffer | undefined;
  for (const chunk of chunks)
    if (after) after = Buffer.concat([after, chunk]);
    else after = find(chunk);
  return { before: after ? Buffer.concat(before).toString('hex') : null, after: after?.toString('hex') };
};

const demuxed = (chunks: readonly Buffer[]) => {
  const got = new Map<number, Buffer[]>();
  const feed = createDemux((type, data) => got.set(type, [...(got.get(type) ?? []), Buffer.from(data)]));
  for (const chunk of chunks) feed(chunk);
  return [...got].map(([type, parts]) => [type, Buffer.concat(parts).toString('hex')]).toSorted();
};

const collected = (chunks: readonly Buffer[], most: number) => {
  const collector = createCollector(most);
  for (const chunk of chunks) collector.push(chunk);
  const { raw, ...rest } = collector.finish();
  return { ...rest, raw: Buffer.from(raw).toString('hex') };
};

const WORDS = [
  'data: ',
  '\n\n',
  '\n',
  '\r\n',
  ': a\n',
  'event: x\n',
  '[DONE]',
  '{"choices":[{"delta":{"content":"é"}}]}',
  '{"error":{"message":"a"}}',
  '{}',
  'id: 1\n',
  '\ufeff',
  '😀',
];

async function events(chunks: readonly Buffer[]): Promise<unknown[]> {
  const found: unknown[] = [];
  async function* body() {
    yield* chunks;
  }
  try {
    for await (const event of readEvents(body(), (text) => found.push(['other', text]))) found.push(event);
  } catch (error) {
    if ((error as Error).name !== 'UnreadableEvent') throw error;
    found.push('unreadable');
  }
  return found;
}

const sse = textLike(CORPORA.model!(), WORDS);
const bare = ({ reply, failure, characters, notes, body }: Awaited<ReturnType<typeof attemptWith>>) => ({
  reply,
  failure: failure?.verdict,
  characters,
  notes,
  body,
});

export const streamTargets = (): Target[] => [
  target(
    'ends of commands in any chunks',
    fc.property(bytes, places, (all, at) => same(ends(cut(all, at)), ends([all]))),
  ),
  target(
    'a fence in any chunks',
    fc.property(bytes, places, (all, at) => same(fenced(cut(all, at)), fenced([all]))),
  ),
  target(
    "Docker's frames in any chunks",
    fc.property(bytes, places, (all, at) => same(demuxed(cut(all, at)), demuxed([all]))),
  ),
  target(
    'output in any chunks',
    fc.property(bytes, places, fc.integer({ min: 1, max: 200 }), (all, at, most) =>
      same(collected(cut(all, at), most), collected([all], most)),
    ),
  ),
  target(
    'server-sent events in any chunks',
    fc.asyncProperty(sse, places, async (text, at) => {
      const all = Buffer.from(text);
      same(await events(cut(all, at)), await events([all]));
    }),
  ),
  ...DIALECTS.flatMap((dialect) => [
    target(
      `${dialect.name}: a streamed answer, whatever it is, is a reply or a named failure`,
      fc.asyncProperty(sse, fc.integer({ min: 1, max: 50 }), async (text, chunk) => {
        const all = Buffer.from(text);
        same(bare(await attemptWith(dialect, all, { chunk })), bare(await attemptWith(dialect, all)));
      }),
    ),
    target(
      `${dialect.name}: a plain answer of any status`,
      fc.asyncProperty(sse, fc.constantFrom(200, 400, 403, 413, 429, 500, 529), async (text, status) => {
        const { reply, failure } = await attemptWith(dialect, Buffer.from(text), {
          status,
          streaming: false,
        });
        if ((reply === null) === (failure === null)) throw new Error('a reply and a failure, or neither');
        if (status !== 200 && reply) throw new Error(`a reply of status ${status}`);
      }),
    ),
  ]),
];
