/**
 * Suites with rules of their own: files go into a fresh container, one script runs, and what it left is judged. The suite gives files,
 * script and judgement; everything around them is the same for all.
 */

import type { ContainerNeeds } from '../base/containerNeeds.ts';
import { sha256 } from '../base/sha256.ts';
import { shellWord } from '../base/text/shellWord.ts';
import { type Instance, imageOf } from '../dataset/instance.ts';
import { type Environment, placeTexts } from '../environment/environment.ts';
import type { TestLists, TestsStatus } from '../formats/harness/instanceReport.ts';
import type { GradeSuspicion } from './doubts/doubts.ts';
import { type DoubtedRun, doubtfulPaths, few, finding, runDoubts } from './doubts/patchDoubts.ts';
import { patchedPaths } from './doubts/patchPaths.ts';
import { doubtfulText } from './doubts/patchText.ts';
import {
  type EvaluationResult,
  type GradeRequest,
  type GradingEnd,
  inFreshContainer,
  type PlannedGrading,
  timedOutEnding,
} from './gradingFrame.ts';
import type { HarnessVersion } from './parsers/logParser.ts';
import { runTests, type TestRun } from './patchAndTests.ts';
import { touchedPaths } from './specs/spec.ts';

export type Judged =
  | { readonly ok: true; readonly verdict: SetVerdict; readonly log: string; readonly applied: boolean }
  | {
      readonly ok: false;
      /** `invalid`: the tests left no result. `ungradable`: the result has a shape that is not known here. */
      readonly outcome: 'invalid' | 'ungradable' | 'infra' | 'apply_failed';
      readonly message: string;
      readonly log: string;
      /** The suite itself counts it as not resolved; otherwise it is an error there. */
      readonly counts?: boolean;
    };

/** The tests left no result. */
export const lostResult = (message: string, log: string, counts = false): Judged => ({
  ok: false,
  outcome: 'invalid',
  message,
  log,
  counts,
});

type Lost = Extract<Judged, { ok: false }>;
type Files = Readonly<Record<string, string>>;

interface OwnRules {
  readonly instance: Instance;
  readonly container?: ContainerNeeds | undefined;
  readonly script: string;
  readonly cwd: string;
  /** Everything else that decides the verdict. */
  readonly decides: unknown;
  /** The files by absolute path inside; or why nothing can run. */
  files(patch: string, environment: Environment, request: GradeRequest): Files | Promise<Files | Lost>;
  judge(environment: Environment, run: TestRun, request: GradeRequest): Promise<Judged>;
}

const SETUP_TIMEOUT_S = 120;
const isLost = (found: Files | Lost): found is Lost => found.ok === false;

/** Text of a file inside, with its middle left out above the limit of outputs; undefined where there is none. */
export async function textInside(
  environment: Environment,
  path: string,
  signal: AbortSignal | undefined,
): Promise<{ readonly text: string; readonly whole: boolean } | undefined> {
  const { output, exitCode, omittedBytes } = await environment.execute(`cat ${shellWord(path)}`, {
    cwd: '/',
    timeoutS: SETUP_TIMEOUT_S,
    signal,
  });
  return exitCode === 0 ? { text: output, whole: omittedBytes === 0 } : undefined;
}

/**
 * The same doubts as for SWE-bench, but for those that read its logs. The suites put the row's tests in place themselves, after the patch or over
 * it.
 */
export function ownDoubts(
  { patch: goldPatch, test_patch: testPatch, FAIL_TO_PASS: failToPass, PASS_TO_PASS: passToPass }: Instance,
  patch: string,
  run: DoubtedRun,
): readonly GradeSuspicion[] {
  const own = new Set(touchedPaths(testPatch));
  const colliding = patchedPaths(patch).filter((path) => own.has(path));
  const row = { goldPatch, testPatch, failToPass, passToPass };
  return [
    ...doubtfulPaths(row, patch),
    ...doubtfulText(row, patch),
    ...(colliding.length > 0
      ? [finding('test_files_changed', "the patch changes the row's test files", few(colliding), false)]
      : []),
    ...runDoubts(run),
  ].map((found) => ({ ...found, inferred: true }));
}

