// Bodies that programs pack: read, metered and sent on unpacked; bombs, unknown codings and everything else that is refused counts as refused.
import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { SAMPLES, type Sample, sampleOf } from './bodies.ts';
import { type FakeProvider, fakeProvider, json } from './fakeProvider.ts';
import { type Bench, type BenchOptions, bench } from './gatewayBench.ts';

let provider: FakeProvider;
const open: Bench[] = [];

beforeAll(async () => {
  provider = await fakeProvider();
});
afterEach(async () => {
  await Promise.all(open.splice(0).map((one) => one.stop()));
  provider.got.length = 0;
});
afterAll(() => provider.close());

async function start(dialect: Sample['dialect'], options: BenchOptions['options'] = {}): Promise<Bench> {
  const made = await bench({ providerUrl: provider.url, dialect, options });
  open.push(made);
  provider.script(json(sampleOf(dialect).answer));
  return made;
}

interface Sent {
  readonly body: Buffer | readonly Buffer[];
  readonly encoding?: string;
  readonly headers?: Record<string, string>;
}

/** Several parts are sent in chunks, without a length. */
async function post(here: Bench, sample: Sample, { body, encoding, headers = {} }: Sent) {
  const chunked = Array.isArray(body);
  const client = httpRequest(`${here.url}${sample.path}`, {
    method: 'POST',
    headers: {
      ...sample.keyHeader(here.session.key),
      ...headers,
      ...(encoding !== undefined && { 'content-encoding': encoding }),
      ...(!chunked && { 'content-length': (body as Buffer).length }),
    },
  });
  // What is far too long is answered before all of it has left.
  client.on('error', () => undefined);
  for (const part of chunked ? (body as readonly Buffer[]) : []) client.write(part);
  client.end(chunked ? undefined : body);
  const [answer] = (await once(client, 'response')) as [IncomingMessage];
  let text = '';
  for await (const part of answer) text += String(part);
  return { status: answer.statusCode, text };
}

type Pack = (text: Buffer) => Buffer;
const PACKED: readonly (readonly [string, Pack])[] = [
  ['gzip', gzipSync],
  ['X-GZIP', gzipSync],
  ['deflate', deflateSync],
  ['deflate', deflateRawSync],
  ['br', brotliCompressSync],
  ['zstd', zstdCompressSync],
  ['identity', (text) => text],
  ['gzip, br', (text) => brotliCompressSync(gzipSync(text))],
  ['identity, zstd', zstdCompressSync],
];

test.each(SAMPLES)(
  '$dialect: packed bodies of every coding are asked as they were before',
  async (sample) => {
    const here = await start(sample.dialect);
    const written = Buffer.from(` ${JSON.stringify(sample.request)}\n`);
    for (const [encoding, pack] of PACKED) {
      const packed = pack(written);
      const parts = [packed.subarray(0, 1), packed.subarray(1, 9), packed.subarray(9)];
      for (const body of [packed, parts]) {
        provider.got.length = 0;
        expect(await post(here, sample, { body, encoding })).toMatchObject({ status: 200 });
        expect(provider.got).toHaveLength(1);
        expect(provider.got[0]!.body).toEqual(written);
        expect(provider.got[0]!.headers).not.toHaveProperty('content-encoding');
        expect(Number(provider.got[0]!.headers['content-length'])).toBe(written.length);
      }
    }
    expect(here.rows).toHaveLength(2 * PACKED.length);
    for (const row of here.rows) expect(row).toMatchObject({ state: 'ok', usage: { input: 11, output: 7 } });
    // The record has what was asked.
    for (const call of here.calls) expect(call.request).toEqual(sample.request);
  },
);

test('a program that asks first whether it may send gets its answer', async () => {
  const here = await start('chat');
  const sample = sampleOf('chat');
  const body = gzipSync(JSON.stringify(sample.request));
  const client = httpRequest(`${here.url}${sample.path}`, {
    method: 'POST',
    headers: { ...sample.keyHeader(here.session.key), 'content-encoding': 'gzip', expect: '100-continue' },
  });
  client.flushHeaders();
  await once(client, 'continue');
  client.end(body);
  const [answer] = (await once(client, 'response')) as [IncomingMessage];
  expect(answer.statusCode).toBe(200);
  answer.resume();
});

