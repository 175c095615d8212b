/** The grading of one prediction, in a fresh container: of a run that works, or of one that is only graded. */

import { VERSION } from '../../base/files/packageFile.ts';
import { errorText } from '../../base/text/errorText.ts';
import type { Redactor } from '../../base/text/redact.ts';
import type { Instance } from '../../dataset/instance.ts';
import type { EnvironmentFactory } from '../../environment/environment.ts';
import {
  createEnvironmentFactory,
  DEFAULT_ENVIRONMENT,
  environmentKindOf,
  ownKeysOf,
} from '../../environment/environments.ts';
import { currentOwner } from '../../environment/owner.ts';
import type { EngineWatch } from '../../environment/places/engineWatch.ts';
import type { EnsureImage } from '../../environment/places/imageJobs.ts';
import { interchangeWriter } from '../../formats/formats.ts';
import {
  GRADING_DOCKER_OPTIONS,
  type GradingConfig,
  gradingEnvironment,
} from '../../grading/gradingConfig.ts';
import {
  type EvaluationResult,
  type GradeRequest,
  imagesOfWork,
  patchHash,
} from '../../grading/gradingFrame.ts';
import type { ParserRegistry } from '../../grading/parsers/parserRegistry.ts';
import type { Store } from '../../store/open.ts';
import { attemptRecord } from '../../store/records/attemptBodies.ts';
import type { Gradable } from '../../store/records/evaluations.ts';
import { endedCalls } from '../../store/records/modelCalls.ts';
import type { ArmRow, RunRow } from '../../store/records/runs.ts';
import type { LedAttempt } from '../../suites/suite.ts';
import { needsOf, planGrading, rememberBuilds } from '../../suites/suites.ts';
import type { StopLadder } from '../control/stop.ts';
import type { RunEvents, TrialLabel } from '../events.ts';
import { recordedEnvironment } from '../plan/planRecord.ts';
import type { PlannedInstance, PlannedTrial } from '../plannedTrial.ts';
import { connectionRecord } from '../record/connectionRecord.ts';
import { writeGradedFiles } from '../record/verdicts.ts';
import type { OpenSuite } from './judge.ts';

/** The run that is graded: `evaluate` opens this alone. */
export interface GradedRun {
  /** The record of the results root. */
  readonly store: Store;
  /** The run's own row, as it was when this sitting began. */
  readonly row: RunRow;
  readonly grading: GradingConfig;
  /** DIR/<run>: where its exports go. */
  readonly dir: string;
  readonly redactor: Redactor;
  readonly events: RunEvents;
  readonly stop: StopLadder;
  /** Variables and a judge that tasks may have of this machine. */
  readonly suite: OpenSuite;
  readonly arms: ReadonlyMap<number, { readonly row: ArmRow }>;
  readonly instances: ReadonlyMap<number, PlannedInstance>;
  /** Absent where no engine is needed. */
  readonly engine: EngineWatch | undefined;
  /** Brings images for gradings; without it each grading gets its own. */
  readonly ensureGraded: EnsureImage | undefined;
}

export interface Verdict {
  readonly label: TrialLabel;
  /** False for an instance that cannot be graded: then nothing has run. */
  readonly gradable: boolean;
  readonly result: EvaluationResult;
}

export async function gradeTrial(
  run: GradedRun,
  parsers: ParserRegistry,
  factory: EnvironmentFactory,
  gradable: Gradable,
  signal: AbortSignal,
  alone: boolean,
): Promise<Verdict> {
  const { row, grading, instances, arms, suite } = run;
  const { instance } = instances.get(gradable.instance_pk)!;
  const label: TrialLabel = {
    trialId: gradable.trial_id,
    instanceId: instance.instance_id,
    arm: arms.get(gradable.arm_id)!.row.name,
    epoch: gradable.epoch,
  };
  const planned = planGrading(instance, { harness: grading.harness, parsers });
  if (!planned.ok)
    return {
      label,
      gradable: false,
      result: ungradable(planned.reason, label.instanceId, gradable, grading),
    };
  const gone = servicesGone(instance, gradable, arms.get(gradable.arm_id)!.row);
  if (gone !== undefined)
    return {
      label,
      gradable: false,
      result: {
        ...ungradable(gone, label.instanceId, gradable, grading),
        outcome: 'infra',
        infraReason: 'services_gone',
      },
    };
  let broken: unknown;
  const result = await planned.plan.grade({
    ...openNetworkOf(arms.get(gradable.arm_id)!.row),
    patch: gradable.model_patch,
    ...(gradable.work_image !== null && { work: gradable.work_image }),
    trajectory: trajectoryOf(run, gradable.attempt_id),
    factory,
    given: suite.forTests({ ...label, attemptId: gradable.attempt_id }),
    config: grading,
    parsers,
    owner: currentOwner(row.name, `grade-${gradable.attempt_id}`, row.created_at),
    signal,
    alone,
    onConnection: connectionRecord(run, gradable.attempt_id, (error) => {
      broken ??= error;
    }),
  });
  if (broken !== undefined) throw broken;
  return { label, gradable: true, result };
}

/** The trajectory of the attempt, as far as the record has it. */
const trajectoryOf =
  ({ store }: Pick<GradedRun, 'store'>, attemptId: number) =>
  async (): Promise<Uint8Array> => {
    const write = await interchangeWriter();
    const document = write(
      { ...attemptRecord(store, attemptId)!, calls: endedCalls(store, attemptId) },
      VERSION,
    );
    return Buffer.from(`${JSON.stringify(document, null, 2)}\n`);
  };

