/** Grading: test statuses against the tests a row expects, by the rules of one version of the official harness. Pure. */
import type { InstanceVerdict, TestLists, TestsStatus } from '../formats/harness/instanceReport.ts';
import { type HarnessVersion, type LogParser, ParserError } from './parsers/logParser.ts';
import { classifyLog, type LogSuite, type ReadLog, readLog } from './readLog.ts';

type Resolution = 'RESOLVED_FULL' | 'RESOLVED_PARTIAL' | 'RESOLVED_NO';

/** The fields of a grade spec that grading needs. */
export interface Expectation {
  readonly instanceId: string;
  readonly version: string;
  readonly evalType: 'pass_and_fail' | 'fail_only';
  readonly failToPass: readonly string[];
  readonly passToPass: readonly string[];
  readonly suite?: LogSuite;
}

const PASSING: ReadonlySet<string> = new Set(['PASSED', 'XFAIL']);
const count = (text: string, mark: string) => text.split(mark).length - 1;

/**
 * The status of an expected test. Under v5 an id that was cut in the middle of a parameter (more `[` than `]`; 676 of them in Verified)
 * takes the first name that begins with it, if all such names agree on passing.
 */
function statusOf(
  name: string,
  statuses: ReadonlyMap<string, string>,
  harness: HarnessVersion,
): string | undefined {
  const exact = statuses.get(name);
  if (exact !== undefined || harness === 'v4.1' || count(name, '[') <= count(name, ']')) return exact;
  let first: string | undefined;
  for (const [key, status] of statuses) {
    if (!key.startsWith(name)) continue;
    first ??= status;
    if (PASSING.has(status) !== PASSING.has(first)) return undefined;
  }
  return first;
}

/** The list that a test goes on; a status without a meaning puts it on neither. */
function listOf(
  status: string | undefined,
  harness: HarnessVersion,
  skipped: keyof TestLists,
): keyof TestLists | undefined {
  if (status === undefined) return 'failure';
  if (PASSING.has(status)) return 'success';
  if (status === 'FAILED' || status === 'ERROR') return 'failure';
  return status === 'SKIPPED' && harness === 'v5' ? skipped : undefined;
}

function testsStatus(
  { evalType, failToPass, passToPass }: Expectation,
  statuses: ReadonlyMap<string, string>,
  harness: HarnessVersion,
): TestsStatus {
  const listFor = (name: string, skipped: keyof TestLists) => {
    if (evalType === 'fail_only') return statuses.get(name) === 'FAILED' ? 'failure' : 'success';
    return listOf(statusOf(name, statuses, harness), harness, skipped);
  };
  const sort = (names: readonly string[], skipped: keyof TestLists): TestLists => {
    const lists = Map.groupBy(names, (name) => listFor(name, skipped));
    return { success: lists.get('success') ?? [], failure: lists.get('failure') ?? [] };
  };
  return {
    FAIL_TO_PASS: sort(failToPass, 'failure'),
    PASS_TO_PASS: sort(passToPass, 'success'),
    FAIL_TO_FAIL: { success: [], failure: [] },
    PASS_TO_FAIL: { success: [], failure: [] },
  };
}

const rate = ({ success, failure }: TestLists): number =>
  success.length + failure.length === 0 ? 1 : success.length / (success.length + failure.length);

export function resolutionOf(status: TestsStatus): Resolution {
  const solved = rate(status.FAIL_TO_PASS);
  if (rate(status.PASS_TO_PASS) !== 1) return 'RESOLVED_NO';
  if (solved === 1) return 'RESOLVED_FULL';
  return solved > 0 ? 'RESOLVED_PARTIAL' : 'RESOLVED_NO';
}

export interface Grade {
  readonly verdict: InstanceVerdict;
  readonly resolution: Resolution;
  readonly read: ReadLog;
}

export function gradeLog(
  expected: Expectation,
  log: string,
  parser: LogParser,
  harness: HarnessVersion,
): Grade {
  const { instanceId, version, suite } = expected;
  const read = readLog(log, parser, { instanceId, version, harness }, suite);
  const verdict: InstanceVerdict = {
    patch_is_None: false,
    patch_exists: true,
    patch_successfully_applied: false,
    resolved: false,
    ...(harness === 'v5' && { infra_failure: false }),
  };
  if (read.notFound !== undefined) {
    const infra = harness === 'v5' ? classifyLog(read.log) : undefined;
    if (infra) {
      verdict.infra_failure = infra.tier === 'environment';
      verdict.infra_failure_reason = infra.reason;
    }
    return { verdict, resolution: 'RESOLVED_NO', read };
  }
  const tests = testsStatus(expected, read.statuses, harness);
  const resolution = resolutionOf(tests);
  return {
    verdict: {
      ...verdict,
      patch_successfully_applied: true,
      resolved: resolution === 'RESOLVED_FULL',
      tests_status: tests,
    },
    resolution,
    read,
  };
}

/**
 * A user's parser may throw, and so may an official one on a log that it was not made for. Only this instance is lost then (observed:
 * tests/grading/grade.test.ts).
 */
export function gradeSafely(
  expected: Expectation,
  log: string,
  parser: LogParser,
  harness: HarnessVersion,
): { readonly ok: true; readonly grade: Grade } | { readonly ok: false; readonly message: string } {
  try {
    return { ok: true, grade: gradeLog(expected, log, parser, harness) };
  } catch (error) {
    const why = error instanceof ParserError ? error.message : `it threw ${String(error)}`;
    return { ok: false, message: `${expected.instanceId}: the log parser gave up: ${why}` };
  }
}
