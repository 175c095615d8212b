// A real engine of the test's own that is stopped for most of a minute, with its containers: a run and an evaluation wait for it.
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openStore } from '../../src/store/open.ts';
import { rawRow } from '../dataset/rows.ts';
import { PATCHES, SUM_REPO_SCRIPT, sumRow } from '../grading/fixtures/sumRepo.ts';
import { baseCommit, loadBase, SUBMITS, says } from '../support/baseRuns.ts';
import { startCli, tempDir } from '../support/cli.ts';
import { dockerAvailable } from '../support/docker.ts';
import { BASE_IMAGE, derivedImage } from '../support/dockerEnvironment.ts';
import { type SecondEngine, secondEngineAvailable, startSecondEngine } from '../support/secondEngine.ts';

const OUTAGE_MS = 50_000;
const ready = secondEngineAvailable() && (await dockerAvailable());

describe.skipIf(!ready)('an engine that is stopped for fifty seconds (needs root and dockerd)', () => {
  let engine: SecondEngine;
  let dir: string;
  let sumImage: string;
  beforeAll(async () => {
    dir = tempDir('swebatch-outage-');
    sumImage = await derivedImage(SUM_REPO_SCRIPT);
    engine = await startSecondEngine(2000);
    await loadBase(engine, dir, BASE_IMAGE);
    await loadBase(engine, dir, sumImage);
  });
  afterAll(async () => {
    await engine?.close();
    rmSync(dir, { recursive: true });
  });

  const env = () => ({ DOCKER_HOST: `unix://${engine.socket}`, DOCKER_CONFIG: dir });
  const query = <T>(sql: string): T[] => {
    const store = openStore(join(dir, 'out', 'swebatch.db'), { readonly: true });
    try {
      return store.prepare(sql).all() as T[];
    } finally {
      store.close();
    }
  };
  /** A container of the engine is in a command with this text. */
  async function inCommand(marker: string): Promise<void> {
    for (;;) {
      const tops = await Promise.all(
        (await engine.docker.listContainers()).map(({ Id }) =>
          engine.docker
            .getContainer(Id)
            .top()
            .catch(() => ({ Processes: [] as string[][] })),
        ),
      );
      if (tops.some(({ Processes }) => JSON.stringify(Processes).includes(marker))) return;
      await new Promise((turn) => setTimeout(turn, 50));
    }
  }
  async function outage(): Promise<void> {
    await engine.stop();
    await new Promise((over) => setTimeout(over, OUTAGE_MS));
    await engine.start();
  }

  test('a run waits, says so, and uses up no attempt and no time of any trial [T-35]', async () => {
    const base_commit = await baseCommit();
    const rows = [1, 2, 3].map((i) =>
      JSON.stringify(rawRow(`x__x-${i}`, { image: BASE_IMAGE, base_commit })),
    );
    writeFileSync(join(dir, 'd.jsonl'), rows.join('\n'));
    const replies = [says('echo hi > new.txt; sleep 7.5'), SUBMITS];
    writeFileSync(join(dir, 'replies.json'), JSON.stringify({ replies }));
    const config = {
      agent: { step_limit: 8, cost_limit: 0, wall_time_limit_seconds: 40 },
      environment: { pull: 'never', memory: '256m' },
      images: { disk_low: '0', disk_high: '0' },
      run: { workers: 2, disk_floor: '0', retry: { attempts: 1, backoff_s: 0 } },
    };
    writeFileSync(join(dir, 'config.yaml'), JSON.stringify(config));
    const args = ['run', '--subset', join(dir, 'd.jsonl'), '-c', join(dir, 'config.yaml')];
    const model = ['-m', `scripted:${join(dir, 'replies.json')}`];
    const running = startCli(
      [...args, ...model, '-o', join(dir, 'out'), '--run-id', 'r1', '--progress', 'plain'],
      { env: env() },
    );
    await inCommand('sleep 7.5');
    await outage();
    const result = await running.done;
    expect(result.stderr).toMatch(
      /paused: the container engine does not answer .* running instances wait for it/,
    );
    expect(result.stderr).toMatch(/the container engine answers again after [56]\d s/);
    expect(result).toMatchObject({ code: 0 });
    const attempts = query<{ exit_reason: string; exit_detail: string | null; elapsed_ms: number }>(
      'SELECT exit_reason, exit_detail, elapsed_ms FROM attempts ORDER BY id',
    );
    const lost = attempts.filter((a) => a.exit_reason !== 'submitted');
    expect(attempts.length - lost.length).toBe(3);
    for (const one of lost)
      expect(one).toMatchObject({ exit_reason: 'env_died', exit_detail: 'daemon_lost' });
    for (const one of attempts) expect(one.elapsed_ms).toBeLessThan(OUTAGE_MS);
    expect(query(`SELECT 1 FROM trials WHERE state = 'sealed'`)).toHaveLength(3);
    const events = query<{ type: string }>(`SELECT type FROM events WHERE type IN ('paused', 'resumed')`);
    expect(events.map((e) => e.type)).toEqual(['paused', 'resumed']);
    expect(await engine.docker.listContainers({ all: true })).toEqual([]);
  });

  test('an evaluation waits, and gives the verdicts that it would have given [T-35]', async () => {
    const ids = ['demo__sum-1', 'demo__sum-2', 'demo__sum-3'];
    const row = (instance_id: string) => {
      const given = sumRow(sumImage, undefined, { instance_id });
      return { ...given, eval_script: `sleep 8.5\n${given.eval_script}` };
    };
    writeFileSync(join(dir, 'sum.jsonl'), ids.map((id) => JSON.stringify(row(id))).join('\n'));
    const patches = [PATCHES.gold, PATCHES.wrong, PATCHES.gold];
    const preds = ids.map((instance_id, i) => ({
      instance_id,
      model_name_or_path: 'org/m',
      model_patch: patches[i],
    }));
    writeFileSync(join(dir, 'preds.jsonl'), preds.map((p) => JSON.stringify(p)).join('\n'));
    const running = startCli(
      [
        ...['evaluate', join(dir, 'preds.jsonl'), '--subset', join(dir, 'sum.jsonl'), '-o', join(dir, 'out')],
        ...['--run-id', 'e1', '-w', '2'],
      ],
      { env: env() },
    );
    await inCommand('sleep 8.5');
    await outage();
    const result = await running.done;
    expect(result.stderr).toContain('the container engine does not answer');
    expect(result).toMatchObject({ code: 0 });
    const verdicts = query<{ instance_id: string; outcome: string }>(
      'SELECT instance_id, outcome FROM evaluations ORDER BY instance_id',
    );
    expect(verdicts).toEqual([
      { instance_id: ids[0], outcome: 'resolved' },
      { instance_id: ids[1], outcome: 'unresolved' },
      { instance_id: ids[2], outcome: 'resolved' },
    ]);
  });
});
