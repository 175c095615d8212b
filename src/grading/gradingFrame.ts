/**
 * The frame of every grading: a fresh container, the lines of run_instance.log, and an outcome for each way to fail. Every failure of
 * an instance is a result; only an interruption by the caller's signal is thrown (observed: tests/suites/sweBench/evaluate.test.ts).
 */

import { z } from 'zod';
import { type ContainerNeeds, withGivenVariables } from '../base/containerNeeds.ts';

import { sha256 } from '../base/sha256.ts';
import { errorText } from '../base/text/errorText.ts';
import type { Environment, EnvironmentFactory, Owner, StartRequest } from '../environment/environment.ts';
import { EnvironmentError, isLoss } from '../environment/environment.ts';
import type { InstanceReport } from '../formats/harness/instanceReport.ts';
import type { RunLogLine } from '../formats/harness/logFolders.ts';
import type { Outcome } from '../outcome.ts';
import { UserModuleError } from '../userModule.ts';
import type { GradeSuspicion } from './doubts/doubts.ts';
import { finding, limitMet } from './doubts/patchDoubts.ts';
import type { Given } from './given.ts';
import { type GradingConfig, type GradingLimits, limitsOf } from './gradingConfig.ts';
import type { HarnessVersion } from './parsers/logParser.ts';
import type { ParserRegistry } from './parsers/parserRegistry.ts';
import type { TestRun } from './patchAndTests.ts';

export interface GradeRequest {
  /** The patch as submitted, byte for byte. */
  readonly patch: string | null;
  /** The kept end state of the agent's container, where the suite keeps it (`imagesOfWork`); absent for a prediction from a file. */
  readonly work?: string | undefined;
  /** The trajectory in the format that tests may read; absent where it is not known. */
  readonly trajectory?: (() => Promise<Uint8Array>) | undefined;
  /** Made with `gradingEnvironment`; every start is a new container. */
  readonly factory: EnvironmentFactory;
  readonly config: Pick<GradingConfig, 'timeout' | 'network' | 'memory' | 'pids_limit' | 'cpus'>;
  readonly owner: Owner;
  /** The open network of the arm (`environment.network`), for tasks whose tests ask for one; absent where it names none. */
  readonly openNetwork?: string | undefined;
  /** Absent: nothing is. */
  readonly given?: Given | undefined;
  readonly parsers?: ParserRegistry;
  /** The grading ran before and asked for this repetition with nothing beside it: a second failure is the prediction's doing. */
  readonly alone?: boolean;
  readonly signal?: AbortSignal | undefined;
  readonly onPhase?: ((phase: string) => void) | undefined;
  readonly onConnection?: StartRequest['onConnection'];
  readonly now?: () => Date;
}

export interface EvaluationResult {
  readonly instanceId: string;
  readonly outcome: Outcome;
  /** The harness's verdict; null where the harness writes no report. */
  readonly resolved: boolean | null;
  readonly resolvedStrict: boolean | null;
  /** Between 0 and 1, where the rules of the suite give one; `rewards` has all of them by name. */
  readonly reward?: number;
  readonly rewards?: Readonly<Record<string, number>>;
  /** The report.json of the harness, or null where it writes none. */
  readonly report: InstanceReport | null;
  /** Test output as in test_output.txt; null when the tests were not started. */
  readonly log: string | null;
  /** The script that ran (eval.sh). */
  readonly script: string;
  /** Lines of run_instance.log. */
  readonly runLog: readonly RunLogLine[];
  readonly applyMethod: string | null;
  /** The exit code of the test command where the script records it, else of the script. */
  readonly exitCode: number | null;
  readonly infraReason: string | null;
  readonly suspicion: readonly GradeSuspicion[];
  readonly errorMessage: string | null;
  readonly durationMs: number;
  readonly imageDigest: string | null;
  readonly network: GradingConfig['network'];
  /** The limits of the container; null when none was started. */
  readonly limits: GradingLimits | null;
  readonly harness: HarnessVersion;
  readonly specHash: string;
  readonly patchSha256: string;
  readonly startedAt: Date;
  /** The tests ran into the deadline, ended their container, or were cut off: evaluate once more with nothing beside it before believing that. */
  readonly repeatAlone: boolean;
  /** The container engine was away: this says nothing about the prediction, and is no verdict. */
  readonly engineLost?: boolean;
}

interface GradingPlan {
  /** The hash of everything that decides the verdict: another hash asks for another grading. */
  readonly specHash: string;
  grade(request: GradeRequest): Promise<EvaluationResult>;
}

export type PlannedGrading =
  | { readonly ok: true; readonly plan: GradingPlan }
  /** The row cannot be graded here; the reason is a sentence with its id. */
  | { readonly ok: false; readonly reason: string };

export const patchHash = (patch: string | null): string => sha256(patch ?? '');

/** The result of the work in the container; the frame adds the rest. */
export type GradingEnd = Partial<EvaluationResult> & Pick<EvaluationResult, 'outcome'>;

export interface GradingFrame {
  readonly instanceId: string;
  readonly image: string;
  readonly container?: ContainerNeeds | undefined;
  readonly putBack?: StartRequest['putBack'];
  readonly script: string;
  readonly harness: HarnessVersion;
  readonly specHash: string;
  readonly request: GradeRequest;
  /** False for a prediction that is never run: it is `empty_patch`. The harness never runs an empty one. */
  readonly runs?: boolean;
}

/** Collects the lines of run_instance.log while an instance is graded. */
export type RunLog = Record<'info' | 'warn' | 'error', (message: string) => void>;

