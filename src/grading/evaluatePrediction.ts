/**
 * One prediction, evaluated in a fresh environment: patch, script, log, verdict. Every failure of an instance is a result;
 * only an interruption by the caller's signal is thrown.
 */
import { sha256 } from '../base/sha256.ts';
import type { Environment, EnvironmentFactory, Owner } from '../environment/environment.ts';
import type { RunLogLine } from '../formats/harness/runLogText.ts';
import type { InstanceReport } from '../formats/reports/instanceReport.ts';
import type { Outcome } from '../outcome.ts';
import { ALREADY_APPLIED, type Applied, applyPatch, PATCH_PATH } from './applyPatch.ts';
import { type FetchAsset, fetchAsset, stageAssets, withRestore } from './assets.ts';
import { createRunLog, type RunLog } from './createRunLog.ts';
import { examine, type GradeSuspicion } from './doubts.ts';
import { gradeSafely } from './grade.ts';
import { type GradingConfig, type GradingLimits, limitsOf } from './gradingConfig.ts';
import { brokenEnding, classifyLog } from './infra.ts';
import { readingGit } from './ownGit.ts';
import { findParser, officialRegistry, type ParserRegistry } from './parsers/parserRegistry.ts';
import { limitMet } from './patchDoubts.ts';
import { MARK } from './readLog.ts';
import { runTests, type TestRun } from './runTests.ts';
import type { GradeSpec } from './specs/spec.ts';

export interface EvaluationRequest {
  readonly spec: GradeSpec;
  /** As submitted, byte for byte. */
  readonly patch: string | null;
  /** Made with `gradingEnvironment`; every start is a new container from the row's image. */
  readonly factory: EnvironmentFactory;
  readonly config: Pick<GradingConfig, 'timeout' | 'network' | 'memory' | 'pids_limit' | 'cpus'>;
  readonly owner: Owner;
  readonly parsers?: ParserRegistry;
  /** It ran before and asked for this repetition with nothing beside it: what goes wrong again is the prediction's doing. */
  readonly alone?: boolean;
  readonly signal?: AbortSignal | undefined;
  readonly onPhase?: ((phase: string) => void) | undefined;
  readonly fetchAsset?: FetchAsset;
  readonly now?: () => Date;
}

export interface EvaluationResult {
  readonly instanceId: string;
  readonly outcome: Outcome;
  /** The dialect's verdict; null where the harness writes no report. */
  readonly resolved: boolean | null;
  readonly resolvedStrict: boolean | null;
  /** What the harness writes as report.json, or null where it writes none. */
  readonly report: InstanceReport | null;
  /** Test output as in test_output.txt; null when the tests were not started. */
  readonly log: string | null;
  /** The script that ran (eval.sh). */
  readonly script: string;
  /** Lines of run_instance.log. */
  readonly runLog: readonly RunLogLine[];
  readonly applyMethod: string | null;
  /** Of the test command where the script records it, else of the script. */
  readonly exitCode: number | null;
  readonly infraReason: string | null;
  readonly suspicion: readonly GradeSuspicion[];
  readonly errorMessage: string | null;
  readonly durationMs: number;
  readonly imageDigest: string | null;
  readonly network: GradingConfig['network'];
  /** Of the container; null when none was started. */
  readonly limits: GradingLimits | null;
  readonly dialect: GradeSpec['dialect'];
  readonly specHash: string;
  readonly patchSha256: string;
  readonly startedAt: Date;
  /** The tests ran into the deadline, ended their container, or were cut off: evaluate once more with nothing beside it before believing that. */
  readonly repeatAlone: boolean;
  /** The container engine was away: this says nothing about the prediction, and is no verdict. */
  readonly engineLost?: boolean;
}

export const patchHash = (patch: string | null): string => sha256(patch ?? '');

type Ending = Partial<EvaluationResult> & Pick<EvaluationResult, 'outcome'>;

const DIFF = readingGit('-c core.fileMode=false diff --no-ext-diff --no-textconv');
const PATCH_TIMEOUT_S = 600;

/** `1_234.50`, as Python's `{:_.2f}`. */
const grouped = (value: number): string => value.toFixed(2).replace(/\B(?=(?:\d{3})+\.)/g, '_');

