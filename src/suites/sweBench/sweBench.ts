/** SWE-bench, and whatever has rows of its form. A prediction is evaluated in a fresh environment: patch, eval script, log, verdict. */
import { ownEntry } from '../../base/isRecord.ts';
import { shellWord } from '../../base/text/shellWord.ts';
import type { Instance } from '../../dataset/instance.ts';
import type { Environment } from '../../environment/environment.ts';
import { examine } from '../../grading/doubts/doubts.ts';
import { gradeSafely } from '../../grading/grade.ts';
import {
  type EvaluationResult,
  type GradeRequest,
  type GradingEnd,
  inFreshContainer,
  type RunLog,
  timedOutEnding,
} from '../../grading/gradingFrame.ts';
import { findParser, officialRegistry } from '../../grading/parsers/parserRegistry.ts';
import {
  ALREADY_APPLIED,
  type Applied,
  applyPatch,
  PATCH_PATH,
  readingGit,
  runTests,
  type TestRun,
} from '../../grading/patchAndTests.ts';
import { classifyLog, MARK } from '../../grading/readLog.ts';
import { type GradeSpec, resolveGradeSpec } from '../../grading/specs/spec.ts';
import type { Suite } from '../suite.ts';

/**
 * Top-level packages of the repositories of SWE-bench: those that its images must be able to import, where the name differs from the repository's.
 */
const PACKAGES: Readonly<Record<string, string>> = {
  'astropy/astropy': 'astropy',
  'django/django': 'django',
  'matplotlib/matplotlib': 'matplotlib',
  'mwaskom/seaborn': 'seaborn',
  'pallets/flask': 'flask',
  'psf/requests': 'requests',
  'pydata/xarray': 'xarray',
  'pylint-dev/pylint': 'pylint',
  'pytest-dev/pytest': 'pytest',
  'scikit-learn/scikit-learn': 'sklearn',
  'sphinx-doc/sphinx': 'sphinx',
  'sympy/sympy': 'sympy',
};

/** Other suites have tasks of the same repositories. */
export const packageOf = ({ repo }: Instance): string | undefined => ownEntry(PACKAGES, repo);

export const sweBench: Suite = {
  probes: packageOf,
  grading(instance, options) {
    const resolved = resolveGradeSpec(instance, options);
    if (!resolved.ok) return resolved;
    const { spec } = resolved;
    return {
      ok: true,
      plan: { specHash: spec.specHash, grade: (request) => evaluatePrediction({ ...request, spec }) },
    };
  },
};

export interface EvaluationRequest extends GradeRequest {
  readonly spec: GradeSpec;
  /** Default: from the address that the row gives. */
  readonly fetchAsset?: FetchAsset;
  /** Files beside the task on this machine; undefined where there are none. Throws where they have changed. */
  readonly ownAsset?: (path: string) => Uint8Array | undefined;
}

const DIFF = readingGit('-c core.fileMode=false diff --no-ext-diff --no-textconv');
const PATCH_TIMEOUT_S = 600;

/** `1_234.50`, as Python's `{:_.2f}`. */
const grouped = (value: number): string => value.toFixed(2).replace(/\B(?=(?:\d{3})+\.)/g, '_');

/** Everything between a started environment and a verdict. */
async function inEnvironment(
  environment: Environment,
  request: EvaluationRequest,
  log: RunLog,
): Promise<GradingEnd> {
  const { spec, config, signal } = request;
  const cwd = spec.workdir;
  const at = { cwd, timeoutS: PATCH_TIMEOUT_S, signal };
  const diff = async () => (await environment.execute(DIFF, at)).output.trim();

  request.onPhase?.('apply');
  await environment.putFile(PATCH_PATH, request.patch ?? '');
  log.info(`Intermediate patch for ${spec.instanceId} written to patch.diff, now applying to container...`);
  const applied = await applyPatch(environment, spec.suite ?? spec.harness, at);
  for (const method of applied.failed) log.info(`Failed to apply patch to container: ${method}`);
  if (applied.method === null) return applyFailed(request, applied, log);
  log.info(
    applied.method === ALREADY_APPLIED
      ? `${MARK.applied}: verified already applied`
      : `${MARK.applied}:\n${applied.output}`,
  );
  const before = await diff();
  log.info(`Git diff before:\n${before}`);

  const script = withRestore(spec.scriptToRun, await stageAssets(environment, request, log));

  request.onPhase?.('test');
  log.info(`Eval script for ${spec.instanceId} written to eval.sh; copying to container...`);
  const run = await runTests(environment, script, { timeoutS: config.timeout, cwd, signal });
  log.info(`Test runtime: ${grouped(run.durationMs / 1000)} seconds`);
  log.info(`Test output for ${spec.instanceId} written to test_output.txt`);
  const { log: output, exitCode, lost } = run;
  const base = { applyMethod: applied.method, script, log: output, exitCode, repeatAlone: lost };
  if (run.timedOut) {
    log.info(`Test timed out after ${config.timeout} seconds.`);
    return { ...base, ...timedOutEnding(spec.instanceId, run, config.timeout) };
  }
  const after = await diff();
  log.info(`Git diff after:\n${after}`);
  if (after !== before) log.info('Git diff changed after running eval script');
  request.onPhase?.('grade');
  return { ...base, ...verdictOf(request, run, log) };
}

