/** Verdicts of suites that say which tests passed and which failed, as sets of names. Pure. */
import type { TestLists, TestsStatus } from '../formats/harness/instanceReport.ts';

export interface Expected {
  readonly failToPass: readonly string[];
  readonly passToPass: readonly string[];
}

export interface SetVerdict {
  readonly resolved: boolean;
  readonly status: TestsStatus;
}

/** Expected tests by what a run says of them. */
export function listsOf(
  { failToPass, passToPass }: Expected,
  passed: (name: string) => boolean,
  failed: (name: string) => boolean,
): TestsStatus {
  const sort = (names: readonly string[]): TestLists => ({
    success: names.filter(passed),
    failure: names.filter((name) => !passed(name) && failed(name)),
  });
  return {
    FAIL_TO_PASS: sort(failToPass),
    PASS_TO_PASS: sort(passToPass),
    FAIL_TO_FAIL: { success: [], failure: [] },
    PASS_TO_FAIL: { success: [], failure: [] },
  };
}

/** Every expected test has passed, and a test that is missing has not. */
export function allPassed(expected: Expected, passed: ReadonlySet<string>): SetVerdict {
  const status = listsOf(
    expected,
    (name) => passed.has(name),
    () => true,
  );
  const resolved = status.FAIL_TO_PASS.failure.length + status.PASS_TO_PASS.failure.length === 0;
  return { resolved, status };
}
