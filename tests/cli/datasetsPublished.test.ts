// The published datasets themselves, from a local hub into the cache and out of it again, as a person with the program does it.
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, readlinkSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { cli, tempDir } from '../support/cli.ts';
import { type FakeHub, startFakeHub } from '../support/fakeHub.ts';

const DATA = join(import.meta.dirname, '..', '..', '..', 'shared', 'data', 'datasets');
const read = (name: string) => readFileSync(join(DATA, name));
const commitOf = (name: string) => createHash('sha1').update(name).digest('hex');
const TOKEN = 'hf_test-token-of-nobody';
const HALF = 600_000;

describe.skipIf(!existsSync(DATA))('published datasets from a hub (needs ../shared/data/datasets)', () => {
  let hub: FakeHub;
  let dir: string;

  beforeAll(async () => {
    dir = tempDir('swebatch-published-');
    const repo = (name: string, files: Record<string, string>, more = {}) => ({
      [`SWE-bench/${name}`]: {
        commit: commitOf(name),
        files: Object.fromEntries(
          Object.entries(files).map(([split, file]) => [`data/${split}-00000-of-00001.parquet`, read(file)]),
        ),
        ...more,
      },
    });
    hub = await startFakeHub({
      ...repo('SWE-bench', { dev: 'SWE-bench_dev.parquet' }),
      ...repo('SWE-bench_Verified', { test: 'SWE-bench_Verified_test.parquet' }, { token: TOKEN }),
      ...repo('SWE-bench_Lite', { test: 'SWE-bench_Lite_test.parquet', dev: 'SWE-bench_Lite_dev.parquet' }),
      ...repo('SWE-bench_Multilingual', { test: 'SWE-bench_Multilingual_test.parquet' }),
      ...repo('SWE-bench_Multimodal', { dev: 'SWE-bench_Multimodal_dev.parquet' }),
    });
  });
  afterAll(async () => {
    await hub.close();
    rmSync(dir, { recursive: true });
  });

  const swebatch = (args: string[], env: Record<string, string> = {}) =>
    cli(args, { env: { HF_HOME: dir, HF_ENDPOINT: hub.url, ...env } });
  const datasets = (args: string[], env?: Record<string, string>) => swebatch(['datasets', ...args], env);
  const offline = { HF_HUB_OFFLINE: '1' };

  test.each([
    ['verified', 'test', 500, 'SWE-bench_Verified'],
    ['lite', 'test', 300, 'SWE-bench_Lite'],
    ['lite', 'dev', 23, 'SWE-bench_Lite'],
    ['full', 'dev', 225, 'SWE-bench'],
    ['multilingual', 'test', 300, 'SWE-bench_Multilingual'],
    ['multimodal', 'dev', 102, 'SWE-bench_Multimodal'],
  ])(
    '%s %s: fetched once, checked, and read from the cache without a network',
    async (name, split, count, repo) => {
      const env = { HF_TOKEN: TOKEN };
      expect(await datasets(['pull', name, '--split', split], env)).toMatchObject({ code: 0 });
      const sent = hub.requests.length;
      const show = await datasets(['show', name, '--split', split, '--json'], offline);
      expect(JSON.parse(show.stdout)).toMatchObject({
        instances: count,
        split,
        revision: commitOf(repo),
        with_eval_script: count,
      });
      const checked = await datasets(['verify', name, '--split', split], offline);
      expect(checked).toMatchObject({ code: 0, stdout: expect.stringContaining('checksum right') });
      expect(hub.requests.length).toBe(sent);
      const path = JSON.parse(show.stdout).files[0] as string;
      // The standard cache: a link in the snapshot of the commit, named blobs beside it.
      expect(path).toContain(join('snapshots', commitOf(repo), 'data'));
      const sha256 = createHash('sha256').update(readFileSync(path)).digest('hex');
      expect(basename(readlinkSync(path))).toBe(sha256);
    },
  );

  test('a hub id is added under a name: what is in it, its commit, the images of another builder', async () => {
    const env = { XDG_CACHE_HOME: join(dir, 'cache') };
    const id = 'SWE-bench/SWE-bench_Verified';
    expect(await datasets(['pull', id], { HF_TOKEN: TOKEN })).toMatchObject({ code: 0 });
    const sent = hub.requests.length;
    const added = await datasets(['add', id, '--images', 'epoch', '--json'], { ...offline, ...env });
    expect(added.code, added.stderr).toBe(0);
    expect(JSON.parse(added.stdout)).toMatchObject({
      ...{ name: 'SWE-bench_Verified', instances: 500, gradable: 500 },
      revision: commitOf('SWE-bench_Verified'),
    });
    const one = ['-i', 'astropy__astropy-12907', '-m', 'fake', '-c', 'model.prices=free'];
    const plan = await swebatch(['run', '--subset', 'SWE-bench_Verified', ...one, '--dry-run', '--json'], {
      ...offline,
      ...env,
    });
    expect(plan.stdout).toContain('ghcr.io/epoch-research/swe-bench.eval.x86_64.astropy__astropy-12907');
    expect(hub.requests.length).toBe(sent);
  });

  test('a transfer that broke goes on where it ended, also in another process', async () => {
    rmSync(join(dir, 'hub', 'datasets--SWE-bench--SWE-bench_Lite'), { recursive: true, force: true });
    for (let i = 0; i < 20; i++) hub.faults.push({ on: 'resolve', kind: 'status', status: 404 });
    hub.faults.unshift({ on: 'resolve', kind: 'cut', afterBytes: HALF });
    expect((await datasets(['pull', 'lite'])).code).toBe(2);
    hub.faults.length = 0;
    hub.requests.length = 0;
    expect(await datasets(['pull', 'lite'])).toMatchObject({ code: 0 });
    const ranges = hub.requests.flatMap(({ range }) => (range && range !== 'bytes=0-0' ? [range] : []));
    expect(ranges).toEqual([expect.stringMatching(/^bytes=[1-9]\d+-/)]);
    expect((await datasets(['verify', 'lite'], offline)).stdout).toContain('checksum right');
  });

  test('a gated dataset without its token, and anything missing while offline, say what to do', async () => {
    rmSync(join(dir, 'hub', 'datasets--SWE-bench--SWE-bench_Verified'), { recursive: true, force: true });
    expect(await datasets(['pull', 'verified'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('HF_TOKEN'),
    });
    expect(await datasets(['pull', 'verified'], offline)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('HF_HUB_OFFLINE'),
    });
    expect(await datasets(['show', 'verified'], offline)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('swebatch datasets pull verified'),
    });
  });

  test('a run plans from the cache, with the commit in its record; another commit has to be there', async () => {
    await datasets(['pull', 'lite', '--split', 'all']);
    const plan = [
      'run',
      '--subset',
      'lite',
      '-m',
      'canned',
      '-c',
      'model.prices=free',
      '--dry-run',
      '--json',
      '-o',
      join(dir, 'out'),
    ];
    const planned = await swebatch([...plan, '-c', 'environment.environment_class=local'], offline);
    expect(JSON.parse(planned.stdout)).toMatchObject({ trials: 300, revision: commitOf('SWE-bench_Lite') });
    expect(await datasets(['show', 'lite', '--revision', 'e'.repeat(40)], offline)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(`at revision ${'e'.repeat(40)}`),
    });
  });
});
