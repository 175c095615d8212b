// Harbor tasks in real containers: who solves them passes, and nobody sees the tests before the end. tests/long/suites/harborVerdicts.test.ts has the rest.

import { join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import { cli, tempDir } from '../support/cli.ts';
import { docker, dockerAvailable } from '../support/docker.ts';
import { SIX_TASKS, sixTasks } from '../support/kinds/sixTasks.ts';

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

const tagsHere = async (): Promise<string[]> =>
  (await docker.listImages()).flatMap(({ RepoTags }) => RepoTags ?? []);

describe.skipIf(!available)('Harbor tasks', () => {
  test('a model that solves them passes all six, and finds no test on its way; its end states are removed', async () => {
    const dir = tempDir();
    const { tasks, solves } = await sixTasks(dir);
    const done = await run(dir, tasks, solves);
    expect(done.code, done.stderr).toBe(0);
    expect(
      verdicts(dir).map(({ instance_id, outcome, reward, error_message }) => [
        instance_id,
        outcome,
        reward,
        error_message,
      ]),
    ).toEqual(SIX_TASKS.toSorted().map((id) => [id, 'resolved', 1, null]));
    const [halves] = verdicts(dir).filter(({ instance_id }) => instance_id === 'two-halves');
    expect(JSON.parse(halves!.rewards!)).toEqual({ reward: 1, found: 2 });
    const searches = rowsOf(dir, `SELECT output FROM commands WHERE command LIKE 'grep -rlI%'`) as {
      output: Buffer | string;
    }[];
    expect(searches).toHaveLength(6);
    for (const { output } of searches) expect(String(output).trim()).toBe('searched');
    // Of this run: others keep the work of theirs meanwhile.
    const kept = (rowsOf(dir, 'SELECT work_image FROM attempts') as { work_image: string }[]).map(
      ({ work_image }) => work_image,
    );
    expect(kept).toEqual(Array(6).fill(expect.stringMatching(/^swebatch\.internal\/work/)));
    expect((await tagsHere()).filter((tag) => kept.includes(tag))).toEqual([]);

    // What was judged is gone, so a second grading has nothing to judge: it must not replace a verdict by a failure.
    const again = await cli(['evaluate', 'r1', '-o', dir, '--again']);
    expect(again.code, again.stderr).toBe(0);
    expect(again.stderr).toMatch(/6 verdicts stand/);
    expect(verdicts(dir)).toHaveLength(6);
  });
});
