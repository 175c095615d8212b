// `swebatch compare A B --instance ID`: what a person reads of two trajectories, what a program gets, and what wrong names are answered.
import { rmSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { cli, tempDir } from '../../support/cli.ts';
import { addRun, openFixture } from '../fixture.ts';

const ID = 'sympy__sympy-10001';
let dir: string;
const compare = (...more: string[]) => cli(['compare', ...more, '-o', dir]);
beforeAll(() => {
  dir = tempDir();
  const store = openFixture(dir);
  addRun(store, { name: 'one', instances: 2, steps: 6 });
  addRun(store, { name: 'two', instances: 2, steps: 9, seed: 3, day: 1, arms: ['small', 'large'] });
  // The last command handed in the work, so no observation shows it.
  store
    .prepare(
      `UPDATE commands SET message_seq = NULL, command = 'echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT'
       WHERE (attempt_id, step) IN (SELECT attempt_id, max(step) FROM commands GROUP BY attempt_id)`,
    )
    .run();
  store.close();
});
afterAll(() => rmSync(dir, { recursive: true, force: true }));

test('steps beside each other, where they part, tests and patches', async () => {
  const { stdout, code } = await compare('one', 'two/large', '--instance', ID);
  expect(code).toBe(0);
  expect(stdout).toMatch(/=\s+1\s+read sed -n/);
  expect(stdout).toMatch(/parts /);
  expect(stdout).toMatch(/submit echo COMPLETE/);
  expect(stdout).toContain('submit echo COMPLET… [exit 1]');
  expect(stdout).toContain('Patch of B');
  expect(stdout).toContain('diff --git a/pkg/module_1.py');
});

test('the same as data; one run with two arms is enough', async () => {
  const { stdout } = await compare('two', '--instance', ID, '--json');
  const data = JSON.parse(stdout) as {
    a: { arm: string; cost_usd: number };
    b: { arm: string };
    rows: { how: string; a: { kind: string } }[];
    parts_at: number | null;
  };
  expect([data.a.arm, data.b.arm]).toEqual(['small', 'large']);
  expect(data.a.cost_usd).toBeGreaterThan(0);
  expect(data.rows[0]).toMatchObject({ how: 'same', a: { kind: 'read' } });
});

test.each([
  [['one', 'two'], /lays two trajectories beside each other[\s\S]*RUN@EPOCH/],
  [['one', 'one@7'], /one\S*@7 has no attempt at \S+[\s\S]*these have:\s+one,\s+two\/large,\s+two\/small/],
  [['one', 'nobody'], /neither a run in/],
])('%j is answered with what to do', async (sides, answer) => {
  const { stderr, code } = await compare(...sides, '--instance', ID);
  expect(code).toBe(2);
  expect(stderr).toMatch(answer);
});

test('an instance that no run has', async () => {
  expect((await compare('one', 'two/large', '--instance', 'nobody')).stderr).toContain(
    'no run here has an instance "nobody"',
  );
});
