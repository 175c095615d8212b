// A run over two real engines, one of which is killed in the middle: every trial is decided, what ran on it is tried again elsewhere.
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openStore } from '../../src/store/open.ts';
import { runByName } from '../../src/store/records/runs.ts';
import { attemptsOf, trialsOf } from '../../src/store/records/trials.ts';
import { rawRow } from '../dataset/rows.ts';
import { baseCommit, loadBase, SUBMITS, says } from '../support/baseRuns.ts';
import { startCli, tempDir } from '../support/cli.ts';
import { dockerAvailable } from '../support/docker.ts';
import { type SecondEngine, secondEngineAvailable, startSecondEngine } from '../support/secondEngine.ts';

const ready = secondEngineAvailable() && (await dockerAvailable());

describe.skipIf(!ready)('a run over two engines (needs root and dockerd)', () => {
  let second: SecondEngine;
  let dir: string;

  beforeAll(async () => {
    dir = tempDir('swebatch-hosts-');
    second = await startSecondEngine(2000);
    const image = await loadBase(second, dir);
    const base_commit = await baseCommit();
    const rows = [1, 2, 3, 4, 5, 6].map((i) => JSON.stringify(rawRow(`x__x-${i}`, { image, base_commit })));
    writeFileSync(join(dir, 'd.jsonl'), rows.join('\n'));
    const replies = [says('echo hi > new.txt'), says('cat new.txt'), says('ls'), SUBMITS];
    writeFileSync(join(dir, 'replies.json'), JSON.stringify({ latency_ms: 700, replies }));
    writeFileSync(
      join(dir, 'config.yaml'),
      JSON.stringify({
        agent: { step_limit: 8, cost_limit: 0 },
        environment: {
          pull: 'never',
          memory: '256m',
          hosts: [
            { host: 'default', slots: 1 },
            { host: `unix://${second.socket}`, slots: 1 },
          ],
        },
        // The disk of the second engine is small.
        images: { disk_low: '0', disk_high: '0' },
        run: { workers: 2, retry: { backoff_s: 0 }, breaker: { consecutive: 0 } },
      }),
    );
  });
  afterAll(async () => {
    await second?.close();
    rmSync(dir, { recursive: true });
  });

  /** An attempt on the second engine that has run a command and has two replies to wait for: it cannot be done when the engine is killed. */
  async function attemptAtWork(): Promise<boolean> {
    const there = (await second.docker.listContainers()).map((container) => container.Id);
    const store = openStore(join(dir, 'out', 'swebatch.db'), { readonly: true });
    try {
      const working = store
        .prepare(
          `SELECT container_id FROM attempts a WHERE state = 'running' AND (SELECT count(*) FROM commands c WHERE c.attempt_id = a.id) IN (1, 2)`,
        )
        .pluck()
        .all() as string[];
      return working.some((id) => there.includes(id));
    } finally {
      store.close();
    }
  }

  test('kills one engine after the first results', async () => {
    const args = [
      'run',
      '--subset',
      join(dir, 'd.jsonl'),
      '-m',
      `scripted:${join(dir, 'replies.json')}`,
      '-c',
      join(dir, 'config.yaml'),
    ];
    const running = startCli([...args, '-o', join(dir, 'out'), '--run-id', 'r1', '--progress', 'plain'], {
      env: { DOCKER_CONFIG: dir },
    });
    await running.said(/x__x-\d.*submitted[\s\S]*x__x-\d.*submitted/);
    while (!(await attemptAtWork())) await new Promise((turn) => setTimeout(turn, 20));
    await second.kill();
    expect(await running.done).toMatchObject({ code: 0 });

    const store = openStore(join(dir, 'out', 'swebatch.db'), { readonly: true });
    try {
      const attempts = trialsOf(store, runByName(store, 'r1')!.id).map((trial) =>
        attemptsOf(store, trial.id),
      );
      expect(attempts.map((list) => list.at(-1)!.exit_reason)).toEqual(Array(6).fill('submitted'));
      const all = attempts.flat();
      const notes = (text: string) => all.filter((a) => a.notes.includes(text));
      expect(notes('engine: default').length).toBeGreaterThan(2);
      expect(notes('engine: unix://').length).toBeGreaterThan(0);
      const failed = all.filter((a) => a.exit_reason !== 'submitted');
      expect(failed.map((a) => a.exit_reason)).toEqual(['env_died']);
      expect(failed[0]!.notes).toContain('engine: unix://');
    } finally {
      store.close();
    }
  });
});
