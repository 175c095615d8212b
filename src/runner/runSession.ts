/**
 * One sitting of a run, new or resumed: builds what the arms need, works through the pending trials, grades as predictions arrive,
 * writes the exports. The caller holds the run's lock.
 */
import { join } from 'node:path';
import { loadAgent } from '../agent/loadAgent.ts';
import type { Redactor } from '../base/text/redact.ts';
import { parseSize } from '../base/text/units.ts';
import type { RunConfig } from '../config/runConfig.ts';
import { instanceSchema } from '../dataset/instance.ts';
import type { EnginePool } from '../environment/engines/enginePool.ts';
import { createEnvironmentFactory } from '../environment/factory.ts';
import type { RunImages } from '../environment/images/runImages.ts';
import type { GradingConfig } from '../grading/gradingConfig.ts';
import { proxyFrom } from '../model/http/proxySettings.ts';
import { createModelFactory } from '../model/modelFactory.ts';
import type { ReplaySource } from '../model/offline/replayed.ts';
import { SEALED_CLASSES } from '../outcome.ts';
import type { Store } from '../store/open.ts';
import type { Gradable } from '../store/records/evaluations.ts';
import { armsOf, instancesOf, type RunRow, setRunStatus, spentNano } from '../store/records/runs.ts';
import type { TrialRow } from '../store/records/trials.ts';
import { suspicionRules } from '../suspicion/commandRules.ts';
import { awakeClock } from './control/awakeClock.ts';
import { createBudget } from './control/budget.ts';
import { createDiskFloor, type DiskFloor, leastFree, reserveFile } from './control/diskFloor.ts';
import type { StopLadder } from './control/stop.ts';
import type { RunEvents } from './events.ts';
import { createGrader, type GradingSummary } from './grader/grader.ts';
import { preflightImages } from './images/imagePreflight.ts';
import { createTrialImages } from './images/trialImages.ts';
import { keepBackups } from './record/backups.ts';
import { createExporter } from './record/exporter.ts';
import { exportRun } from './record/exportRun.ts';
import { exportRunReports } from './record/runReports.ts';
import type { ArmRuntime, Batch, PlannedInstance } from './runAttempt.ts';
import { type BatchResult, runBatch } from './runBatch.ts';
import { biasWarning } from './schedule/order.ts';
import { plannedArm } from './schedule/plannedConfig.ts';
import { expectedSeconds, groupBySharedLayers, scheduleTrials } from './schedule/schedule.ts';

export interface SessionParts {
  readonly store: Store;
  readonly root: string;
  readonly run: RunRow;
  readonly config: RunConfig;
  readonly grading: GradingConfig;
  readonly toDo: readonly TrialRow[];
  readonly secret: (name: string) => string | undefined;
  readonly redactor: Redactor;
  readonly events: RunEvents;
  readonly stop: StopLadder;
  readonly leaseOwner: string;
  readonly version: string;
  readonly cwd: string;
  readonly log: Batch['log'];
  /** Images of the engines that containers run on; absent when every arm is local. */
  readonly images?: RunImages;
  /** Places on several engines; absent with one. */
  readonly pool?: EnginePool;
  /** Where the engine on this machine keeps its layers. */
  readonly engineDir?: string;
  /** Opens the recording that `replay:NAME` names, for an arm. */
  readonly fetchReplay?: (name: string, arm: string) => Promise<ReplaySource>;
}

export interface SessionResult extends BatchResult {
  readonly dir: string;
  readonly predictions: readonly string[];
  readonly graded: GradingSummary | null;
}

