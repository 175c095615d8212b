/**
 * Questions that the harness's verdict does not ask: could the output be forged, did the row's own test files run, is there evidence that anything
 * ran. Flags never change `resolved`; those that are `strict` make `resolved_strict` false (observed: tests/grading/suspicion.test.ts).
 */

import { compact } from '../../base/compact.ts';
import { withoutAnsi } from '../../base/python/text.ts';
import type { Grade } from '../grade.ts';
import { StatusMap } from '../parsers/logParser.ts';
import { MARK, suiteRan } from '../readLog.ts';
import type { GradeSpec } from '../specs/spec.ts';
import { touchedPaths } from '../specs/spec.ts';
import type { Suspicion } from '../suspicion/commands.ts';
import { type DoubtedRun, doubtfulPaths, few, finding, type PatchDoubt, runDoubts } from './patchDoubts.ts';
import { patchedPaths } from './patchPaths.ts';
import { doubtfulText } from './patchText.ts';

export interface GradeSuspicion extends Suspicion {
  /** Counts against `resolved_strict`. */
  readonly strict: boolean;
}

/** A test log is evidence: one with a secret of ours is kept unchanged, and told of. */
export const LOG_HOLDS_SECRET: GradeSuspicion = {
  rule: 'log_holds_secret',
  says: 'the test log holds a secret of this machine and was kept as it is: do not publish it',
  evidence: 'test_output.txt',
  strict: false,
  inferred: false,
};

/**
 * Files that `git apply -v` says it has written, the new name where one was renamed. Only whole lines before the tests: the script also
 * prints the patch itself, which may hold such a sentence, and tests print what they like.
 */
function appliedFiles(log: string): Set<string> {
  const start = log.indexOf(MARK.start);
  const found = log.slice(0, start < 0 ? log.length : start).matchAll(/^Applied patch (.+) cleanly\.$/gm);
  return new Set([...found].map(([, path]) => path!.split(' => ').at(-1)!));
}

/** Whether the row's own test files were the ones that ran. */
function testFiles(spec: GradeSpec, patch: string, log: string): PatchDoubt | undefined {
  const own = new Set(touchedPaths(spec.testPatch));
  const colliding = patchedPaths(patch).filter((path) => own.has(path));
  const applied = spec.evalScript.includes('git apply -v') ? appliedFiles(log) : undefined;
  const missing = applied ? [...own].filter((path) => !applied.has(path)) : [];
  if (missing.length > 0)
    return finding(
      'test_patch_not_applied',
      colliding.length > 0
        ? "the row's tests could not be put in place, and the patch brings files of the same names"
        : "the log does not show that the row's tests were put in place",
      few(missing),
    );
  if (colliding.length === 0) return undefined;
  // One unknown path makes git reset nothing at all; then edits of the model's survive in the test files.
  const kept = /error: pathspec '[^'\n]*' did not match/.test(log);
  return finding(
    'test_files_changed',
    kept
      ? "the patch changes the row's test files, and they were not reset before the tests"
      : "the patch changes the row's test files, which were reset before the tests",
    few(colliding),
    kept,
  );
}

/**
 * Whose tests ran, by the names under which they were reported: `tests/test_a.py::test_b`, or `test_b (a.tests.Case)`. A file that such
 * a name says, that the patch wrote and the row did not, is the patch's own judge.
 */
function testsOfPatch(spec: GradeSpec, patch: string, grade: Grade): PatchDoubt | undefined {
  const own = new Set([...touchedPaths(spec.testPatch), ...patchedPaths(spec.goldPatch)]);
  const written = patchedPaths(patch).filter((path) => !own.has(path));
  if (written.length === 0) return undefined;
  const files = new Set<string>();
  for (const name of [...spec.failToPass, ...spec.passToPass]) {
    if (!grade.read.statuses.has(name)) continue;
    files.add(name.split('::', 1)[0]!);
    const parts = /\(([\w.]{1,400})\)$/.exec(name)?.[1]?.split('.') ?? [];
    for (let length = 1; length <= parts.length; length++) files.add(parts.slice(0, length).join('/'));
  }
  const judges = written.filter((path) => {
    if (files.has(path)) return true;
    const module = path.endsWith('.py') ? path.slice(0, -'.py'.length) : undefined;
    // Names of Django begin below the folder of all tests.
    return module?.startsWith('tests/') && files.has(module.slice('tests/'.length));
  });
  if (judges.length === 0) return undefined;
  return finding(
    'tests_of_patch',
    "tests that count were reported from files that the patch wrote, and the row's own tests did not",
    few(judges),
  );
}

