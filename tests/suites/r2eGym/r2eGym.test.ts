// Rows of R2E-Gym. `r2e-golden.json` has made logs with the reward that the suite's own Python (R2E-Gym/R2E-Gym@69bc9535:
// agenthub/runtime/docker.py, repo_analysis/execution_log_parser.py) gives them, null where it raises, and a commit with the patch that
// its commit_models/diff_classes.py makes of it.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { imageOf } from '../../../src/dataset/instance.ts';
import { judgeR2e, R2E_SCRIPT, r2eExpected } from '../../../src/suites/r2eGym/r2eGym.ts';
import { needsOf, normaliseRow, planGrading } from '../../support/suites.ts';

interface Golden {
  readonly cases: readonly {
    readonly log: string;
    readonly expected: string;
    readonly reward: number | null;
  }[];
  readonly gold: { readonly content: string; readonly patch: string };
}
const golden = JSON.parse(
  readFileSync(join(import.meta.dirname, 'fixtures/r2e-golden.json'), 'utf8'),
) as Golden;

const row = (more: Record<string, unknown> = {}) => ({
  ...{ repo_name: 'orange3', commit_hash: 'abc', docker_image: 'namanjain12/orange3_final:abc' },
  ...{
    problem_statement: 'see [ISSUE]\nA [ISSUE] x\n[/ISSUE] end',
    parsed_commit_content: golden.gold.content,
  },
  expected_output_json: '{"test_a": "PASSED", "test_b - why": "FAILED"}',
  ...more,
});

function read(raw: Record<string, unknown>) {
  const got = normaliseRow(raw);
  if (!got.ok) throw new Error(got.messages.join());
  return got.instance;
}

describe('a row', () => {
  test('has the id, image, statement and gold patch that the suite uses', () => {
    const instance = read(row());
    expect(instance).toMatchObject({
      ...{ instance_id: 'orange3-abc', repo: 'orange3', kind: 'r2e-gym', base_commit: '' },
      ...{ problem_statement: '\nA [ISSUE] x\n', PASS_TO_PASS: ['test_a', 'test_b'] },
      patch: golden.gold.patch,
    });
    expect(imageOf(instance)).toBe('namanjain12/orange3_final:abc');
    expect(planGrading(instance)).toMatchObject({ ok: true });
  });

  test('a converted row is read as itself', () => {
    const { extra, ...instance } = read(row());
    expect(read({ ...extra, ...instance })).toEqual({ ...instance, extra });
  });

  test.each([
    [{ expected_output_json: '' }, /expected_output_json names no status of a test/],
    [{ expected_output_json: '{"a": 1}' }, /expected_output_json names no status of a test/],
    [{ expected_output_json: '{}' }, /expected_output_json names no status of a test/],
    [{ repo_name: 'bokeh' }, /no log parser for its repository "bokeh"/],
  ])('that lacks what grading needs is read, and says why it is not gradable: %j', (more, reason) => {
    expect(planGrading(read(row(more)))).toMatchObject({
      ok: false,
      reason: expect.stringMatching(reason),
    });
  });

  test.each(['{', '[]', '{"file_diffs": [{"header": 1}]}', ''])(
    'a commit that cannot be read is no gold patch: %j',
    (parsed_commit_content) => {
      expect(read(row({ parsed_commit_content })).patch).toBe('');
    },
  );
});

test("80 made logs get the suite's own reward; where it raises, a test is missing and nothing is resolved", () => {
  expect(golden.cases).toHaveLength(80);
  for (const { log, expected, reward } of golden.cases)
    expect(judgeR2e(r2eExpected(expected)!, log).resolved, JSON.stringify(log)).toBe(reward === 1);
});

test('the tests that an agent must not see are removed for it, and moved where they run for grading', () => {
  const { startupCommand } = needsOf(read(row())).container!;
  expect(startupCommand).toContain('rm -rf /r2e_tests /testbed/run_tests.sh');
  expect(startupCommand).not.toContain('mv /r2e_tests');
  expect(R2E_SCRIPT.indexOf('mv /r2e_tests /root/r2e_tests')).toBeLessThan(R2E_SCRIPT.indexOf('git apply'));
  expect(R2E_SCRIPT.indexOf('git apply')).toBeLessThan(R2E_SCRIPT.indexOf('bash /root/run_tests.sh'));
});