export async function inFreshContainer(
  frame: GradingFrame,
  work: (environment: Environment, log: RunLog) => Promise<GradingEnd>,
): Promise<EvaluationResult> {
  const { instanceId, image, container, putBack, script, harness, specHash, request } = frame;
  const { patch, config, owner, signal, onPhase, onConnection, now = () => new Date() } = request;
  const startedAt = now();
  const began = performance.now();
  const runLog: RunLogLine[] = [];
  const clean = (text: string): string => request.given?.clean(text) ?? text;
  const cleaned = (text: string | null | undefined): string | null => (text ? clean(text) : (text ?? null));
  const add = (level: RunLogLine['level']) => (message: string) =>
    void runLog.push({ at: now(), level, message: clean(message) });
  const log: RunLog = { info: add('INFO'), warn: add('WARNING'), error: add('ERROR') };
  let environment: Environment | undefined;
  const result = (ending: GradingEnd): EvaluationResult => ({
    instanceId,
    script,
    harness,
    specHash,
    resolved: null,
    resolvedStrict: null,
    report: null,
    applyMethod: null,
    exitCode: null,
    infraReason: null,
    network: config.network,
    patchSha256: patchHash(patch),
    repeatAlone: false,
    startedAt,
    limits: environment ? limitsOf(config) : null,
    imageDigest: environment?.info.imageDigest ?? null,
    ...ending,
    log: cleaned(ending.log),
    errorMessage: cleaned(ending.errorMessage),
    suspicion: (ending.suspicion ?? []).map((one) => ({ ...one, evidence: clean(one.evidence) })),
    runLog,
    durationMs: Math.round(performance.now() - began),
  });
  if (!(frame.runs ?? patch)) return result({ outcome: 'empty_patch' });

  let id = '';
  try {
    signal?.throwIfAborted();
    log.info(`Creating container for ${instanceId}...`);
    environment = await request.factory.start({
      instanceId,
      image,
      owner,
      signal,
      onPhase,
      onConnection,
      ...(container && {
        container: withGivenVariables(
          { openNetwork: request.openNetwork, ...container },
          request.given?.variables,
        ),
      }),
      ...(putBack && { putBack }),
    });
    id = environment.info.containerId ?? environment.info.kind;
    log.info(`Container for ${instanceId} created: ${id}`);
    log.info(`Container for ${instanceId} started: ${id}`);
    return result(await work(environment, log));
  } catch (error) {
    signal?.throwIfAborted();
    const ending = brokenEnding(error, request.alone);
    const errorMessage = `${instanceId}: ${ending.errorMessage}`;
    log.error(`Error in evaluating model for ${instanceId}: ${errorMessage}`);
    return result({ ...ending, errorMessage });
  } finally {
    if (environment) {
      log.info(`Attempting to stop container ${id}...`);
      await environment.close();
      log.info(`Container ${id} removed.`);
    }
  }
}

/** The outcome of a prediction whose environment broke. `alone`: it ran before, and now again with nothing beside it. */
function brokenEnding(error: unknown, alone = false): GradingEnd {
  if (!(error instanceof EnvironmentError))
    return {
      outcome: 'infra',
      infraReason: error instanceof UserModuleError ? 'config_invalid' : 'internal_error',
      errorMessage: `grading failed: ${errorText(error)}`,
    };
  const { fromWithin, message: errorMessage } = error;
  const oom = error.code === 'died' && error.sub === 'oom';
  const suspicion = oom
    ? [{ ...limitMet('memory limit reached, and the container ended'), inferred: true }]
    : [];
  // A prediction that meets a limit beside others, or tells a strange end, may be a victim of them; one that does so again alone is not (observed:
  // tests/suites/sweBench/evaluate.test.ts).
  const doubtful = oom || error.sub === 'forged';
  if (fromWithin && (alone || !doubtful)) {
    // As missing it would be out of the count, and the patch's author chose this end.
    const says = 'what ran with the patch ended its container, also when it was repeated';
    return {
      outcome: 'invalid',
      resolved: false,
      resolvedStrict: false,
      infraReason: oom ? 'oom' : null,
      suspicion: [...suspicion, { ...finding('ended_environment', says, errorMessage), inferred: true }],
      errorMessage,
      repeatAlone: true,
    };
  }
  const engineLost = isLoss(error);
  return {
    outcome: 'infra',
    infraReason: oom ? 'oom' : error.code,
    suspicion,
    errorMessage,
    repeatAlone: engineLost || fromWithin,
    engineLost,
  };
}

export function timedOutEnding(instanceId: string, run: TestRun, timeoutS: number): GradingEnd {
  return {
    outcome: run.oomKilled ? 'infra' : 'timeout',
    infraReason: run.oomKilled ? 'oom' : 'tests_timed_out',
    repeatAlone: !run.oomKilled,
    suspicion: run.limitsMet === '' ? [] : [{ ...limitMet(run.limitsMet), inferred: true }],
    log: run.log,
    errorMessage: `${instanceId}: the tests did not end within ${timeoutS} s; to give them longer, evaluate again with --timeout SECONDS --again -i ${instanceId}`,
  };
}

// An agent's work that is kept for its grading, as the record has it: the name of one image, or a JSON list of objects, each with the
// name of an image or null. Their other fields are the suite's.

const listed = z.array(z.object({ image: z.string().nullable() }));

/** The images of a work that was kept. Throws where the record cannot be read. */
export const imagesOfWork = (work: string): readonly string[] =>
  work.startsWith('[') ? listed.parse(JSON.parse(work)).flatMap(({ image }) => image ?? []) : [work];