/** Where no end state is kept, what an agent did to the services of its task can be judged beside them alone: no patch says it. */
function servicesGone(instance: Instance, { work_image }: Gradable, arm: ArmRow): string | undefined {
  const environment = recordedEnvironment(arm);
  const { runsServices, canKeepWork } = environmentKindOf(environment ?? {}).capabilities;
  return needsOf(instance).container?.services && work_image === null && runsServices && !canKeepWork
    ? `the services of ${instance.instance_id} are gone: they end with the attempt, so only a new attempt can be graded`
    : undefined;
}

/** A task with an open network has it where its agent had it. */
function openNetworkOf(arm: ArmRow): { readonly openNetwork?: string } {
  const network = recordedEnvironment(arm)?.network;
  return typeof network !== 'string' || network === 'none' ? {} : { openNetwork: network };
}

/** Grading runs where the harness runs it, in the default environment, unless that of the arms grades too. */
export async function gradingFactory({
  grading,
  arms,
  engine,
  events,
  suite,
  ensureGraded,
}: GradedRun): Promise<EnvironmentFactory> {
  const [arm] = arms.values();
  const environment = arm && recordedEnvironment(arm.row);
  const kind = environment && environmentKindOf(environment);
  const base = {
    environment_class: kind?.grades ? kind.name : DEFAULT_ENVIRONMENT,
    ...(environment && ownKeysOf(environment)),
    ...(environment?.pull ? { pull: environment.pull } : {}),
    ...(environment?.platform ? { platform: environment.platform } : {}),
  };
  return createEnvironmentFactory(gradingEnvironment(grading, base), {
    ...GRADING_DOCKER_OPTIONS,
    listens: suite.asks,
    capAdd: grading.cap_add,
    watch: engine,
    onWarning: (text) => events.emit({ type: 'note', text }),
    images: ensureGraded,
  });
}

/**
 * End states that nobody asks for any more are removed beside other work, which is awaited at the end alone: a container that is stuck holds its
 * image for a minute (observed: tests/run/discards.test.ts).
 */
export function createDiscards({ events }: Pick<GradedRun, 'events'>) {
  const going: Promise<void>[] = [];
  const discardOne = async (factory: EnvironmentFactory, image: string): Promise<void> => {
    try {
      await factory.discardWork(image);
    } catch (error) {
      events.emit({ type: 'note', text: `${image} could not be removed: ${errorText(error)}` });
    }
  };
  return {
    begin(factory: EnvironmentFactory, work: string): void {
      for (const image of imagesOfWork(work)) going.push(discardOne(factory, image));
    },
    /** Never rejects. */
    async settled(): Promise<void> {
      await Promise.all(going);
    },
  };
}

export type StepGrading = ReturnType<typeof createStepGrading>;

/** Gradings while an attempt goes on. The factory of their environments is made for the first: most suites have none. */
export function createStepGrading(run: GradedRun, warn: (text: string) => void) {
  let made: Promise<EnvironmentFactory> | undefined;
  const discards = createDiscards(run);
  const files: Promise<void>[] = [];
  return {
    /** Once the record has the verdict: the folder that the harness would write, and no end state that nobody asks for any more. */
    judged(
      { arm, label }: PlannedTrial,
      {
        patch,
        work,
        verdict,
      }: { readonly patch: string; readonly work: string | null; readonly verdict: EvaluationResult },
    ): void {
      if (work !== null) discards.begin(arm.environmentFactory, work);
      const written = writeGradedFiles(run, { model: arm.row.model, model_patch: patch }, label, verdict);
      const failed = (error: unknown) =>
        warn(`${label.instanceId}: what its verdict leaves could not be put in order: ${errorText(error)}`);
      files.push(written.catch(failed));
    },
    async drain(): Promise<void> {
      await Promise.all(files);
    },
    async request(
      { id, instance, arm, label }: PlannedTrial,
      {
        attemptId,
        number,
        connected,
      }: {
        readonly attemptId: number;
        readonly number: number;
        readonly connected: GradeRequest['onConnection'];
      },
      signal: AbortSignal,
    ): ReturnType<LedAttempt['gradeRequest']> {
      rememberBuilds(instance);
      made ??= gradingFactory(run);
      const owner = currentOwner(run.row.name, `gate-${id}.${number}`, run.row.created_at);
      return {
        ...openNetworkOf(arm.row),
        ...{ factory: await made, config: run.grading, owner, signal, onConnection: connected },
        given: run.suite.forTests({ ...label, attemptId }),
        trajectory: trajectoryOf(run, attemptId),
      };
    },
    async close(): Promise<void> {
      await discards.settled();
      await (await made)?.close();
    },
  };
}

function ungradable(
  reason: string,
  instanceId: string,
  g: Gradable,
  config: GradingConfig,
): EvaluationResult {
  return {
    instanceId,
    outcome: g.model_patch === '' ? 'empty_patch' : 'ungradable',
    resolved: null,
    resolvedStrict: null,
    report: null,
    log: null,
    script: '',
    runLog: [],
    applyMethod: null,
    exitCode: null,
    infraReason: null,
    suspicion: [],
    errorMessage: reason,
    durationMs: 0,
    imageDigest: null,
    network: config.network,
    limits: null,
    harness: config.harness,
    specHash: '',
    patchSha256: patchHash(g.model_patch),
    startedAt: new Date(),
    repeatAlone: false,
  };
}
