// Downloading from the hub through the official client, against a local server that speaks its API.

import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { retryAfterMs } from '../../src/base/async/timer.ts';
import { headOf } from '../../src/dataset/dataset.ts';
import { hubAccess, type PullOptions, pullDataset, verifySnapshot } from '../../src/dataset/hub.ts';
import { loadDataset } from '../../src/suites/loadDataset.ts';
import { type FakeHub, startFakeHub } from '../support/fakeHub.ts';
import { rawRow } from './rows.ts';

const COMMIT = 'c'.repeat(40);
const REPO = 'SWE-bench/SWE-bench_Lite';
const rowsOf = (n: number, from = 0) =>
  Buffer.from(
    Array.from(
      { length: n },
      (_, i) => `${JSON.stringify(rawRow(`a__a-${i + from}`, { patch: 'x'.repeat(500) }))}\n`,
    ).join(''),
  );
const TEST_BYTES = rowsOf(400);
let dir: string;
let hub: FakeHub;
let waits: number[];

beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), 'swebatch-hub-'));
  waits = [];
  hub = await startFakeHub({
    [REPO]: {
      commit: COMMIT,
      files: {
        'README.md': Buffer.from('card'),
        'data/test.jsonl': TEST_BYTES,
        'data/dev.jsonl': rowsOf(3, 1000),
      },
      inGit: ['data/dev.jsonl'],
    },
  });
});
afterEach(async () => {
  await hub.close();
  rmSync(dir, { recursive: true });
});

const env = (more = {}) => ({ HF_HOME: dir, HF_ENDPOINT: hub.url, ...more });
const pull = (source = 'lite', more: Partial<PullOptions> = {}, envMore = {}) =>
  pullDataset(source, {
    access: hubAccess(env(envMore)),
    sleep: async (ms) => void waits.push(ms),
    ...more,
  });
const repoDir = () => join(dir, 'hub', 'datasets--SWE-bench--SWE-bench_Lite');
const resolves = () => hub.requests.filter((r) => r.path.includes('/resolve/') && r.range !== 'bytes=0-0');

describe('cache', () => {
  test('the test split lands in the standard layout and loads by its alias with its revision', async () => {
    const result = await pull();
    expect(result).toMatchObject({
      ok: true,
      repo: REPO,
      revision: COMMIT,
      files: [{ path: 'data/test.jsonl' }],
    });
    expect(readFileSync(join(repoDir(), 'refs', 'main'), 'utf8')).toBe(COMMIT);
    expect(readdirSync(join(repoDir(), 'blobs'))).toEqual([expect.stringMatching(/^[0-9a-f]{64}$/)]);
    const loaded = await loadDataset('lite', { env: env() });
    expect(loaded).toMatchObject({ ok: true, dataset: { revision: COMMIT, split: 'test' } });
    expect(loaded.ok && loaded.dataset.rows).toHaveLength(400);
  });

  test('a table is a split where nothing else is one, and is left where it lies beside rows', async () => {
    const table = Buffer.from('instance_id,repo,base_commit,problem_statement\na__a-1,a/a,abc,x\n');
    hub.repos[REPO] = { commit: COMMIT, files: { 'test.csv': table } };
    expect(await pull()).toMatchObject({ ok: true, files: [{ path: 'test.csv' }] });
    const loaded = await loadDataset('lite', { env: env() });
    expect(loaded.ok && loaded.dataset.rows.map((row) => headOf(row).instance_id)).toEqual(['a__a-1']);
    hub.repos[REPO] = { commit: 'b'.repeat(40), files: { 'train.jsonl': TEST_BYTES, 'about.csv': table } };
    expect(await pull()).toMatchObject({ ok: true, files: [{ path: 'train.jsonl' }] });
  });

  test('what is there is not fetched again', async () => {
    await pull();
    const before = resolves().length;
    const again = await pull();
    expect(again).toMatchObject({
      ok: true,
      files: [{ reusedBytes: TEST_BYTES.length, bytes: TEST_BYTES.length }],
    });
    expect(resolves()).toHaveLength(before);
  });

  test('a named split, all splits, and a split that does not exist', async () => {
    expect(await pull('lite', { split: 'dev' })).toMatchObject({
      ok: true,
      files: [{ path: 'data/dev.jsonl' }],
    });
    const all = await pull('lite', { split: 'all' });
    expect(all.ok && all.files.map((f) => f.path)).toEqual(['data/test.jsonl', 'data/dev.jsonl']);
    expect(await pull('lite', { split: 'nope' })).toMatchObject({
      ok: false,
      message: expect.stringContaining('no split "nope"; it holds dev, test'),
    });
  });

  test('a pinned commit asks for no branch and leaves main alone', async () => {
    expect(await pull('lite', { revision: COMMIT })).toMatchObject({ ok: true, revision: COMMIT });
    expect(existsSync(join(repoDir(), 'refs', 'main'))).toBe(false);
    expect(hub.requests.some((r) => r.path.includes('/revision/'))).toBe(false);
    expect(await pull('lite', { revision: 'd'.repeat(40) })).toMatchObject({
      ok: false,
      message: expect.stringContaining('check the name and the revision'),
    });
  });

  test('a new revision gets its own snapshot; the old one stays loadable', async () => {
    await pull();
    const next = 'e'.repeat(40);
    hub.repos[REPO] = { commit: next, files: { 'data/test.jsonl': rowsOf(5) } };
    expect(await pull()).toMatchObject({ ok: true, revision: next });
    const [now, before] = [
      await loadDataset('lite', { env: env() }),
      await loadDataset('lite', { env: env(), revision: COMMIT }),
    ];
    expect(now.ok && now.dataset.rows).toHaveLength(5);
    expect(before.ok && before.dataset.rows).toHaveLength(400);
  });

  test('a repository that is not under its new name is found under the old one', async () => {
    hub.repos['princeton-nlp/SWE-bench_Lite'] = hub.repos[REPO]!;
    delete hub.repos[REPO];
    expect(await pull()).toMatchObject({ ok: true, repo: 'princeton-nlp/SWE-bench_Lite' });
    expect(await loadDataset('lite', { env: env() })).toMatchObject({ ok: true });
  });

  test('a path that leaves the snapshot is ignored', async () => {
    hub.repos[REPO] = {
      commit: COMMIT,
      files: { '../../../evil.jsonl': rowsOf(1), 'data/../../x.json': rowsOf(1) },
    };
    expect(await pull('lite', { split: 'all' })).toMatchObject({
      ok: false,
      message: expect.stringContaining('no data files'),
    });
    expect(readdirSync(dir)).toEqual([]);
  });
});