export async function runSession(parts: SessionParts): Promise<SessionResult> {
  const { store, run, config, events, stop } = parts;
  const dir = join(parts.root, run.name);
  const target = { store, run, dir, version: parts.version };
  const arms = await startArms(parts);
  const instances = new Map<number, PlannedInstance>(
    instancesOf(store, run.id).map((row) => [
      row.id,
      { row, instance: instanceSchema.parse(JSON.parse(row.row)) },
    ]),
  );
  const { nano: spent, committedNano } = spentNano(store, run.id);
  const budget = createBudget(run.budget_nano, committedNano, (percent, spentNow) =>
    events.emit({ type: 'budget', percent, spentNano: spentNow, budgetNano: run.budget_nano! }),
  );
  const grader = parts.grading.enabled
    ? await createGrader({ ...parts, dir, instances, arms: armsOf(store, run.id), config: parts.grading })
    : null;
  const toDo = await orderWithImages(parts, arms, instances);
  const gradings = grader?.missing() ?? [];
  const images = parts.images && trialImagesOf(parts, toDo, gradings, arms, instances);
  const disk = diskFloorOf(parts);
  const clock = awakeClock(() => performance.now());
  const batch: Batch = {
    ...(images && { images }),
    ...(disk && { disk }),
    store,
    run,
    config,
    arms,
    instances,
    redactor: parts.redactor,
    budget,
    events,
    stop,
    retry: { attempts: config.retry.attempts, reasons: config.retry.reasons, made: new Map() },
    suspicionRules: suspicionRules(config.suspicion_rules),
    onAnswer: otherModels((text) => events.emit({ type: 'note', text })),
    leaseOwner: parts.leaseOwner,
    now: clock.now,
    isoNow: () => new Date().toISOString(),
    log: parts.log,
  };
  const exporter = createExporter(target);
  setRunStatus(store, run.id, 'running', null);
  const expectedS = expectedSeconds(store, run, toDo);
  events.emit({
    type: 'run_started',
    run: run.name,
    planned: instances.size * arms.size * config.epochs,
    toDo: parts.toDo.length,
    slots: config.workers,
    arms: arms.size,
    epochs: config.epochs,
    budgetNano: run.budget_nano,
    spentNano: spent,
    ...(expectedS && { expectedS }),
  });
  // What an earlier sitting sealed and nobody graded.
  grader?.enqueueMissing();
  const backups = keepBackups(store, parts.log, ({ message }) =>
    stop.stopStarting('internal_error', message),
  );
  try {
    const result = await runBatch(batch, toDo, {
      ended: (attemptId) => exporter.attemptEnded(attemptId),
      sealed: (trial) => grader?.enqueue(trial.id),
      drain: async () => {
        await grader?.drain();
        await exporter.flush();
      },
    });
    const sealed = SEALED.reduce((sum, name) => sum + (result.counts[name] ?? 0), 0);
    const bias = biasWarning(config.order, sealed, instances.size * arms.size * config.epochs);
    if (bias) events.emit({ type: 'note', text: bias });
    const predictions = await exportRun(target);
    if (grader) await exportRunReports(target, parts.grading.dialect);
    return { ...result, dir, predictions, graded: grader ? grader.summary() : null };
  } finally {
    await Promise.allSettled(
      [...arms.values()].flatMap((a) => [a.modelFactory.close(), a.environmentFactory.close()]),
    );
    await grader?.close();
    clock.stop();
    await images?.finish();
    await backups.finish();
  }
}

const SEALED = [...SEALED_CLASSES];

/** Told once for each model that was not asked for, or that another one came before; every call has it in its row. */
function otherModels(note: (text: string) => void): Batch['onAnswer'] {
  const seen = new Map<string, Set<string>>();
  return (asked, answered) => {
    const before = seen.get(asked) ?? new Set<string>();
    if (before.has(answered)) return;
    const earlier = before.size > 0 ? `; before, ${[...before].join(' and ')} did` : '';
    if (answered !== asked || earlier)
      note(`warning: ${asked} was asked for and ${answered} answered${earlier}`);
    seen.set(asked, before.add(answered));
  };
}