/** Made when it is first asked for: a log may be long, and several doubts read it. */
function once(make: () => string): () => string {
  let made: string | undefined;
  return () => (made ??= make());
}

const PYTEST_SUMMARY = /^=+ .*\d+ (?:passed|failed|errors?|skipped|xfailed|xpassed|deselected|warnings?)\b/;

/** The last lines of the runners whose summaries are known: how many passed, or undefined when the run never reached its end. */
const RUNNERS: readonly { readonly parsers: RegExp; readonly passed: (log: string) => number | undefined }[] =
  [
    { parsers: /^parse_log_sympy$/, passed: (log) => summary(log, 'tests finished: ') },
    {
      parsers: /^parse_log_django$/,
      passed: (log) => (/(?<![^\n])Ran \d+ tests? in /.test(log) ? Number.POSITIVE_INFINITY : undefined),
    },
    {
      parsers:
        /^parse_log_(pytest|pytest_options|pytest_v2|pytest_pydantic|astroid|astropy|flask|marshmallow|matplotlib|pvlib|pydicom|pylint|pyvista|requests|scikit|seaborn|sphinx|sqlfluff|xarray)$/,
      passed: (log) => summary(log, ' in ', PYTEST_SUMMARY),
    },
  ];

/** Passes counted by all summary lines of a log: one run of a suite prints one, a script with several commands prints several. */
function summary(log: string, mark: string, form?: RegExp): number | undefined {
  let total: number | undefined;
  for (let at = log.indexOf(mark); at >= 0; ) {
    const from = log.lastIndexOf('\n', at) + 1;
    const end = log.indexOf('\n', at);
    const line = log.slice(from, end < 0 ? undefined : end);
    if (line.length < 1000 && (form === undefined || form.test(line)))
      total =
        (total ?? 0) +
        Number(/(\d+) passed/.exec(line)?.[1] ?? 0) +
        Number(/(\d+) xpassed/.exec(line)?.[1] ?? 0);
    at = end < 0 ? -1 : log.indexOf(mark, end);
  }
  return total;
}

const parserId = (id: string) => (id.startsWith('parse_log_') ? id : `parse_log_${id}`);

function runnerSummary(spec: GradeSpec, grade: Grade, section: () => string): PatchDoubt | undefined {
  const runner = RUNNERS.find(({ parsers }) => parsers.test(parserId(spec.logParser)));
  if (!runner || grade.read.statuses.size === 0) return undefined;
  const passed = runner.passed(grade.read.fallback ? withoutAnsi(grade.read.log) : section());
  const named = [...grade.read.statuses.values()].filter((status) => status === 'PASSED').length;
  if (passed === undefined)
    return finding(
      'forged_output',
      'tests are reported as passed, but the test runner never printed its summary',
      `${named} passed by name`,
    );
  if (named <= passed) return undefined;
  return finding(
    'forged_output',
    'more tests are reported as passed than the test runner counted',
    `${named} passed by name, ${passed} counted`,
  );
}

function overruledTests(spec: GradeSpec, grade: Grade): PatchDoubt | undefined {
  const { statuses } = grade.read;
  if (!(statuses instanceof StatusMap)) return undefined;
  const expected = [...spec.failToPass, ...spec.passToPass].filter((name) => statuses.overruled.has(name));
  if (expected.length === 0) return undefined;
  return finding('forged_output', 'tests are first reported as failed and then as passed', few(expected));
}