describe('a hub that never ends', () => {
  /** What it sends again and again, and what is asked of it. */
  const endless = (url: string, bytes: string, more: ResponseInit = {}): typeof fetch => {
    const body = () =>
      new ReadableStream<Uint8Array>({
        pull: (controller) => controller.enqueue(Buffer.from(bytes.repeat(65_536 / bytes.length))),
      });
    return async (input, init) =>
      String(input).includes(url) && new Headers(init?.headers).get('range') !== 'bytes=0-0'
        ? new Response(body(), { status: 200, headers: { 'content-type': 'application/json' }, ...more })
        : fetch(input, init);
  };

  test('with its answer about a dataset', async () => {
    expect(await pull('lite', { fetch: endless('/revision/', 'a') })).toMatchObject({
      ok: false,
      message: expect.stringContaining('more than the 67108864 bytes that may come'),
    });
  });

  test('with a file', async () => {
    expect(await pull('lite', { fetch: endless('/resolve/', 'a') })).toMatchObject({
      ok: false,
      message: expect.stringContaining('bytes that may come'),
    });
  });

  test('with its list of files', async () => {
    const page = Array.from({ length: 5000 }, (_, i) => ({
      type: 'file',
      path: `data/${i}.txt`,
      size: 1,
      oid: 'a'.repeat(40),
    }));
    const next = { link: `<${hub.url}/api/datasets/x/tree/main?cursor=1>; rel="next"` };
    const pages: typeof fetch = async (input, init) =>
      String(input).includes('/tree/') ? Response.json(page, { headers: next }) : fetch(input, init);
    expect(await pull('lite', { fetch: pages })).toMatchObject({
      ok: false,
      message: expect.stringContaining('names more than 100000 files'),
    });
  });
});