/** Everything between a started environment and a verdict. */
async function inEnvironment(
  environment: Environment,
  request: EvaluationRequest,
  log: RunLog,
): Promise<Ending> {
  const { spec, config, signal } = request;
  const cwd = spec.workdir;
  const at = { cwd, timeoutS: PATCH_TIMEOUT_S, signal };
  const diff = async () => (await environment.execute(DIFF, at)).output.trim();

  request.onPhase?.('apply');
  await environment.putFile(PATCH_PATH, request.patch ?? '');
  log.info(`Intermediate patch for ${spec.instanceId} written to patch.diff, now applying to container...`);
  const applied = await applyPatch(environment, { dialect: spec.dialect, ...at });
  for (const method of applied.failed) log.info(`Failed to apply patch to container: ${method}`);
  if (applied.method === null) return applyFailed(request, applied, log);
  log.info(
    applied.method === ALREADY_APPLIED
      ? `${MARK.applied}: verified already applied`
      : `${MARK.applied}:\n${applied.output}`,
  );
  const before = await diff();
  log.info(`Git diff before:\n${before}`);

  const staged = await stageAssets(environment, spec.assets, request.fetchAsset ?? fetchAsset, signal);
  for (const line of staged.missing) log.warn(line);
  const script = withRestore(spec.scriptToRun, staged.restore);

  request.onPhase?.('test');
  log.info(`Eval script for ${spec.instanceId} written to eval.sh; copying to container...`);
  const run = await runTests(environment, script, {
    timeoutS: config.timeout,
    cwd,
    signal,
  });
  log.info(`Test runtime: ${grouped(run.durationMs / 1000)} seconds`);
  log.info(`Test output for ${spec.instanceId} written to test_output.txt`);
  const base = {
    applyMethod: applied.method,
    script,
    log: run.log,
    exitCode: run.exitCode,
    repeatAlone: run.lost,
  } as const;
  if (run.timedOut) {
    log.info(`Test timed out after ${config.timeout} seconds.`);
    return { ...base, ...timedOut(request, run) };
  }
  const after = await diff();
  log.info(`Git diff after:\n${after}`);
  if (after !== before) log.info('Git diff changed after running eval script');
  request.onPhase?.('grade');
  return { ...base, ...verdictOf(request, run, log) };
}

function applyFailed(request: EvaluationRequest, applied: Applied, log: RunLog): Ending {
  const { spec, patch } = request;
  log.info(`${MARK.applyFailed}:\n${applied.output}`);
  const cut =
    patch?.endsWith('\n') === false ? ' The patch has no line end at its end, so it may be cut off.' : '';
  return {
    outcome: 'apply_failed',
    errorMessage: `${spec.instanceId}: the patch does not apply, tried ${applied.failed.join('; ')}.${cut} Last output: ${applied.output.trim().slice(-2000)}`,
  };
}

function timedOut({ spec, config: { timeout: timeoutS }, alone }: EvaluationRequest, run: TestRun): Ending {
  return {
    outcome: run.oomKilled && !alone ? 'infra' : 'timeout',
    infraReason: run.oomKilled ? 'oom' : 'tests_timed_out',
    repeatAlone: true,
    suspicion: run.limitsMet === '' ? [] : [{ ...limitMet(run.limitsMet), inferred: true }],
    errorMessage: `${spec.instanceId}: the tests did not end within ${timeoutS} s; to give them longer, evaluate again with --timeout SECONDS --again -i ${spec.instanceId}`,
  };
}

