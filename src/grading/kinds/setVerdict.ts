/** Verdicts of suites that say which tests passed and which failed, as sets of names. Pure. */
import type { TestLists, TestsStatus } from '../../formats/reports/instanceReport.ts';

export interface Expected {
  readonly failToPass: readonly string[];
  readonly passToPass: readonly string[];
}

export interface SetVerdict {
  readonly resolved: boolean;
  readonly status: TestsStatus;
}

function listsOf(
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

/** SWE-bench Pro: every expected test has passed, and a test that is missing has not. */
export function allPassed(expected: Expected, passed: ReadonlySet<string>): SetVerdict {
  const status = listsOf(
    expected,
    (name) => passed.has(name),
    () => true,
  );
  const resolved = status.FAIL_TO_PASS.failure.length + status.PASS_TO_PASS.failure.length === 0;
  return { resolved, status };
}

/**
 * SWE-bench-Live: no expected test failed, and every F2P test passed. A P2P test that the log does not name, or that was skipped, is
 * tolerated. An F2P list that names a test twice counts as long as its set.
 */
export function noneFailed(
  expected: Expected,
  passed: ReadonlySet<string>,
  failed: ReadonlySet<string>,
): SetVerdict {
  const status = listsOf(
    expected,
    (name) => passed.has(name),
    (name) => failed.has(name),
  );
  const broken = [...expected.failToPass, ...expected.passToPass].some((name) => failed.has(name));
  return { resolved: !broken && expected.failToPass.every((name) => passed.has(name)), status };
}

const INSIDE = /\sin\s\d+(?:\.\d+)?\s(?:msec|sec)\b/gi;
const TIME = /^\d+(?:\.\d+)?(?:ms|s)$/i;
const LONGEST_TIME = 40;

/** A time between two brackets at the end of a name. */
function withoutBracket(name: string, open: string, close: string): string {
  const text = name.trimEnd();
  const at = text.lastIndexOf(open);
  if (!text.endsWith(close) || at < 0 || text.length - at > LONGEST_TIME) return name;
  return TIME.test(text.slice(at + 1, -1).replaceAll(/\s/g, '')) ? text.slice(0, at) : name;
}

/** SWE-rebench V2: some runners write how long a test took into its name. */
export const withoutTiming = (name: string): string =>
  withoutBracket(withoutBracket(name, '[', ']').replace(INSIDE, ''), '(', ')').trim();

/** SWE-rebench V2: the tests that passed are exactly the expected ones, neither fewer nor more. */
export function sameSet(expected: Expected, passed: ReadonlySet<string>): SetVerdict {
  const names = {
    failToPass: expected.failToPass.map(withoutTiming),
    passToPass: expected.passToPass.map(withoutTiming),
  };
  const verdict = allPassed(names, passed);
  const listed = [...names.failToPass, ...names.passToPass].sort();
  const seen = [...passed].sort();
  const same = listed.length === seen.length && listed.every((name, at) => name === seen[at]);
  return { ...verdict, resolved: same };
}