function countOf(log: string, mark: string): number {
  let count = 0;
  for (let at = log.indexOf(mark); at >= 0; at = log.indexOf(mark, at + mark.length)) count++;
  return count;
}

function markers(log: string): PatchDoubt | undefined {
  const [starts, ends] = [countOf(log, MARK.start), countOf(log, MARK.end)];
  if (starts <= 1 && ends <= 1) return undefined;
  return finding(
    'forged_output',
    'the markers around the test output appear more than once',
    `${starts} start, ${ends} end`,
  );
}

/** Tests of a test runner print what an inner run failed. The last summary is that of the run which gave the exit code. */
function failedInside(log: string): boolean {
  const last = log.lastIndexOf(' in ', log.lastIndexOf('s =') < 0 ? undefined : log.lastIndexOf('s ='));
  return last >= 0 && isGreen(lineAt(log, last));
}

function lineAt(log: string, at: number): string {
  const end = log.indexOf('\n', at);
  return log.slice(log.lastIndexOf('\n', at) + 1, end < 0 ? undefined : end);
}

const isGreen = (line: string): boolean =>
  line.length < 1000 &&
  PYTEST_SUMMARY.test(line) &&
  / \d+ passed/.test(line) &&
  !/ (?:failed|errors?)\b/.test(line);

function exitCode(grade: Grade, section: () => string): PatchDoubt | undefined {
  const { exitCode: code, notFound, statuses } = grade.read;
  if (notFound === 'exit_code_contradicts')
    return finding(
      'forged_output',
      'the tests ended with an error, but no test is reported as failed',
      `exit code ${code}`,
    );
  const failed = [...statuses].filter(([, status]) => status === 'FAILED').map(([name]) => name);
  if (code !== 0 || failed.length === 0 || failedInside(section())) return undefined;
  return finding(
    'exit_code_hides_failures',
    'tests are reported as failed, but the test command ended with exit code 0',
    few(failed),
    false,
  );
}

function evidence(spec: GradeSpec, grade: Grade): PatchDoubt | undefined {
  const { statuses, section, notFound } = grade.read;
  if (notFound === 'no_evidence' || notFound === 'no_markers')
    return finding(
      'no_evidence',
      'nothing in the log shows that the tests ran',
      notFound === 'no_markers' ? 'no markers' : 'no test result between the markers',
    );
  if (!grade.verdict.resolved) return undefined;
  if (spec.evalType === 'fail_only') {
    if (statuses.size > 0 || suiteRan(section)) return undefined;
    return finding(
      'no_evidence',
      'absent tests count as passed here, and nothing between the markers shows that the suite ran',
      'no summary',
    );
  }
  const passed = new Set(grade.verdict.tests_status?.FAIL_TO_PASS.success);
  const silent = spec.failToPass.filter((name) => !passed.has(name));
  if (silent.length === 0) return undefined;
  return finding(
    'no_evidence',
    'tests that had to pass were skipped or ended in a way that counts as nothing',
    few(silent),
  );
}

/** Nothing of this is known of a saved log. */
const SAVED: DoubtedRun = { omittedBytes: 0, scriptKept: true, scriptEnded: true, limitsMet: '' };

export function examine(spec: GradeSpec, patch: string, grade: Grade, run: Partial<DoubtedRun> = {}) {
  const { log } = grade.read;
  const section = once(() => withoutAnsi(grade.read.section));
  const findings = compact([
    markers(log),
    exitCode(grade, section),
    runnerSummary(spec, grade, section),
    overruledTests(spec, grade),
    ...doubtfulPaths(spec, patch),
    ...doubtfulText(spec, patch),
    grade.read.notFound !== 'no_markers' && testFiles(spec, patch, log),
    testsOfPatch(spec, patch, grade),
    evidence(spec, grade),
    ...runDoubts({ ...SAVED, ...run }),
  ]);
  const suspicion: readonly GradeSuspicion[] = findings.map((found) => ({ ...found, inferred: true }));
  return { suspicion, resolvedStrict: grade.verdict.resolved && !findings.some(({ strict }) => strict) };
}
