// Rows as their makers publish them: what a dataset is that no suite grades, and what it lacks, in one sentence and not as a broken row.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readInstance } from '../../src/dataset/dataset.ts';
import { loadDataset } from '../../src/suites/loadDataset.ts';
import { planGrading } from '../../src/suites/suites.ts';
import { tempDir } from '../support/cli.ts';

const COMMIT = 'a'.repeat(40);
const PATCH = 'diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-a\n+b\n';
const row = {
  instance_id: 'o__r-1',
  repo: 'o/r',
  base_commit: COMMIT,
  problem_statement: 'x',
  patch: PATCH,
  test_patch: PATCH,
};
const tests = { FAIL_TO_PASS: ['a'], PASS_TO_PASS: ['b'] };

async function load(...rows: readonly object[]) {
  const path = join(tempDir('published-'), 'rows.jsonl');
  writeFileSync(path, rows.map((one) => JSON.stringify(one)).join('\n'));
  return loadDataset(path, { env: {} });
}

const library = {
  instance_id: 'commit-0/x',
  repo: 'commit-0/x',
  base_commit: COMMIT,
  reference_commit: COMMIT,
  setup: {},
  test: {},
  src_dir: 'src',
};
const lancer = { question_id: '1', variant: 'ic_swe', price: 100, title: 't', description: 'd' };
const nemotron = {
  source: 'nebius/SWE-rebench',
  instance_id: 'o__r-1',
  prompt: 'p',
  golden_patch: PATCH,
  relevant_file_contents: [],
  original_prompt: 'p',
};
const trajectory = { uuid: 'u', messages: [], tools: [], dataset: 'R2E-Gym/R2E-Gym-Subset', repo: 'o/r' };

test.each([
  ['Commit0 rows ask for a whole library', library],
  ['SWE-Lancer rows have no instance_id', lancer],
  ['Nemotron-Cascade-RL-SWE rows are prompts', nemotron],
  ['its rows are trajectories', trajectory],
])('%s: told once for the file', async (says, foreign) => {
  const loaded = await load(foreign, foreign, foreign);
  if (loaded.ok) throw new Error('it was read');
  expect(loaded.problems.map(({ message }) => message)).toEqual([
    expect.stringContaining(`cannot be run or graded: ${says}`),
  ]);
});

test.each([
  [
    'SWE-PolyBench rows have F2P',
    { ...row, F2P: '[]', P2P: '[]', Dockerfile: 'FROM x', test_command: 'mvn test', language: 'Java' },
  ],
  ['SWE-bench-extra rows name no test command', { ...row, ...tests, meta: {}, license: 'mit', version: '1' }],
  [
    'SWE-bench Multimodal rows of before SWE-bench 5',
    { ...row, repo: 'a/b', image_assets: '{"problem_statement": []}', test_patch: '' },
  ],
  [
    'rows of Java, as those of SWE-bench-java, name no test command',
    { ...row, ...tests, test_patch: PATCH.replaceAll('/a', '/src/ATest.java'), version: '1' },
  ],
])('%s: its rows can be run, and each says why it cannot be graded', async (says, foreign) => {
  const loaded = await load(foreign);
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
  const plan = planGrading(readInstance(loaded.dataset.rows[0]!));
  expect(plan).toEqual({ ok: false, reason: expect.stringContaining(says) });
});

test('SWE-PolyBench is read from the CSV that it is published as, with line breaks and quotes in its cells', async () => {
  const cells = { ...row, problem_statement: 'He said "x",\nthen', F2P: "['a']", test_command: 'mvn test' };
  const quoted = (values: readonly string[]) =>
    values.map((text) => `"${text.replaceAll('"', '""')}"`).join(',');
  const path = join(tempDir('published-'), 'rows.csv');
  writeFileSync(path, `${quoted(Object.keys(cells))}\r\n${quoted(Object.values(cells))}\r\n`);
  const loaded = await loadDataset(path, { env: {} });
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
  const instance = readInstance(loaded.dataset.rows[0]!);
  expect(instance).toMatchObject({ problem_statement: cells.problem_statement, patch: PATCH });
  expect(planGrading(instance)).toEqual({
    ok: false,
    reason: expect.stringContaining('SWE-PolyBench rows have F2P'),
  });
  writeFileSync(path, 'a,b\n"c');
  expect(await loadDataset(path, { env: {} })).toMatchObject({
    ok: false,
    problems: [{ message: expect.stringContaining('not a readable CSV file (') }],
  });
});

test('a row that is broken in another way says which columns it lacks', async () => {
  const loaded = await load({ instance_id: 'o__r-1' });
  expect(loaded).toMatchObject({
    ok: false,
    problems: [{ message: expect.stringContaining('problem_statement is missing') }, {}],
  });
});

test.each([
  ['SWE-bench-Live', { ...row, test_cmds: ['pytest'] }],
  ['SWE-bench Pro', { ...row, dockerhub_tag: 't' }],
])(
  'a broken row of %s says what it lacks, for its suite is one that runs here',
  async (_, { base_commit, ...broken }) => {
    expect(await load(broken)).toMatchObject({
      ok: false,
      problems: [{ message: expect.stringContaining('(o__r-1): base_commit is missing') }],
    });
  },
);

test('a row of Multi-SWE-bench is one also where its file has an id for it', async () => {
  const run = { passed_tests: [], failed_tests: ['A'], skipped_tests: [] };
  const multi = {
    ...{
      org: 'cli',
      repo: 'cli',
      number: 1,
      base: { sha: COMMIT },
      resolved_issues: [{ number: 1, title: 't', body: 'b' }],
    },
    ...{
      fix_patch: PATCH,
      test_patch: PATCH,
      p2p_tests: {},
      f2p_tests: { A: {} },
      s2p_tests: {},
      n2p_tests: {},
    },
    ...{ run_result: run, test_patch_result: run, fix_patch_result: run },
  };
  const [plain, named] = await Promise.all([load(multi), load({ ...multi, instance_id: 'cli__cli-1' })]);
  if (!plain.ok || !named.ok) throw new Error('it was not read');
  expect(readInstance(named.dataset.rows[0]!)).toEqual(readInstance(plain.dataset.rows[0]!));
  expect(readInstance(named.dataset.rows[0]!)).toMatchObject({
    repo: 'cli/cli',
    base_commit: COMMIT,
    problem_statement: 't\nb',
  });
  // What was written as rows once is read as it is.
  const { extra, ...columns } = readInstance(plain.dataset.rows[0]!);
  const again = await load({ ...columns, ...extra });
  expect(again.ok && readInstance(again.dataset.rows[0]!)).toEqual(readInstance(plain.dataset.rows[0]!));
});