/** The order that was asked for; the dataset's own may move trials together that share layers which will be removed. */
async function orderWithImages(
  parts: SessionParts,
  arms: ReadonlyMap<number, ArmRuntime>,
  instances: ReadonlyMap<number, PlannedInstance>,
): Promise<readonly TrialRow[]> {
  const { store, run, config, images, events } = parts;
  const scheduled = scheduleTrials(store, run, config, parts.toDo);
  if (!images) return scheduled;
  const imageOf = (trial: TrialRow) => {
    const { environment } = arms.get(trial.arm_id)!;
    if (environment.environment_class !== 'docker') return undefined;
    return environment.image ?? instances.get(trial.instance_pk)!.row.image;
  };
  const names = scheduled.map(imageOf).filter((name) => name !== undefined);
  const { layersOf } = await preflightImages(images, names, (text) => events.emit({ type: 'note', text }));
  if (config.order !== 'dataset' || images.policy.kind === 'keep') return scheduled;
  // Docker Hub is not asked about each image: official ones share layers by repository, and there by version.
  const likely = (trial: TrialRow) => {
    const { repo, version } = instances.get(trial.instance_pk)!.instance;
    return [repo, version];
  };
  return groupBySharedLayers(
    store,
    run,
    scheduled,
    (trial) => layersOf?.(imageOf(trial) ?? '') ?? likely(trial),
  );
}

/** The disks of the record and of the engine's layers; a remote engine's cannot be seen from here. */
function diskFloorOf(parts: SessionParts): DiskFloor | undefined {
  const floorBytes = parseSize(parts.config.disk_floor);
  if (floorBytes === 0) return undefined;
  const folders = [parts.root, ...(parts.engineDir === undefined ? [] : [parts.engineDir])];
  return createDiskFloor({
    floorBytes,
    free: () => leastFree(folders),
    reserve: reserveFile(parts.root, floorBytes),
  });
}

function trialImagesOf(
  parts: SessionParts,
  toDo: readonly TrialRow[],
  gradings: readonly Gradable[],
  arms: ReadonlyMap<number, ArmRuntime>,
  instances: ReadonlyMap<number, PlannedInstance>,
) {
  const service = parts.images!;
  const grading = parts.grading.enabled;
  const gradedIn = (instancePk: number) => instances.get(instancePk)!.row.image;
  // Trials of the arms of one instance are neighbours and share its image.
  const trials = toDo.flatMap(({ id, arm_id, instance_pk }) => {
    const { environment } = arms.get(arm_id)!;
    if (environment.environment_class !== 'docker') return [];
    const runsIn = environment.image ?? gradedIn(instance_pk);
    return [{ trialId: id, images: grading ? [runsIn, gradedIn(instance_pk)] : [runsIn] }];
  });
  const overrides = [...arms.values()].flatMap(({ environment }) => environment.image ?? []);
  return createTrialImages({
    service,
    trials,
    gradings: gradings.map((g) => ({ trialId: g.trial_id, images: [gradedIn(g.instance_pk)] })),
    ofRun: [...overrides, ...[...instances.values()].map(({ row }) => row.image)],
    ahead: service.ahead * arms.size,
    events: parts.events,
    grading,
    onError: (message: string) => parts.log('warn', message),
  });
}

async function startArms(parts: SessionParts): Promise<Map<number, ArmRuntime>> {
  const arms = new Map<number, ArmRuntime>();
  const proxy = proxyFrom(parts.secret);
  for (const row of armsOf(parts.store, parts.run.id)) {
    const { agent, environment, model } = plannedArm(row);
    const apiKey = parts.secret(model.api_key_env);
    arms.set(row.id, {
      row,
      agent,
      environment,
      model,
      modelFactory: await createModelFactory(model, {
        ...(apiKey === undefined ? {} : { apiKey }),
        ...(proxy ? { proxy } : {}),
        requestStyle: agent.compat ? 'litellm' : 'own',
        ...(parts.fetchReplay && { fetchReplay: (name) => parts.fetchReplay!(name, row.name) }),
        onDivergence: (d) =>
          parts.events.emit({
            type: 'note',
            text: `${d.instanceId}: ${d.query === 1 ? 'before step 1' : `at step ${d.query - 1}`} the environment answered differently than in the recording: ${d.difference}`,
          }),
      }),
      environmentFactory: await createEnvironmentFactory(environment, {
        pool: parts.pool,
        images: parts.images,
      }),
      createAgent: await loadAgent(agent.agent_class, parts.cwd),
    });
  }
  return arms;
}
