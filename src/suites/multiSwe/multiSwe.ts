/**
 * Multi-SWE-bench: no id column, issues apart from the task, tests as maps. The task's image brings the script that applies the fix and
 * runs the tests. The run with the fix is compared with the runs that the row records, without any patch and with the tests alone.
 */

import { z } from 'zod';
import { isRecord } from '../../base/isRecord.ts';
import { keyed } from '../../base/keyed.ts';
import { stringOf } from '../../base/text/contentText.ts';
import type { Instance } from '../../dataset/instance.ts';
import type { RawRow } from '../../dataset/read/row.ts';
import type { PlannedGrading } from '../../grading/gradingFrame.ts';
import {
  type Judged,
  listsOf,
  lostResult,
  notGradable,
  planOwnRules,
  type SetVerdict,
} from '../../grading/ownRules.ts';
import { ParserError } from '../../grading/parsers/logParser.ts';
import type { SpecOptions } from '../../grading/specs/spec.ts';
import type { Suite } from '../suite.ts';
import { type Shape, shapeOf, type TestSets } from './shapes.ts';

export const multiSwe: Suite = {
  rows: { columns },
  needs: ({ repo }) => ({ container: { cwd: `/home/${repo.split('/').at(-1)!}` } }),
  grading,
};

const FIXED = ['fixed_tests', 'f2p_tests', 's2p_tests', 'n2p_tests'] as const;

function columns(raw: RawRow): RawRow {
  const { org, number } = raw;
  const repo = stringOf(raw.repo);
  // A row that was converted before names its repository with its owner. The makers of the dataset write an id into some of their files.
  if (repo.includes('/')) return raw;
  const issues = Array.isArray(raw.resolved_issues) ? raw.resolved_issues.filter(isRecord) : [];
  const statement = issues.length > 0 ? issues : [raw];
  const fixed = FIXED.map((name) => raw[name]).filter(isRecord);
  return {
    ...raw,
    instance_id: raw.instance_id ?? `${org}__${repo}-${number}`,
    repo: `${org}/${repo}`,
    base_commit: isRecord(raw.base) ? raw.base.sha : undefined,
    problem_statement: statement
      .map((issue) => `${stringOf(issue.title)}\n${stringOf(issue.body)}`)
      .join('\n\n'),
    hints_text: raw.hints,
    patch: raw.fix_patch,
    FAIL_TO_PASS: Object.assign({}, ...fixed),
    PASS_TO_PASS: raw.p2p_tests,
    image: `mswebench/${org}_m_${repo}:pr-${number}`.toLowerCase(),
  };
}

// The verdict of Multi-SWE-bench: the run with the fix is compared with the runs that its row records, without any patch and with the tests
// alone. Pure.

const names = z.array(z.string()).default([]);
const runSchema = z.object({ passed_tests: names, failed_tests: names, skipped_tests: names });
const listed = keyed(z.unknown()).nullish();

/** The runs before, by the row, and the tests that have to change. */
export const multiRowSchema = z.object({
  run_result: runSchema,
  test_patch_result: runSchema,
  p2p_tests: listed,
  f2p_tests: listed,
  s2p_tests: listed,
  n2p_tests: listed,
});
type MultiRow = z.infer<typeof multiRowSchema>;

type Status = 'PASS' | 'FAIL' | 'SKIP' | 'NONE';

function statuses(
  ...lists: readonly [passed: Iterable<string>, failed: Iterable<string>, skipped: Iterable<string>]
) {
  const words = ['PASS', 'FAIL', 'SKIP'] as const;
  return new Map<string, Status>(lists.flatMap((names, at) => [...names].map((name) => [name, words[at]!])));
}

/** A name on two lists: the harness refuses such a log, and the instance is an error there. */
const contradicts = ({ passed, failed, skipped }: TestSets): string | undefined =>
  [...passed].find((name) => failed.has(name) || skipped.has(name)) ??
  [...failed].find((name) => skipped.has(name));