/** The grading of one instance by rules of its own. */
export function planOwnRules(rules: OwnRules, harness: HarnessVersion = 'v5'): PlannedGrading {
  const { instance, container, script, cwd } = rules;
  const { instance_id: instanceId, FAIL_TO_PASS, PASS_TO_PASS } = instance;
  if (FAIL_TO_PASS.length + PASS_TO_PASS.length === 0)
    return notGradable(instance, 'it expects no tests at all');
  const image = imageOf(instance);
  const specHash = sha256(JSON.stringify({ image, script, FAIL_TO_PASS, PASS_TO_PASS, more: rules.decides }));

  async function work(request: GradeRequest, environment: Environment): Promise<GradingEnd> {
    const { config, signal, onPhase } = request;
    onPhase?.('apply');
    const patch = request.patch ?? '';
    const found = await rules.files(patch, environment, request);
    if (isLost(found)) return { outcome: found.outcome, errorMessage: `${instanceId}: ${found.message}` };
    const folders = new Set(
      Object.keys(found).map((path) => shellWord(path.slice(0, path.lastIndexOf('/')))),
    );
    const setup = { cwd: '/', timeoutS: SETUP_TIMEOUT_S, signal };
    await environment.execute(`mkdir -p ${[...folders].join(' ')}`, setup);
    await placeTexts(environment, '/', found, 0o755);

    onPhase?.('test');
    const run = await runTests(environment, script, { timeoutS: config.timeout, cwd, signal });
    const base = { script, exitCode: run.exitCode, repeatAlone: run.lost };
    if (run.timedOut) return { ...base, ...timedOutEnding(instanceId, run, config.timeout) };

    onPhase?.('grade');
    const judged = await rules.judge(environment, run, request);
    const { log } = judged;
    if (!judged.ok)
      return {
        ...base,
        log,
        errorMessage: `${instanceId}: ${judged.message}`,
        outcome: run.oomKilled ? 'infra' : judged.outcome,
        resolved: judged.counts ? false : null,
        infraReason: run.oomKilled ? 'oom' : null,
      };
    const { applied } = judged;
    const { resolved, status } = judged.verdict;
    const oom = !resolved && run.oomKilled;
    const suspicion = ownDoubts(instance, patch, run);
    return {
      ...base,
      log,
      resolved,
      suspicion,
      outcome: oom ? 'infra' : resolved ? 'resolved' : 'unresolved',
      resolvedStrict: resolved && !suspicion.some(({ strict }) => strict),
      report: {
        [instanceId]: {
          patch_is_None: false,
          patch_exists: true,
          patch_successfully_applied: applied,
          resolved,
          tests_status: status,
        },
      },
      infraReason: oom ? 'oom' : null,
      errorMessage: applied ? null : `${instanceId}: the patch does not apply; the tests ran without it`,
    };
  }

  const frame = { instanceId, image, container, script, harness, specHash };
  const grade = (request: GradeRequest): Promise<EvaluationResult> =>
    inFreshContainer({ ...frame, request }, (environment) => work(request, environment));
  return { ok: true, plan: { specHash, grade } };
}

export const notGradable = ({ instance_id }: Instance, why: string): PlannedGrading => ({
  ok: false,
  reason: `${instance_id} cannot be graded: ${why}`,
});

// Verdicts of suites that say which tests passed and which failed, as sets of names. Pure.

export interface Expected {
  readonly failToPass: readonly string[];
  readonly passToPass: readonly string[];
}

export interface SetVerdict {
  readonly resolved: boolean;
  readonly status: TestsStatus;
}

/** Expected tests by what a run says of them; one that it does not name has failed, unless `failed` says otherwise. */
export function listsOf(
  { failToPass, passToPass }: Expected,
  passed: (name: string) => boolean,
  failed: (name: string) => boolean = () => true,
): TestsStatus {
  const sort = (names: readonly string[]): TestLists => ({
    success: names.filter(passed),
    failure: names.filter((name) => !passed(name) && failed(name)),
  });
  return {
    FAIL_TO_PASS: sort(failToPass),
    PASS_TO_PASS: sort(passToPass),
    FAIL_TO_FAIL: sort([]),
    PASS_TO_FAIL: sort([]),
  };
}

/** Every expected test has passed, and a test that is missing has not. */
export function allPassed(expected: Expected, passed: ReadonlySet<string>): SetVerdict {
  const status = listsOf(expected, (name) => passed.has(name));
  return { resolved: status.FAIL_TO_PASS.failure.length + status.PASS_TO_PASS.failure.length === 0, status };
}