function verdictOf(request: EvaluationRequest, run: TestRun, log: RunLog): Ending {
  const { spec, patch } = request;
  const parser = findParser(request.parsers ?? officialRegistry(), spec.logParser);
  if (!parser) return { outcome: 'ungradable', errorMessage: `no log parser is called "${spec.logParser}"` };
  log.info(`Grading answer for ${spec.instanceId}...`);
  const graded = gradeSafely(spec, run.log, parser, spec.dialect);
  if (!graded.ok) return { outcome: 'invalid', errorMessage: graded.message };

  const { grade } = graded;
  const { verdict, read } = grade;
  const { omittedBytes, scriptKept, scriptEnded, limitsMet } = run;
  const facts = { omittedBytes, scriptKept, scriptEnded, limitsMet };
  const examined = examine({ spec, patch: patch ?? '', grade, ...facts });
  log.info(
    `report: ${JSON.stringify({ [spec.instanceId]: verdict })}\nResult for ${spec.instanceId}: resolved: ${verdict.resolved ? 'True' : 'False'}`,
  );
  const common = {
    resolved: verdict.resolved,
    resolvedStrict: examined.resolvedStrict,
    report: { [spec.instanceId]: verdict },
    suspicion: examined.suspicion,
    exitCode: read.exitCode ?? run.exitCode,
  } as const;
  if (verdict.resolved) return { ...common, outcome: 'resolved' };
  if (run.oomKilled)
    return {
      ...common,
      // Alone it counts, as by the harness: else a patch could leave the count by asking for memory.
      outcome: request.alone ? (read.notFound === undefined ? 'unresolved' : 'invalid') : 'infra',
      infraReason: 'oom',
      repeatAlone: true,
      errorMessage: `${spec.instanceId}: a process was killed by the memory limit while the tests ran; raise grading.memory where the tests need more`,
    };
  if (read.notFound === undefined) return { ...common, outcome: 'unresolved' };
  return {
    ...common,
    // The patch forged the log itself; the other reasons say nothing about the patch.
    outcome: read.notFound === 'exit_code_contradicts' ? 'unresolved' : 'invalid',
    infraReason: verdict.infra_failure_reason ?? classifyLog(grade.read.log)?.reason ?? null,
    errorMessage: `${spec.instanceId}: the log holds no usable test results (${NOT_FOUND[read.notFound]})`,
  };
}

const NOT_FOUND = {
  bad_mark: 'it says that patching, resetting or the tests themselves failed',
  no_markers: 'the markers around the test output are missing, so the script did not get that far',
  no_evidence: 'nothing shows that the tests ran',
  exit_code_contradicts: 'the test command failed but no test did',
} as const;

export async function evaluatePrediction(request: EvaluationRequest): Promise<EvaluationResult> {
  const { spec, patch, signal } = request;
  const now = request.now ?? (() => new Date());
  const startedAt = now();
  const began = performance.now();
  const log = createRunLog(now);
  let imageDigest: string | null = null;
  let environment: Environment | undefined;
  const result = (ending: Ending): EvaluationResult => ({
    instanceId: spec.instanceId,
    resolved: null,
    resolvedStrict: null,
    report: null,
    log: null,
    script: spec.scriptToRun,
    applyMethod: null,
    exitCode: null,
    infraReason: null,
    suspicion: [],
    errorMessage: null,
    network: request.config.network,
    limits: environment ? limitsOf(request.config) : null,
    dialect: spec.dialect,
    specHash: spec.specHash,
    patchSha256: patchHash(patch),
    repeatAlone: false,
    startedAt,
    imageDigest,
    ...ending,
    runLog: log.lines,
    durationMs: Math.round(performance.now() - began),
  });
  // The harness never runs an empty prediction.
  if (patch === null || patch === '') return result({ outcome: 'empty_patch' });

  let container = '';
  try {
    signal?.throwIfAborted();
    log.info(`Creating container for ${spec.instanceId}...`);
    environment = await request.factory.start({
      instanceId: spec.instanceId,
      image: spec.image,
      owner: request.owner,
      signal,
      onPhase: request.onPhase,
    });
    imageDigest = environment.info.imageDigest ?? null;
    container = environment.info.containerId ?? environment.info.kind;
    log.info(`Container for ${spec.instanceId} created: ${container}`);
    log.info(`Container for ${spec.instanceId} started: ${container}`);
    return result(await inEnvironment(environment, request, log));
  } catch (error) {
    signal?.throwIfAborted();
    const ending = brokenEnding(spec.instanceId, error, request.alone);
    log.error(`Error in evaluating model for ${spec.instanceId}: ${ending.errorMessage}`);
    return result(ending);
  } finally {
    if (environment) {
      log.info(`Attempting to stop container ${container}...`);
      await environment.close();
      log.info(`Container ${container} removed.`);
    }
  }
}
