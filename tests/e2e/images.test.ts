// A whole run whose images come from a real registry in trouble (T-34): slots are not held up, attempts not charged, images removed after.
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openStore } from '../../src/store/open.ts';
import { runByName } from '../../src/store/records/runs.ts';
import { type TrialLine, trialLines } from '../../src/store/records/trials.ts';
import { rawRow } from '../dataset/rows.ts';
import { baseCommit, pushDerived, removeImages, SUBMITS, says } from '../support/baseRuns.ts';
import { cli, tempDir } from '../support/cli.ts';
import { docker, dockerAvailable } from '../support/docker.ts';
import { registryAvailable, startRegistry, type TestRegistry } from '../support/registry.ts';

const ready = registryAvailable() && (await dockerAvailable());

describe.skipIf(!ready)('a run with images from a registry (needs Docker and docker-registry)', () => {
  let dir: string;
  let registry: TestRegistry;
  let images: string[];
  let rows: string[];

  beforeAll(async () => {
    dir = tempDir('swebatch-run-images-');
    registry = await startRegistry();
    // Two images of their own that differ in a label, pushed and taken off the engine again.
    images = ['a', 'b'].map((name) => `${registry.host}/swebatch-runtest/${name}${process.pid}:1`);
    for (const [i, image] of images.entries()) await pushDerived(image, { label: String(i) });
    const commit = await baseCommit();
    const row = (id: string, image: string) => JSON.stringify(rawRow(id, { image, base_commit: commit }));
    rows = [
      row('x__x-1', images[0]!),
      row('x__x-2', images[0]!),
      row('x__x-3', `${registry.host}/swebatch-runtest/none:1`),
      row('x__x-4', images[1]!),
    ];
    writeFileSync(join(dir, 'd.jsonl'), rows.join('\n'));
    writeFileSync(
      join(dir, 'replies.json'),
      JSON.stringify({ replies: [says('echo hi > new.txt'), SUBMITS] }),
    );
  });
  afterAll(async () => {
    await removeImages(images);
    await registry?.close();
    rmSync(dir, { recursive: true });
  });

  function linesOf(name: string): TrialLine[] {
    const store = openStore(join(dir, 'out', 'swebatch.db'), { readonly: true });
    try {
      return trialLines(store, runByName(store, name)!.id);
    } finally {
      store.close();
    }
  }
  const run = (name: string, subset: string, ...more: string[]) =>
    cli(
      [
        'run',
        '--subset',
        join(dir, subset),
        '-m',
        `scripted:${join(dir, 'replies.json')}`,
        '-o',
        join(dir, 'out'),
      ].concat(
        [
          '--run-id',
          name,
          '--progress',
          'plain',
          '-c',
          'run.retry.backoff_s=0',
          '-c',
          'run.breaker.consecutive=0',
        ],
        more,
      ),
      { env: { XDG_STATE_HOME: dir, DOCKER_CONFIG: dir } },
    );

  test('429 delays pulls only; one pull an image; the missing image ends its own trial; nothing of ours is left [T-34]', async () => {
    registry.requests.length = 0;
    const headers = { 'retry-after': '1', 'content-type': 'application/json' };
    const body = JSON.stringify({ errors: [{ code: 'TOOMANYREQUESTS', message: 'slow down' }] });
    // Three images in the plan before the run, then the engine's HEAD and GET, and our HEAD that asks when to come back.
    registry.faults.push({ on: '/manifests/', kind: 'status', status: 429, headers, body, times: 6 });
    const result = await run(
      'r1',
      'd.jsonl',
      '-w',
      '2',
      '-c',
      'images.policy=remove-after',
      '-c',
      'images.retry_seconds=0',
      '-c',
      'images.max_concurrent_pulls=1',
    );
    expect(result).toMatchObject({ code: 3, stderr: expect.stringContaining('pulls pause until') });
    const lines = linesOf('r1');
    expect(lines.map((l) => [l.instance_id, l.exit_reason])).toEqual([
      ['x__x-1', 'submitted'],
      ['x__x-2', 'submitted'],
      ['x__x-3', 'env_image_missing'],
      ['x__x-4', 'submitted'],
    ]);
    expect(result.stderr.match(/pulled /g)).toHaveLength(2);
    expect(result.stderr).toMatch(/none:1 does not exist in its registry/);
    const blobs = registry.requests.filter((r) => r.method === 'GET' && r.path.includes('/blobs/'));
    expect(new Set(blobs.map((r) => r.path))).toHaveLength(blobs.length);
    for (const image of images)
      await expect(docker.getImage(image).inspect()).rejects.toThrow(/No such image/);
    expect((await cli(['images', 'ls'], { env: { XDG_STATE_HOME: dir } })).stdout).toContain(
      'pulled no images',
    );
    // What came once is what the time of the next run is forecast from.
    const plan = await run('next', 'd.jsonl', '--dry-run', '--json');
    expect(JSON.parse(plan.stdout).forecast).toMatchObject({
      time_holds: { grading: null, pulls: true },
      time_ms: { middle: expect.any(Number) },
    });
  });

  test('stalls, broken layers, a slow registry and a missing login: what can be mended is, and no attempt waits for it', async () => {
    const name = `${registry.host}/swebatch-runtest/big${process.pid}:1`;
    const locked = `${registry.host}/swebatch-runtest/locked:1`;
    images.push(name);
    await pushDerived(name, { command: 'head -c 3000000 /dev/urandom > /big' });
    const { base_commit } = JSON.parse(rows[0]!) as { base_commit: string };
    const ids = ['y__y-1', 'y__y-2', 'y__y-3'];
    const trouble = [name, locked, name].map((image, i) =>
      JSON.stringify(rawRow(ids[i]!, { image, base_commit })),
    );
    writeFileSync(join(dir, 'trouble.jsonl'), trouble.join('\n'));
    const on = '/blobs/';
    const challenge = { 'www-authenticate': 'Basic realm="x"' };
    const body = JSON.stringify({ errors: [{ code: 'UNAUTHORIZED', message: 'authentication required' }] });
    registry.faults.length = 0;
    registry.faults.push(
      { on: 'locked/manifests', kind: 'status', status: 401, headers: challenge, body },
      { on, kind: 'stall', afterBytes: 100_000, times: 2 },
      { on, kind: 'cut', afterBytes: 100_000, times: 2 },
      { on, kind: 'slow', pauseMs: 20 },
    );
    const settings = ['environment.pull_timeout=2', 'images.retry_seconds=0', 'images.policy=remove-after'];
    const result = await run(
      'r2',
      'trouble.jsonl',
      ...['-w', '1'],
      ...settings.flatMap((setting) => ['-c', setting]),
    );
    expect(result).toMatchObject({ code: 3 });
    expect(result.stderr).toMatch(/big\d+:1: nothing moved for 2 s.*tried again/);
    expect(result.stderr).toMatch(/locked:1 may not be pulled .*docker login/);
    const lines = linesOf('r2');
    // In the order of starting: those that share layers are neighbours.
    expect(lines.map((l) => [l.instance_id, l.exit_reason])).toEqual([
      ['y__y-1', 'submitted'],
      ['y__y-3', 'submitted'],
      ['y__y-2', 'env_image_pull_failed'],
    ]);
    const store = openStore(join(dir, 'out', 'swebatch.db'), { readonly: true });
    try {
      const pulled = store
        .prepare(`SELECT at FROM events WHERE data LIKE '%pulled ${name}%'`)
        .pluck()
        .get() as string;
      const started = store
        .prepare(`SELECT min(started_at) FROM attempts WHERE image_digest LIKE '%/big%'`)
        .pluck()
        .get() as string;
      expect(pulled <= started).toBe(true);
      const attempts = store.prepare(
        `SELECT count(*) FROM attempts a JOIN trials t ON t.id = a.trial_id JOIN runs r ON r.id = t.run_id WHERE r.name = 'r2'`,
      );
      expect(attempts.pluck().get()).toBe(3);
    } finally {
      store.close();
    }
    await expect(docker.getImage(name).inspect()).rejects.toThrow(/No such image/);
  });
});