/** The reason why the run with the fix is not what the row asks for; undefined when it is. */
function broken(row: MultiRow, fix: ReadonlyMap<string, Status>): string | undefined {
  const said = (run: MultiRow['run_result']) =>
    statuses(run.passed_tests, run.failed_tests, run.skipped_tests);
  const run = said(row.run_result);
  const test = said(row.test_patch_result);
  const all = [...new Set([...run.keys(), ...test.keys(), ...fix.keys()])];
  const of = (found: ReadonlyMap<string, Status>, name: string): Status => found.get(name) ?? 'NONE';
  if (fix.size === 0) return 'no test results were found in the log';
  const newly = all.find((name) => of(test, name) === 'PASS' && of(fix, name) === 'FAIL');
  if (newly !== undefined) return `${newly} passed before the patch and fails with it`;
  if (!all.some((name) => of(test, name) !== 'PASS' && of(fix, name) === 'PASS'))
    return 'no test passes that did not pass before';
  const odd = all.find(
    (name) =>
      ['NONE', 'SKIP'].includes(of(test, name)) && of(fix, name) === 'FAIL' && of(run, name) === 'PASS',
  );
  if (odd !== undefined) return `${odd} passed without any patch and fails with it`;
  const wanted = [
    [row.p2p_tests, 'PASS'],
    [row.f2p_tests, 'FAIL'],
    [row.s2p_tests, 'SKIP'],
    [row.n2p_tests, 'NONE'],
  ] as const;
  for (const [list, before] of wanted)
    for (const name of Object.keys(list ?? {}))
      if (of(fix, name) !== 'PASS' || of(test, name) !== before)
        return `${name} was to pass, and to be ${before} before`;
  return undefined;
}

function multiVerdict(row: MultiRow, fix: TestSets): SetVerdict & { readonly why: string | undefined } {
  const why = broken(row, statuses(fix.passed, fix.failed, fix.skipped));
  const names = (...lists: readonly MultiRow['p2p_tests'][]) =>
    lists.flatMap((list) => Object.keys(list ?? {}));
  const expected = {
    failToPass: names(row.f2p_tests, row.s2p_tests, row.n2p_tests),
    passToPass: names(row.p2p_tests),
  };
  return { resolved: why === undefined, why, status: listsOf(expected, (name) => fix.passed.has(name)) };
}

const FIX_PATCH = '/home/fix.patch';
const SCRIPT = 'bash /home/fix-run.sh\n';

/** The verdict on the text of a run. */
export function judgeMultiLog(row: MultiRow, shape: Shape, log: string): Judged {
  try {
    const sets = shape(log);
    const twice = contradicts(sets);
    if (twice !== undefined)
      return lostResult(`the log says of ${twice} that it passed and that it did not`, log);
    if (sets.passed.size + sets.failed.size + sets.skipped.size === 0)
      return lostResult('the log names no test at all', log);
    return { ok: true, verdict: multiVerdict(row, sets), log, applied: !/^error: /m.test(log) };
  } catch (error) {
    if (!(error instanceof ParserError)) throw error;
    return lostResult(`the log cannot be read: ${error.message}`, log);
  }
}

const filled = (value: unknown): boolean => typeof value === 'string' && value !== '';

function grading(instance: Instance, { harness }: SpecOptions): PlannedGrading {
  const { extra, repo } = instance;
  if (filled(extra.number_interval) || filled(extra.tag))
    return notGradable(
      instance,
      'the log shapes of Multi-SWE-RL go by ranges of numbers (number_interval, tag), which are not known here',
    );
  const shape = shapeOf(repo, Number(extra.number));
  if (!shape) return notGradable(instance, `the shape of the logs of ${repo} is not known here`);
  const row = multiRowSchema.safeParse(extra);
  if (!row.success) return notGradable(instance, 'its run_result and test_patch_result cannot be read');
  return planOwnRules(
    {
      instance,
      script: SCRIPT,
      cwd: '/home',
      decides: { row: row.data },
      files: (patch) => ({ [FIX_PATCH]: patch }),
      judge: async (_, run) => judgeMultiLog(row.data, shape, run.log),
    },
    harness,
  );
}