describe('faults', () => {
  test('a cut transfer goes on from the byte where it ended', async () => {
    const blobs = join(repoDir(), 'blobs');
    const kept = () =>
      existsSync(blobs) &&
      readdirSync(blobs).some((n) => n.endsWith('.incomplete') && statSync(join(blobs, n)).size > 0);
    hub.faults.push({ on: '/resolve/', kind: 'cut', afterBytes: 70_000, when: kept });
    expect(await pull()).toMatchObject({ ok: true });
    const starts = resolves().map((r) => Number(/^bytes=(\d+)-/.exec(r.range ?? '')?.[1] ?? 0));
    expect(starts).toHaveLength(2);
    expect(starts[1]).toBeGreaterThan(0);
    expect(starts[1]).toBeLessThanOrEqual(70_000);
    expect(waits).toEqual([500]);
  });

  test('what a dead process left is taken over; what a living one writes is not touched', async () => {
    await pull();
    const [etag] = readdirSync(join(repoDir(), 'blobs'));
    const blobs = join(repoDir(), 'blobs');
    rmSync(join(repoDir()), { recursive: true });
    mkdirSync(blobs, { recursive: true });
    const dead = 2 ** 22 + 1; // above the largest process id of Linux
    writeFileSync(join(blobs, `${etag}.${dead}.incomplete`), TEST_BYTES.subarray(0, 1000));
    writeFileSync(join(blobs, `${etag}.${process.ppid}.incomplete`), 'another one at work');
    expect(await pull()).toMatchObject({ ok: true, files: [{ reusedBytes: 1000 }] });
    expect(readdirSync(blobs).toSorted()).toEqual([etag, `${etag}.${process.ppid}.incomplete`].toSorted());
  });

  test('wrong bytes are thrown away and fetched anew; bytes that stay wrong are an error and never a dataset', async () => {
    hub.faults.push({ on: '/resolve/', kind: 'corrupt', afterBytes: 100 });
    expect(await pull()).toMatchObject({ ok: true });
    rmSync(repoDir(), { recursive: true });
    for (let i = 0; i < 5; i++) hub.faults.push({ on: '/resolve/', kind: 'corrupt', afterBytes: i });
    expect(await pull()).toMatchObject({ ok: false, message: expect.stringContaining('checksum') });
    expect(await loadDataset('lite', { env: env() })).toMatchObject({ ok: false });
  });

  test('a transfer that stands still is cut and resumed', async () => {
    hub.faults.push({ on: '/resolve/', kind: 'stall', afterBytes: 50_000 });
    expect(await pull('lite', { stallMs: 1000 })).toMatchObject({ ok: true });
    expect(resolves()).toHaveLength(2);
  });

  test('429 waits as long as the hub asks, other trouble backs off, and both end', async () => {
    hub.faults.push({ on: '/tree/', kind: 'status', status: 429, retryAfter: '7' });
    hub.faults.push({ on: '/revision/', kind: 'status', status: 503 });
    expect(await pull()).toMatchObject({ ok: true });
    expect(waits).toEqual([500, 7000]);
    for (let i = 0; i < 5; i++) hub.faults.push({ on: '/revision/', kind: 'status', status: 429 });
    expect(await pull()).toMatchObject({ ok: false, message: expect.stringMatching(/429.*HF_TOKEN/) });
  });

  test('a hub that is not there is named as such', async () => {
    const gone = { HF_ENDPOINT: 'http://127.0.0.1:9' };
    expect(await pull('lite', {}, gone)).toMatchObject({
      ok: false,
      message: expect.stringMatching(/could not be fetched: .*; try again, .* --data-dir/s),
    });
  });
});

describe('access', () => {
  test('a gated dataset needs its token; the token is sent, and read from where login leaves it', async () => {
    hub.repos[REPO] = { ...hub.repos[REPO]!, token: 'hf_secret' };
    const without = await pull();
    expect(without).toMatchObject({
      ok: false,
      message: expect.stringContaining('needs a token in HF_TOKEN'),
    });
    expect(await pull('lite', {}, { HF_TOKEN: 'hf_other' })).toMatchObject({
      ok: false,
      message: expect.not.stringContaining('hf_other'),
    });
    expect(await pull('lite', {}, { HF_TOKEN: 'hf_secret' })).toMatchObject({ ok: true });
    rmSync(repoDir(), { recursive: true });
    writeFileSync(join(dir, 'token'), 'hf_secret\n');
    expect(await pull()).toMatchObject({ ok: true });
  });

  test('offline nothing is sent, and the cache still loads', async () => {
    await pull();
    const sent = hub.requests.length;
    expect(await pull('lite', {}, { HF_HUB_OFFLINE: '1' })).toMatchObject({
      ok: false,
      message: expect.stringContaining('HF_HUB_OFFLINE'),
    });
    expect(hub.requests).toHaveLength(sent);
    expect(await loadDataset('lite', { env: env({ HF_HUB_OFFLINE: '1' }) })).toMatchObject({ ok: true });
  });

  test('variables are read as the hub tools read them', () => {
    expect(hubAccess({ HOME: '/h' }).cacheDir).toBe('/h/.cache/huggingface/hub');
    expect(hubAccess({ HOME: '/h', XDG_CACHE_HOME: '/x' }).cacheDir).toBe('/x/huggingface/hub');
    expect(hubAccess({ HF_HOME: '/f', HF_HUB_CACHE: '/c' }).cacheDir).toBe('/c');
    expect(hubAccess({ HF_HOME: '/f', HUGGINGFACE_HUB_CACHE: '/old' }).cacheDir).toBe('/old');
    expect(hubAccess({ HF_ENDPOINT: 'http://m/', HF_HUB_OFFLINE: 'YES' })).toMatchObject({
      hubUrl: 'http://m',
      offline: true,
    });
    mkdirSync(join(dir, 'huggingface'), { recursive: true });
    writeFileSync(join(dir, 'huggingface', 'token'), 'hf_stored\n');
    // Where the cache is says nothing of where a login lies.
    expect(hubAccess({ XDG_CACHE_HOME: dir, HF_HUB_CACHE: '/big/disk' }).token).toBe('hf_stored');
    expect(hubAccess({ XDG_CACHE_HOME: dir, HF_TOKEN: 'hf_given\n' }).token).toBe('hf_given');
    expect(hubAccess({ HF_HUB_OFFLINE: '0', HF_TOKEN: '' })).toMatchObject({
      offline: false,
      token: undefined,
    });
  });

  test.each([
    ['12', 12_000],
    ['Thu, 01 Jan 1970 00:01:00 GMT', 60_000],
    ['Thu, 01 Jan 1960 00:00:00 GMT', 0],
    ['soon', undefined],
    ['', undefined],
  ])('Retry-After "%s"', (header, ms) => {
    expect(retryAfterMs(header, 0)).toBe(ms);
  });
});