function applyFailed(request: EvaluationRequest, applied: Applied, log: RunLog): GradingEnd {
  const { spec, patch } = request;
  log.info(`${MARK.applyFailed}:\n${applied.output}`);
  const cut =
    patch?.endsWith('\n') === false ? ' The patch has no line end at its end, so it may be cut off.' : '';
  return {
    outcome: 'apply_failed',
    errorMessage: `${spec.instanceId}: the patch does not apply, tried ${applied.failed.join('; ')}.${cut} Last output: ${applied.output.trim().slice(-2000)}`,
  };
}

function verdictOf(request: EvaluationRequest, run: TestRun, log: RunLog): GradingEnd {
  const { spec, patch } = request;
  const parser = findParser(request.parsers ?? officialRegistry(), spec.logParser);
  if (!parser) return { outcome: 'ungradable', errorMessage: `no log parser is called "${spec.logParser}"` };
  log.info(`Grading answer for ${spec.instanceId}...`);
  const graded = gradeSafely(spec, run.log, parser, spec.harness);
  if (!graded.ok) return { outcome: 'invalid', errorMessage: graded.message };

  const { grade } = graded;
  const { verdict, read } = grade;
  const examined = examine(spec, patch ?? '', grade, run);
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
      outcome: 'infra',
      infraReason: 'oom',
      errorMessage: `${spec.instanceId}: a process was killed by the memory limit while the tests ran; raise grading.memory where the tests need more`,
    };
  if (read.notFound === undefined) return { ...common, outcome: 'unresolved' };
  return {
    ...common,
    // The patch forged the log itself; the other reasons say nothing about the patch (observed: tests/grading/grade.test.ts).
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

export function evaluatePrediction(request: EvaluationRequest): Promise<EvaluationResult> {
  const { spec } = request;
  return inFreshContainer(
    {
      instanceId: spec.instanceId,
      image: spec.image,
      script: spec.scriptToRun,
      harness: spec.harness,
      specHash: spec.specHash,
      request,
    },
    (environment, log) => inEnvironment(environment, request, log),
  );
}

// Binary files of Multimodal rows: fetched by us, laid into the container, and copied into the tree just before the tests.

type FetchAsset = (url: string, signal?: AbortSignal) => Promise<Uint8Array>;

const FETCH_MS = 60_000;

const fetchAsset: FetchAsset = async (url, signal) => {
  const deadline = AbortSignal.timeout(FETCH_MS);
  const response = await fetch(url, { signal: signal ? AbortSignal.any([signal, deadline]) : deadline });
  if (!response.ok) throw new Error(`the server answered ${response.status}`);
  return new Uint8Array(await response.arrayBuffer());
};

const pathWord = (path: string) => (/^[\w./-]+$/.test(path) ? path : shellWord(path));

/** The script with commands put in just before the line of the start marker. */
export function withRestore(script: string, commands: readonly string[]): string {
  if (commands.length === 0) return script;
  const lines = script.split('\n');
  const start = lines.findIndex((line) => line.includes(MARK.start));
  if (start < 0) return `${script}\n${commands.join('\n')}`;
  return [...lines.slice(0, start), ...commands, ...lines.slice(start)].join('\n');
}

/**
 * Lays the files into the container. A file that cannot be fetched is told, and the tests run without it, as in the harness (observed:
 * tests/suites/sweBench/evaluate.test.ts). Returns the commands that copy them.
 */
async function stageAssets(
  environment: Environment,
  { spec: { assets }, fetchAsset: fetchOne = fetchAsset, ownAsset, signal }: EvaluationRequest,
  log: RunLog,
): Promise<string[]> {
  const restore: string[] = [];
  if (assets.length > 0) await environment.execute('mkdir -p /image_assets');
  for (const { path, url } of assets) {
    const flat = `/image_assets/${path.replaceAll('/', '__')}`;
    try {
      const own = ownAsset?.(path);
      if (own === undefined && url === undefined) throw new Error('the row gives no address');
      await environment.putFile(flat, own ?? (await fetchOne(url!, signal)));
      restore.push(`mkdir -p $(dirname ${pathWord(path)}) && cp ${pathWord(flat)} ${pathWord(path)}`);
    } catch (error) {
      signal?.throwIfAborted();
      log.warn(`asset ${path} is missing: ${(error as Error).message}`);
    }
  }
  return restore;
}
