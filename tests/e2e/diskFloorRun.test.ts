// A run on an engine with a small disk of its own, named by DOCKER_HOST (T-33): the disk fills up in the middle of the work, and has room again later.
import { rmSync, statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openStore } from '../../src/store/open.ts';
import { rawRow } from '../dataset/rows.ts';
import { baseCommit, exec, loadBase, SUBMITS, says } from '../support/baseRuns.ts';
import { startCli, tempDir } from '../support/cli.ts';
import { dockerAvailable } from '../support/docker.ts';
import { type SecondEngine, secondEngineAvailable, startSecondEngine } from '../support/secondEngine.ts';

const MB = 2 ** 20;
const FLOOR_MB = 400;
const ready = secondEngineAvailable() && (await dockerAvailable());

describe.skipIf(!ready)('a disk that fills up under a run (needs root and dockerd)', () => {
  let engine: SecondEngine;
  let dir: string;

  beforeAll(async () => {
    dir = tempDir('swebatch-floor-');
    engine = await startSecondEngine(1500);
    const image = await loadBase(engine, dir);
    const base_commit = await baseCommit();
    const rows = [1, 2, 3, 4, 5].map((i) => JSON.stringify(rawRow(`x__x-${i}`, { image, base_commit })));
    writeFileSync(join(dir, 'd.jsonl'), rows.join('\n'));
    // Longer than the time between two looks at the disk.
    const replies = [says('echo hi > new.txt'), says('sleep 4'), says('sleep 4'), SUBMITS];
    writeFileSync(join(dir, 'replies.json'), JSON.stringify({ replies }));
  });
  afterAll(async () => {
    await engine?.close();
    rmSync(dir, { recursive: true });
  });

  test('what runs is ended and captured, nothing new starts, and with room again the run goes on by itself', async () => {
    const settings = [
      'agent.step_limit=8',
      'environment.pull=never',
      'environment.memory=256m',
      `run.disk_floor=${FLOOR_MB}m`,
      `images.disk_low=${FLOOR_MB}m`,
      `images.disk_high=${FLOOR_MB + 50}m`,
      'run.retry.backoff_s=0',
      'run.breaker.consecutive=0',
    ].flatMap((setting) => ['-c', setting]);
    const running = startCli(
      ['run', '--subset', join(dir, 'd.jsonl'), '-m', `scripted:${join(dir, 'replies.json')}`].concat(
        ['-o', join(dir, 'out'), '--run-id', 'r1', '-w', '1', '--progress', 'json'],
        settings,
      ),
      { env: { DOCKER_HOST: `unix://${engine.socket}`, DOCKER_CONFIG: dir, XDG_STATE_HOME: dir } },
    );
    // In the middle of the second trial: none is running for a moment between two, and none would start then.
    await running.printed(/"trial_ended"[\s\S]*"type":"step"/);
    const { bavail, bsize } = statfsSync(engine.disk);
    const filler = join(engine.disk, 'filler');
    const fill = Math.floor((bavail * bsize) / MB) - FLOOR_MB + 100;
    await exec('fallocate', ['-l', `${fill}M`, filler]);
    await running.printed(/"paused","reason":"disk_full \d+ MiB < 400 MiB floor/);
    await running.printed('"detail":"host_floor"');
    rmSync(filler);
    await running.printed('"resumed"');
    expect(await running.done).toMatchObject({ code: 0 });

    const store = openStore(join(dir, 'out', 'swebatch.db'), { readonly: true });
    try {
      const attempts = store
        .prepare(
          `SELECT i.instance_id AS id, a.number, a.exit_reason AS reason, a.captured_patch AS captured
           FROM attempts a JOIN trials t ON t.id = a.trial_id JOIN instances i ON i.id = t.instance_pk ORDER BY a.id`,
        )
        .all() as { id: string; number: number; reason: string; captured: Buffer | null }[];
      const stopped = attempts.filter((a) => a.reason !== 'submitted');
      expect(stopped.map((a) => a.reason)).toEqual(['disk_full']);
      expect(stopped[0]!.captured).not.toBeNull();
      const submitted = attempts.filter((a) => a.reason === 'submitted').map((a) => a.id);
      expect(submitted.toSorted()).toEqual([1, 2, 3, 4, 5].map((i) => `x__x-${i}`));
      // The slot goes to the trial that stands first in the order, of those whose image is here; what runs again comes last.
      const first = attempts.filter((a) => a.number === 1).map((a) => a.id);
      expect(first.slice(1)).toEqual(first.slice(1).toSorted());
    } finally {
      store.close();
    }
  });
});
