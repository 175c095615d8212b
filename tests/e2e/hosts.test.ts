// A run over two real engines, one of which is killed in the middle: every trial is decided, what ran on it is tried again elsewhere.
import { execFile } from 'node:child_process';
import { createWriteStream, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openStore } from '../../src/store/open.ts';
import { runByName } from '../../src/store/runs.ts';
import { attemptsOf, trialsOf } from '../../src/store/trials.ts';
import { rawRow } from '../dataset/rows.ts';
import { startCli, tempDir } from '../support/cli.ts';
import { docker, dockerAvailable } from '../support/docker.ts';
import { type SecondEngine, secondEngineAvailable, startSecondEngine } from '../support/secondEngine.ts';

const exec = promisify(execFile);
const BASE = 'swebatch-test/base:1';
const ready = secondEngineAvailable() && (await dockerAvailable());
const bash = (command: string) => ({ content: `THOUGHT: next\n\n\`\`\`bash\n${command}\n\`\`\`` });

describe.skipIf(!ready)('a run over two engines (needs root and dockerd)', () => {
  let second: SecondEngine;
  let dir: string;

  beforeAll(async () => {
    dir = tempDir('swebatch-hosts-');
    second = await startSecondEngine(2000);
    const tar = join(dir, 'base.tar');
    await pipeline(await docker.getImage(BASE).get(), createWriteStream(tar));
    await exec('docker', ['-H', `unix://${second.socket}`, 'load', '-q', '-i', tar]);
    const head = ['run', '--rm', '--network', 'none', BASE, 'git', '-C', '/testbed', 'rev-parse', 'HEAD'];
    const base_commit = (await exec('docker', head)).stdout.trim();
    const rows = [1, 2, 3, 4, 5, 6].map((i) =>
      JSON.stringify(rawRow(`x__x-${i}`, { image: BASE, base_commit })),
    );
    writeFileSync(join(dir, 'd.jsonl'), rows.join('\n'));
    const submit = bash(
      'git add -A; git diff --cached > /tmp/p; echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; cat /tmp/p',
    );
    const replies = [bash('echo hi > new.txt'), bash('cat new.txt'), bash('ls'), submit];
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
    await second.close();
    rmSync(dir, { recursive: true });
  });

  /** An attempt on the second engine that has run a command and is not done. */
  async function attemptAtWork(): Promise<boolean> {
    const there = (await second.docker.listContainers()).map((container) => container.Id);
    const store = openStore(join(dir, 'out', 'swebatch.db'), { readonly: true });
    try {
      const working = store
        .prepare(
          `SELECT container_id FROM attempts a WHERE state = 'running' AND EXISTS (SELECT 1 FROM commands c WHERE c.attempt_id = a.id)`,
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
  }, 120_000);
});
