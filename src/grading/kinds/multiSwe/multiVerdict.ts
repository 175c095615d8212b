/**
 * The verdict of Multi-SWE-bench: the run with the fix is compared with the runs that its row records, without any patch and with the
 * tests alone. Pure.
 */
import { z } from 'zod';
import type { SetVerdict } from '../setVerdict.ts';
import type { TestSets } from './shape.ts';

const names = z.array(z.string()).default([]);
const runSchema = z.object({ passed_tests: names, failed_tests: names, skipped_tests: names });
const listed = z.record(z.string(), z.unknown()).nullish();

/** What its row says of the runs before, and which tests have to change how. */
export const multiRowSchema = z.object({
  run_result: runSchema,
  test_patch_result: runSchema,
  p2p_tests: listed,
  f2p_tests: listed,
  s2p_tests: listed,
  n2p_tests: listed,
});
export type MultiRow = z.infer<typeof multiRowSchema>;

type Status = 'PASS' | 'FAIL' | 'SKIP' | 'NONE';

function statuses({ passed, failed, skipped }: TestSets): Map<string, Status> {
  const found = new Map<string, Status>();
  for (const name of passed) found.set(name, 'PASS');
  for (const name of failed) found.set(name, 'FAIL');
  for (const name of skipped) found.set(name, 'SKIP');
  return found;
}

const setsOf = (run: z.infer<typeof runSchema>): TestSets => ({
  passed: new Set(run.passed_tests),
  failed: new Set(run.failed_tests),
  skipped: new Set(run.skipped_tests),
});

/** A name on two lists: the harness refuses such a log, and the instance is an error there. */
export const contradicts = ({ passed, failed, skipped }: TestSets): string | undefined =>
  [...passed].find((name) => failed.has(name) || skipped.has(name)) ??
  [...failed].find((name) => skipped.has(name));

/** Why the run with the fix is not what the row asks for; undefined when it is. */
function broken(row: MultiRow, fix: ReadonlyMap<string, Status>): string | undefined {
  const run = statuses(setsOf(row.run_result));
  const test = statuses(setsOf(row.test_patch_result));
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

export function multiVerdict(
  row: MultiRow,
  fix: TestSets,
): SetVerdict & { readonly why: string | undefined } {
  const why = broken(row, statuses(fix));
  const sort = (lists: readonly MultiRow['p2p_tests'][]) => {
    const all = lists.flatMap((list) => Object.keys(list ?? {}));
    return {
      success: all.filter((name) => fix.passed.has(name)),
      failure: all.filter((name) => !fix.passed.has(name)),
    };
  };
  return {
    resolved: why === undefined,
    why,
    status: {
      FAIL_TO_PASS: sort([row.f2p_tests, row.s2p_tests, row.n2p_tests]),
      PASS_TO_PASS: sort([row.p2p_tests]),
      FAIL_TO_FAIL: { success: [], failure: [] },
      PASS_TO_FAIL: { success: [], failure: [] },
    },
  };
}