test('verify compares each file of a snapshot with its checksum', async () => {
  const result = await pull('lite', { split: 'all' });
  if (!result.ok) throw new Error(result.message);
  expect((await verifySnapshot(result.snapshot)).map((f) => f.ok)).toEqual([true, true]);
  const blob = join(repoDir(), 'blobs', result.files[0]!.etag);
  const bytes = readFileSync(blob);
  bytes[10]! ^= 1;
  writeFileSync(blob, bytes);
  rmSync(join(repoDir(), 'blobs', result.files[1]!.etag));
  expect((await verifySnapshot(result.snapshot)).map((f) => f.message).toSorted()).toEqual([
    expect.stringMatching(/^checksum is /),
    'its blob is missing',
  ]);
  expect(dirname(result.snapshot)).toBe(join(repoDir(), 'snapshots'));
});

describe('a hub that is not to be trusted', () => {
  test.each(['../../../../escaped', '..', 'main', 'C'.repeat(40), `${COMMIT}\n`, ''])(
    'its commit %j is refused, and no file is touched',
    async (commit) => {
      const victim = join(dir, 'escaped', 'data', 'test.jsonl');
      mkdirSync(dirname(victim), { recursive: true });
      writeFileSync(victim, 'mine');
      (hub.repos as Record<string, object>)[REPO] = { ...hub.repos[REPO], commit };
      const result = await pull();
      expect(result).toMatchObject({ ok: false, message: expect.stringContaining('names no commit') });
      expect(readFileSync(victim, 'utf8')).toBe('mine');
      expect(readdirSync(dir)).toEqual(['escaped']);
    },
  );

  test.each(['../../../../../escaped', 'abc', 'a/b'])('its checksum %j is refused', async (etag) => {
    hub.repos[REPO] = { ...hub.repos[REPO]!, etag };
    const result = await pull();
    expect(result).toMatchObject({ ok: false, message: expect.stringContaining('is not a checksum') });
    expect(existsSync(join(dir, 'hub'))).toBe(false);
  });

  test.each(['../../../escaped', '../main', 'a/../../../b'])(
    'a revision %j is no file name',
    async (revision) => {
      const result = await pull('lite', { revision });
      expect(result.ok).toBe(false);
      expect(existsSync(join(dir, 'hub'))).toBe(false);
    },
  );

  test('a snapshot that is a link to somewhere else is left alone', async () => {
    const elsewhere = join(dir, 'elsewhere');
    mkdirSync(join(elsewhere, 'data'), { recursive: true });
    writeFileSync(join(elsewhere, 'data', 'test.jsonl'), 'mine');
    mkdirSync(join(repoDir(), 'snapshots'), { recursive: true });
    symlinkSync(elsewhere, join(repoDir(), 'snapshots', COMMIT));
    expect(await pull()).toMatchObject({ ok: false, message: expect.stringContaining('leads outside') });
    expect(readFileSync(join(elsewhere, 'data', 'test.jsonl'), 'utf8')).toBe('mine');
  });
});