const request = Buffer.from(JSON.stringify(sampleOf('chat').request));
const nothing = Buffer.alloc(40 << 20, gzipSync(''));
const bomb = Buffer.from(`{"user":"${'x'.repeat(40 << 20)}"}`);

test.each<[what: string, sent: Sent, status: number, why: RegExp]>([
  [
    'a coding that nobody knows',
    { body: request, encoding: 'compress' },
    415,
    /compress, and gzip, .*zstd are read/,
  ],
  [
    'more codings than anybody uses',
    { body: request, encoding: 'gzip, gzip, gzip' },
    415,
    /gzip, gzip, gzip/,
  ],
  [
    'a body that is not packed as it says',
    { body: request, encoding: 'gzip' },
    400,
    /not what its content-encoding gzip/,
  ],
  [
    'one that is cut off',
    { body: gzipSync(request).subarray(0, 40), encoding: 'gzip' },
    400,
    /not what its content-enc/,
  ],
  ['another frame than zstd', { body: request, encoding: 'zstd' }, 400, /not what its content-encoding zstd/],
  ['packed text that is no JSON', { body: gzipSync('hello'), encoding: 'gzip' }, 400, /no JSON/],
  ['a bomb', { body: gzipSync(bomb), encoding: 'gzip' }, 413, /more than 32 MB/],
  ['a bomb of zstd, in chunks', { body: [zstdCompressSync(bomb)], encoding: 'zstd' }, 413, /more than 32 MB/],
  [
    'a bomb within a bomb',
    { body: gzipSync(gzipSync(bomb)), encoding: 'gzip, gzip' },
    413,
    /more than 32 MB/,
  ],
  [
    'much that unpacks to nothing',
    { body: gzipSync(nothing), encoding: 'gzip, gzip' },
    413,
    /more than 32 MB/,
  ],
  ['a length beyond all', { body: bomb }, 413, /more than 32 MB/],
  [
    'an expectation that nobody knows',
    { body: request, headers: { expect: 'miracle' } },
    417,
    /expects miracle/,
  ],
])('%s is refused, told, and counts as refused', async (_what, sent, status, why) => {
  const here = await start('chat');
  const sample = sampleOf('chat');
  const answer = await post(here, sample, sent);
  expect(answer.status).toBe(status);
  if (status !== 417) expect(JSON.parse(answer.text).error.message).toMatch(why);
  expect(here.session.state()).toMatchObject({ calls: 0, refusal: expect.stringMatching(why) });
  expect(provider.got).toHaveLength(0);
  // The next one is asked.
  expect(await post(here, sample, { body: request })).toMatchObject({ status: 200 });
});

test.each([
  [
    'a tunnel',
    'CONNECT api.openai.com:443 HTTP/1.1\r\nhost: api.openai.com\r\n\r\n',
    405,
    /api.openai.com:443/,
  ],
  ['TLS', '\x16\x03\x01\x02\x00\x01\x00\x01', 400, /no HTTP\/1/],
  [
    'a WebSocket',
    'GET /v1/responses HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\r\n',
    426,
    /WebSockets/,
  ],
])('%s counts as refused', async (_what, bytes, status, why) => {
  const here = await start('chat');
  const socket = connect(Number(new URL(here.url).port), '127.0.0.1');
  socket.write(bytes, 'latin1');
  let answer = '';
  for await (const part of socket) answer += String(part);
  expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
  expect(here.session.state()).toMatchObject({ calls: 0, refusal: expect.stringMatching(why) });
});

test('what unpacks counts against the memory of its attempt while it comes, and is given back', async () => {
  const here = await start('chat', { heldBytes: 3 << 20 });
  const sample = sampleOf('chat');
  const large = gzipSync(JSON.stringify({ ...sample.request, user: 'x'.repeat(2 << 20) }));
  const gate = Promise.withResolvers<void>();
  provider.script(async (response) => {
    await gate.promise;
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(sample.answer));
  });
  const first = post(here, sample, { body: large, encoding: 'gzip' });
  await expect.poll(() => provider.got.length).toBe(1);
  const other = gzipSync(JSON.stringify({ ...sample.request, user: 'y'.repeat(2 << 20) }));
  expect(await post(here, sample, { body: other, encoding: 'gzip' })).toMatchObject({ status: 413 });
  gate.resolve();
  expect(await first).toMatchObject({ status: 200 });
  expect(await post(here, sample, { body: other, encoding: 'gzip' })).toMatchObject({ status: 200 });
});
