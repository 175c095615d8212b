// Harbor tasks in real containers: who does nothing fails, and what tests can do wrong costs their own task alone.

import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import { cli, tempDir } from '../../support/cli.ts';
import { docker, dockerAvailable } from '../../support/docker.ts';
import { derivedImage } from '../../support/dockerEnvironment.ts';
import { harborTask } from '../../support/kinds/harborTask.ts';
import { SIX_TASKS, sixTasks } from '../../support/kinds/sixTasks.ts';
import {
  attemptsIn,
  isThere,
  keptImages,
  runSteps,
  steppedTask,
  verdictsIn,
} from '../../support/kinds/steppedTasks.ts';

const available = await dockerAvailable();

interface Row {
  instance_id: string;
  outcome: string;
  reward: number | null;
  rewards: string | null;
  error_message: string | null;
  infra_reason: string | null;
}

function rowsOf(out: string, sql: string): unknown[] {
  const db = new Database(join(out, 'swebatch.db'), { readonly: true });
  try {
    return db.prepare(sql).all();
  } finally {
    db.close();
  }
}
const verdicts = (out: string) => rowsOf(out, 'SELECT * FROM evaluations ORDER BY instance_id') as Row[];

const run = (out: string, tasks: string, model: string, ...more: string[]) =>
  cli([
    ...['run', '--subset', tasks, '--model', `scripted:${model}`, '-o', out, '--run-id', 'r1', '-w', '2'],
    ...['--evaluate', '-c', 'agent.step_limit=6', ...more],
  ]);

describe.skipIf(!available)('Harbor tasks that are not solved', () => {
  test('a model that does nothing fails all six', async () => {
    const dir = tempDir();
    const { tasks, nothing } = await sixTasks(dir);
    const done = await run(dir, tasks, nothing);
    expect(done.code, done.stderr).toBe(0);
    expect(verdicts(dir).map(({ outcome, reward }) => [outcome, reward])).toEqual(
      SIX_TASKS.map(() => ['unresolved', 0]),
    );
  }, 120_000);

  test('tests that write no reward, or none that counts, cost their own task its verdict with the reason; others go on', async () => {
    const dir = tempDir();
    const image = await derivedImage('mkdir -p /work');
    const task = (id: string, script: string, seconds = 5) =>
      harborTask(join(dir, 'tasks'), id, {
        'task.toml': `[environment]\ndocker_image = "${image}"\nworkdir = "/work"\n[verifier]\ntimeout_sec = ${seconds}\n`,
        'tests/test.sh': `#!/bin/bash\n${script}\n`,
      });
    task('no-reward', 'echo something went wrong; exit 3');
    task('no-number', 'echo good > /logs/verifier/reward.txt');
    task('out-of-range', 'echo -1 > /logs/verifier/reward.txt');
    task('huge-reward', 'head -c 3000000 /dev/zero > /logs/verifier/reward.json');
    const log = 'head -c 1000000000 /dev/zero | tr "\\0" x';
    task('long-log', `${log}; echo 0.25 > /logs/verifier/reward.txt`, 200);
    task('linked-reward', 'echo 1 > /tmp/one; ln -s /tmp/one /logs/verifier/reward.txt');
    task(
      'folder-reward',
      'mkdir -p /logs/verifier/reward.txt; echo 1 > /logs/verifier/reward.txt/reward.txt',
    );
    task('never-ends', 'sleep 600');
    mkdirSync(join(dir, 'model'));
    const reply = {
      content: '```bash\necho COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\n```',
      finish_reason: 'stop',
    };
    for (const { name } of readdirSync(join(dir, 'tasks'), { withFileTypes: true }))
      writeFileSync(join(dir, 'model', `${name}.json`), JSON.stringify({ replies: [reply] }));
    const done = await run(dir, join(dir, 'tasks'), join(dir, 'model'));
    expect(done.code, done.stderr).toBeLessThan(4);
    const said = Object.fromEntries(
      verdicts(dir).map((row) => [row.instance_id, [row.outcome, row.reward, row.error_message ?? '']]),
    );
    expect(said).toEqual({
      'no-reward': [
        'infra',
        null,
        expect.stringMatching(/wrote neither .* exit code 3\. Their last output: something went wrong/),
      ],
      'no-number': ['infra', null, expect.stringContaining('reward.txt holds "good", which is not a number')],
      'out-of-range': ['infra', null, expect.stringContaining('is -1, which is not between 0 and 1')],
      'huge-reward': ['infra', null, expect.stringContaining('holds more than 1 MB')],
      'long-log': ['unresolved', 0.25, ''],
      'linked-reward': ['infra', null, expect.stringContaining('wrote neither')],
      'folder-reward': ['infra', null, expect.stringContaining('wrote neither')],
      'never-ends': ['timeout', null, expect.stringContaining('did not end within the 5 s')],
    });
    // What says nothing keeps the end state for the next evaluation.
    const kept = rowsOf(dir, 'SELECT work_image FROM attempts') as { work_image: string }[];
    for (const { work_image } of kept)
      await docker
        .getImage(work_image)
        .remove()
        .catch(() => undefined);
  }, 120_000);
});

describe.skipIf(!available)('a Harbor task of three steps', () => {
  test('is replayed step by step, and differs in nothing', async () => {
    const dir = tempDir();
    const work = [{ commands: ['echo one > a'] }, { commands: ['cat a'] }, {}];
    const done = await runSteps(dir, await steppedTask(dir, 'again', work));
    expect(done.code, done.stderr).toBe(0);
    const args = [
      '--subset',
      join(dir, 'tasks'),
      '-m',
      'replay:r1',
      '-o',
      dir,
      '--run-id',
      'r2',
      '--evaluate',
    ];
    const played = await cli(['run', ...args]);
    expect(played.code, played.stderr).toBe(0);
    expect(played.stderr).not.toContain('answered differently than in the recording');
    expect(attemptsIn(dir).map(({ exit_reason, steps }) => [exit_reason, steps])).toEqual([
      ['submitted', 5],
      ['submitted', 5],
    ]);
    expect(verdictsIn(dir).map(({ outcome, reward }) => [outcome, reward])).toEqual([
      ['resolved', 1],
      ['resolved', 1],
    ]);
  }, 120_000);

  test('after a death between two steps it begins anew, and the end states of the dead attempt are removed', async () => {
    const dir = tempDir();
    const task = await steppedTask(dir, 'dies', [
      { commands: ['touch one'] },
      { commands: ['touch two'] },
      {},
    ]);
    // The second command: it belongs to the second step.
    const killed = await runSteps(dir, task, { SWEBATCH_CRASH_AT: 'command_recorded:3' });
    expect(killed.code).not.toBe(0);
    const before = keptImages(attemptsIn(dir));
    expect(before).toHaveLength(1);
    const again = await cli(['resume', 'r1', '-o', dir]);
    expect(again.code, again.stderr).toBe(0);
    expect(attemptsIn(dir).map(({ exit_reason, work_image }) => [exit_reason, work_image === null])).toEqual([
      ['orchestrator_lost', true],
      ['submitted', false],
    ]);
    expect(await isThere(before[0]!)).toBe(false);
    expect(verdictsIn(dir)).toMatchObject([{ outcome: 'resolved', reward: 1 }]);
  }, 120_000);
});
