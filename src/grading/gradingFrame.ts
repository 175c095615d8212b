/**
 * What every grading has around it: a fresh container, the lines of run_instance.log, and an outcome for each way to fail. Every failure of
 * an instance is a result; only an interruption by the caller's signal is thrown.
 */
import { z } from 'zod';
import type { ContainerNeeds } from '../base/containerNeeds.ts';
import { sha256 } from '../base/sha256.ts';
import type { Environment, EnvironmentFactory, Owner } from '../environment/environment.ts';
import type { InstanceReport } from '../formats/harness/instanceReport.ts';
import type { RunLogLine } from '../formats/harness/logFolders.ts';
import type { Outcome } from '../outcome.ts';
import type { GradeSuspicion } from './doubts/doubts.ts';
import { type GradingConfig, type GradingLimits, limitsOf } from './gradingConfig.ts';
import { brokenEnding } from './infra.ts';
import type { HarnessDialect } from './parsers/logParser.ts';
import type { ParserRegistry } from './parsers/parserRegistry.ts';

export interface GradeRequest {
  /** As submitted, byte for byte. */
  readonly patch: string | null;
  /** What was kept of the container that the agent left, where the suite keeps it (`imagesOfWork`); absent for a prediction from a file. */
  readonly work?: string | undefined;
  /** Made with `gradingEnvironment`; every start is a new container. */
  readonly factory: EnvironmentFactory;
  readonly config: Pick<GradingConfig, 'timeout' | 'network' | 'memory' | 'pids_limit' | 'cpus'>;
  readonly owner: Owner;
  readonly parsers?: ParserRegistry;
  /** It ran before and asked for this repetition with nothing beside it: what goes wrong again is the prediction's doing. */
  readonly alone?: boolean;
  readonly signal?: AbortSignal | undefined;
  readonly onPhase?: ((phase: string) => void) | undefined;
  readonly now?: () => Date;
}

export interface EvaluationResult {
  readonly instanceId: string;
  readonly outcome: Outcome;
  /** The dialect's verdict; null where the harness writes no report. */
  readonly resolved: boolean | null;
  readonly resolvedStrict: boolean | null;
  /** Between 0 and 1, where the rules of the suite give one; `rewards` has all of them by name. */
  readonly reward?: number;
  readonly rewards?: Readonly<Record<string, number>>;
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
  readonly dialect: HarnessDialect;
  readonly specHash: string;
  readonly patchSha256: string;
  readonly startedAt: Date;
  /** The tests ran into the deadline, ended their container, or were cut off: evaluate once more with nothing beside it before believing that. */
  readonly repeatAlone: boolean;
  /** The container engine was away: this says nothing about the prediction, and is no verdict. */
  readonly engineLost?: boolean;
}

export interface GradingPlan {
  /** Of everything that decides the verdict: another hash asks for another grading. */
  readonly specHash: string;
  grade(request: GradeRequest): Promise<EvaluationResult>;
}

export type PlannedGrading =
  | { readonly ok: true; readonly plan: GradingPlan }
  /** The row cannot be graded here; the reason is a sentence with its id. */
  | { readonly ok: false; readonly reason: string };

export const patchHash = (patch: string | null): string => sha256(patch ?? '');

/** What the work in the container says; the frame adds the rest. */
export type GradingEnd = Partial<EvaluationResult> & Pick<EvaluationResult, 'outcome'>;

export interface GradingFrame {
  readonly instanceId: string;
  readonly image: string;
  readonly container?: ContainerNeeds | undefined;
  readonly script: string;
  readonly dialect: HarnessDialect;
  readonly specHash: string;
  readonly request: GradeRequest;
  /** False for a prediction that is never run: it is `empty_patch`. */
  readonly runs: boolean;
}

export async function inFreshContainer(
  frame: GradingFrame,
  work: (environment: Environment, log: RunLog) => Promise<GradingEnd>,
): Promise<EvaluationResult> {
  const { instanceId, request } = frame;
  const { signal } = request;
  const now = request.now ?? (() => new Date());
  const startedAt = now();
  const began = performance.now();
  const log = createRunLog(now);
  let environment: Environment | undefined;
  const result = (ending: GradingEnd): EvaluationResult => ({
    ...{ ...unknownResult(frame), startedAt },
    limits: environment ? limitsOf(request.config) : null,
    imageDigest: environment?.info.imageDigest ?? null,
    ...ending,
    runLog: log.lines,
    durationMs: Math.round(performance.now() - began),
  });
  if (!frame.runs) return result({ outcome: 'empty_patch' });

  let container = '';
  try {
    signal?.throwIfAborted();
    log.info(`Creating container for ${instanceId}...`);
    environment = await request.factory.start({
      ...{ instanceId, image: frame.image, owner: request.owner, signal, onPhase: request.onPhase },
      ...(frame.container && { container: frame.container }),
    });
    container = environment.info.containerId ?? environment.info.kind;
    log.info(`Container for ${instanceId} created: ${container}`);
    log.info(`Container for ${instanceId} started: ${container}`);
    return result(await work(environment, log));
  } catch (error) {
    signal?.throwIfAborted();
    const ending = brokenEnding(instanceId, error, request.alone);
    log.error(`Error in evaluating model for ${instanceId}: ${ending.errorMessage}`);
    return result(ending);
  } finally {
    if (environment) {
      log.info(`Attempting to stop container ${container}...`);
      await environment.close();
      log.info(`Container ${container} removed.`);
    }
  }
}

const unknownResult = ({ instanceId, script, dialect, specHash, request }: GradingFrame) => ({
  ...{ instanceId, script, dialect, specHash },
  resolved: null,
  resolvedStrict: null,
  report: null,
  log: null,
  applyMethod: null,
  exitCode: null,
  infraReason: null,
  suspicion: [],
  errorMessage: null,
  network: request.config.network,
  patchSha256: patchHash(request.patch),
  repeatAlone: false,
});

// Collects the lines of run_instance.log while an instance is graded.

export interface RunLog {
  readonly lines: readonly RunLogLine[];
  info(message: string): void;
  warn(message: string): void;
  error(message: string): void;
}

export function createRunLog(now: () => Date): RunLog {
  const lines: RunLogLine[] = [];
  const add = (level: RunLogLine['level']) => (message: string) =>
    void lines.push({ at: now(), level, message });
  return { lines, info: add('INFO'), warn: add('WARNING'), error: add('ERROR') };
}

// What is kept of an agent's work for its grading, as the record has it: the name of one image, or a JSON list of objects, each with the
// name of an image or null. What else they hold is the suite's.

const listed = z.array(z.object({ image: z.string().nullable() }));

/** All images of a work that was kept. Throws where the record cannot be read. */
export const imagesOfWork = (work: string): readonly string[] =>
  work.startsWith('[') ? listed.parse(JSON.parse(work)).flatMap(({ image }) => image ?? []) : [work];
