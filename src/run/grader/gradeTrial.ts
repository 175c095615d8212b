/** The grading of one prediction, in a fresh container. */

import type { EnvironmentFactory } from '../../environment/environment.ts';
import type { EngineImageSource } from '../../environment/environmentKind.ts';
import {
  createEnvironmentFactory,
  DEFAULT_ENVIRONMENT,
  environmentKindOf,
  ownKeysOf,
} from '../../environment/environments.ts';
import { currentOwner } from '../../environment/owner.ts';
import type { EnginePool } from '../../environment/places/enginePool.ts';
import type { EngineWatch } from '../../environment/places/engineWatch.ts';
import {
  GRADING_DOCKER_OPTIONS,
  type GradingConfig,
  gradingEnvironment,
} from '../../grading/gradingConfig.ts';
import { type EvaluationResult, patchHash } from '../../grading/gradingFrame.ts';
import type { ParserRegistry } from '../../grading/parsers/parserRegistry.ts';
import type { Gradable } from '../../store/records/evaluations.ts';
import type { ArmRow, RunRow } from '../../store/records/runs.ts';
import { planGrading } from '../../suites/suites.ts';
import type { RunEvents, TrialLabel } from '../events.ts';
import { recordedEnvironment } from '../plan/plannedConfig.ts';
import type { PlannedInstance } from '../plannedTrial.ts';

export interface GradingPorts {
  readonly run: RunRow;
  readonly config: GradingConfig;
  readonly instances: ReadonlyMap<number, PlannedInstance>;
  readonly arms: ReadonlyMap<number, ArmRow>;
  readonly parsers: ParserRegistry;
  readonly factory: EnvironmentFactory;
}

export interface Verdict {
  readonly label: TrialLabel;
  /** False for an instance that cannot be graded: then nothing has run. */
  readonly gradable: boolean;
  readonly result: EvaluationResult;
}

export async function gradeTrial(
  { run, config, instances, arms, parsers, factory }: GradingPorts,
  gradable: Gradable,
  signal: AbortSignal,
  alone: boolean,
): Promise<Verdict> {
  const { instance } = instances.get(gradable.instance_pk)!;
  const label: TrialLabel = {
    trialId: gradable.trial_id,
    instanceId: instance.instance_id,
    arm: arms.get(gradable.arm_id)!.name,
    epoch: gradable.epoch,
  };
  const planned = planGrading(instance, { dialect: config.dialect, parsers });
  if (!planned.ok)
    return {
      label,
      gradable: false,
      result: ungradable(planned.reason, label.instanceId, gradable, config),
    };
  const result = await planned.plan.grade({
    patch: gradable.model_patch,
    ...(gradable.work_image !== null && { work: gradable.work_image }),
    factory,
    config,
    parsers,
    owner: currentOwner(run.name, `grade-${gradable.attempt_id}`),
    signal,
    alone,
  });
  return { label, gradable: true, result };
}

export interface FactoryParts {
  readonly config: GradingConfig;
  readonly arms: readonly ArmRow[];
  readonly images?: EngineImageSource | undefined;
  readonly pool?: EnginePool | undefined;
  readonly engine?: EngineWatch | undefined;
  readonly events: Pick<RunEvents, 'emit'>;
}

/** Grading runs where the harness runs it, in the default environment, unless that of the arms grades too. */
export async function gradingFactory({
  config,
  arms: [arm],
  images,
  pool,
  engine,
  events,
}: FactoryParts): Promise<EnvironmentFactory> {
  const environment = arm && recordedEnvironment(arm);
  const kind = environment && environmentKindOf(environment);
  const base = {
    environment_class: kind?.grades ? kind.name : DEFAULT_ENVIRONMENT,
    ...(environment && ownKeysOf(environment)),
    ...(environment?.pull ? { pull: environment.pull } : {}),
    ...(environment?.platform ? { platform: environment.platform } : {}),
    // Beside the attempts: how many run at a time is grading.workers alone.
    ...(environment?.hosts ? { hosts: environment.hosts.map(({ host }) => ({ host, slots: 0 })) } : {}),
  };
  return createEnvironmentFactory(gradingEnvironment(config, base), {
    ...GRADING_DOCKER_OPTIONS,
    capAdd: config.cap_add,
    watch: engine,
    onWarning: (text) => events.emit({ type: 'note', text }),
    images,
    pool,
  });
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
    dialect: config.dialect,
    specHash: '',
    patchSha256: patchHash(g.model_patch),
    startedAt: new Date(),
    repeatAlone: false,
  };
}
