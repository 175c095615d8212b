// A run over two real engines whose images come from a registry: each engine has its own pulls, its own disk floor and its own policy.
import { rmSync, statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openStore } from '../../src/store/open.ts';
import { runByName } from '../../src/store/records/runs.ts';
import { type AttemptRow, attemptsOf, trialsOf } from '../../src/store/records/trials.ts';
import { rawRow } from '../dataset/rows.ts';
import { baseCommit, pushDerived, removeImages, SUBMITS, says } from '../support/baseRuns.ts';
import { cli, tempDir } from '../support/cli.ts';
import { docker, dockerAvailable } from '../support/docker.ts';
import { registryAvailable, startRegistry, type TestRegistry } from '../support/registry.ts';
import { type SecondEngine, secondEngineAvailable, startSecondEngine } from '../support/secondEngine.ts';

const MB = 1_000_000;
const ready = registryAvailable() && secondEngineAvailable() && (await dockerAvailable());

describe.skipIf(!ready)('images on two engines (needs root, dockerd and docker-registry)', () => {
  let second: SecondEngine;
  let registry: TestRegistry;
  let dir: string;
  let images: string[];

  beforeAll(async () => {
    dir = tempDir('swebatch-host-images-');
    [second, registry] = await Promise.all([startSecondEngine(1500), startRegistry()]);
    images = ['a', 'b', 'c', 'd'].map((name) => `${registry.host}/swebatch-hosttest/${name}:1`);
    for (const [i, image] of images.entries()) await pushDerived(image, { label: String(i) });
    const base_commit = await baseCommit();
    // Two trials an image, neighbours in the dataset: they are placed on different engines.
    const rows = images.flatMap((image, i) =>
      [1, 2].map((n) => JSON.stringify(rawRow(`x__x-${2 * i + n}`, { image, base_commit }))),
    );
    writeFileSync(join(dir, 'd.jsonl'), rows.join('\n'));
    writeFileSync(
      join(dir, 'replies.json'),
      JSON.stringify({ replies: [says('echo hi > new.txt'), SUBMITS] }),
    );
  });
  afterAll(async () => {
    await removeImages(images);
    await second?.close();
    await registry?.close();
    rmSync(dir, { recursive: true });
  });

  const here = () => `(unix://${second.socket})`;
  function run(name: string, imagesConfig: object) {
    const hosts = [
      { host: 'default', slots: 1 },
      { host: `unix://${second.socket}`, slots: 1 },
    ];
    const config = {
      agent: { step_limit: 4, cost_limit: 0 },
      environment: { memory: '256m', seal_history: false, hosts },
      run: { workers: 2, retry: { backoff_s: 0 }, breaker: { consecutive: 0 } },
      images: imagesConfig,
    };
    writeFileSync(join(dir, `${name}.yaml`), JSON.stringify(config));
    const args = ['run', '--subset', join(dir, 'd.jsonl'), '-m', `scripted:${join(dir, 'replies.json')}`];
    return cli(
      [...args, '-c', join(dir, `${name}.yaml`), '-o', join(dir, 'out'), '--run-id', name].concat(
        '--progress',
        'plain',
      ),
      { env: { XDG_STATE_HOME: dir, DOCKER_CONFIG: dir } },
    );
  }
  function attempts(name: string): AttemptRow[] {
    const store = openStore(join(dir, 'out', 'swebatch.db'), { readonly: true });
    try {
      return trialsOf(store, runByName(store, name)!.id).flatMap((trial) => attemptsOf(store, trial.id));
    } finally {
      store.close();
    }
  }

  test('each engine pulls what its own trials need, once, before a slot is taken; the policy empties both', async () => {
    const result = await run('r1', { policy: 'remove-after', disk_low: '0', disk_high: '0' });
    expect(result).toMatchObject({ code: 0 });
    const all = attempts('r1');
    expect(all.map((a) => a.exit_reason)).toEqual(Array(8).fill('submitted'));
    for (const engine of ['engine: default', 'engine: unix://'])
      expect(all.filter((a) => a.notes.includes(engine)).length).toBeGreaterThan(1);
    for (const { image_digest } of all) expect(image_digest).toMatch(/swebatch-hosttest\/[a-d]@sha256:/);
    const pulled = result.stderr.match(/pulled \S+ in .*/g) ?? [];
    const pulls = pulled.map((line) => `${line.split(' ')[1]} ${line.split(' ').at(-1)}`);
    expect(new Set(pulls)).toHaveLength(pulls.length);
    expect(pulls.some((pull) => pull.endsWith(here()))).toBe(true);
    expect(pulls.some((pull) => pull.endsWith('(default)'))).toBe(true);
    expect(await second.docker.listImages()).toEqual([]);
    for (const image of images) await expect(docker.getImage(image).inspect()).rejects.toThrow(/No such/);
  });

  test('an engine whose disk is below the floor gets no trials and no images; the other does all the work', async () => {
    const { bavail, bsize } = statfsSync(second.disk);
    const floor = Math.ceil((bavail * bsize) / MB) + 100;
    const result = await run('r2', { policy: 'keep', disk_low: `${floor}m`, disk_high: `${floor}m` });
    expect(result.code).toBe(0);
    expect(result.stderr).toMatch(/paused: disk_full .* floor on unix:\S+: no new instances start there/);
    expect(attempts('r2').filter((a) => !a.notes.includes('engine: default'))).toEqual([]);
    expect(await second.docker.listImages()).toEqual([]);
  });
});
