/**
 * A sitting: one process works on a run of the record. Read this file first, then batch.ts, attempt.ts and agent/loop/agent.ts.
 *
 *   plan.ts     what a run will do, as data; --dry-run prints it
 *   begin.ts    the plan becomes a run of the record, or a run of the record goes on; the lock is held from here
 *   run.ts      opens everything that the run needs, works through its trials, exports, and closes everything
 *   batch.ts    many trials at once
 *   attempt.ts  one attempt of one trial
 *
 * contract.ts says what an open run consists of.
 */
import { type Closing, createClosing } from '../base/async/timer.ts';
import { VERSION } from '../base/files/packageFile.ts';
import { pathInside } from '../base/files/pathInside.ts';
import type { Redactor } from '../base/text/redact.ts';
import { parseSize } from '../base/text/units.ts';
import type { RunConfig } from '../config/configSchema.ts';
import type { SuiteConfig } from '../config/suiteConfig.ts';
import { currentOwner } from '../environment/owner.ts';
import { watchEngine } from '../environment/places/engineWatch.ts';
import { type ImagesConfig, imagesConfigSchema } from '../environment/places/imagesConfig.ts';
import type { GradingConfig } from '../grading/gradingConfig.ts';
import { suspicionRules } from '../grading/suspicion/commands.ts';
import { COUNTED_CLASSES } from '../outcome.ts';
import { type ArmScore, armScores } from '../report/measure/score.ts';
import type { Store } from '../store/open.ts';
import { gradedSoFar } from '../store/records/evaluations.ts';
import { scoreRows } from '../store/records/runData.ts';
import {
  armsOf,
  type RunRow,
  runByName,
  setRunStatus,
  shardName,
  shardOf,
  spentNano,
} from '../store/records/runs.ts';
import { attemptById, type TrialRow, trialLines, trialsOf } from '../store/records/trials.ts';
import { startArms } from './arms.ts';
import { discardAbandonedWork } from './attempt/environment.ts';
import { type BatchResult, runBatch } from './batch.ts';
import { attended, type Caller } from './caller.ts';
import type { Run } from './contract.ts';
import { budgetOf } from './control/budget.ts';
import { createDiskFloor, type DiskFloor, leastFree, reserveFile } from './control/diskFloor.ts';
import { keepLiveState } from './control/liveControls.ts';
import { createNotifier, warningTo } from './control/notify.ts';
import { awakeClock } from './control/phases.ts';
import { recover } from './control/recover.ts';
import { cleanedBy, createEvents } from './events.ts';
import { createGrader, type GradingSummary } from './grader/grader.ts';
import { createStepGrading } from './grader/gradeTrial.ts';
import { openSuite } from './grader/judge.ts';
import { openRunImages } from './places/openImages.ts';
import { reapOrphans } from './places/sittingEngines.ts';
import { imagesOfTrials, orderForImages, type TrialImages } from './places/trialImages.ts';
import type { ArmConfig } from './plan/planRecord.ts';
import { plannedInstances, plannedTrial } from './plannedTrial.ts';
import { tellOtherModels } from './record/attemptJournal.ts';
import { keepBackups } from './record/backups.ts';
import { createExporter, exportRun } from './record/exportRun.ts';
import { logEvents, openLog } from './record/runLog.ts';
import { exportRunReports } from './record/runReports.ts';
import { biasWarning } from './schedule/order.ts';
import { expectedSeconds, scheduleTrials } from './schedule/schedule.ts';
import { keepSecrets } from './secrets.ts';

/** A run of the record, and what this process does of it. */
interface Sitting {
  readonly store: Store;
  /** The results root. */
  readonly root: string;
  readonly row: RunRow;
  readonly config: RunConfig;
  readonly grading: GradingConfig;
  /** Default: that of an empty `images:` section. */
  readonly images?: ImagesConfig | undefined;
  readonly suite?: SuiteConfig | undefined;
  readonly arms: readonly ArmConfig[];
  /** Chooses trials, after those of a dead process are pending again. */
  readonly choose?: (trials: readonly TrialRow[]) => readonly TrialRow[];
}

export interface RunOutcome extends BatchResult {
  readonly run: string;
  readonly root: string;
  /** "2/5", of a shard. */
  readonly shard?: string;
  /** The folder of its exports, and the predictions there. */
  readonly dir: string;
  readonly predictions: readonly string[];
  /** Null where nothing is graded as it arrives. */
  readonly graded: GradingSummary | null;
  readonly spent: ReturnType<typeof spentNano>;
  /** The budget of the whole run; null for none. */
  readonly budgetNano: number | null;
  /** The name of the signal, or of any other stopper. */
  readonly interruptedBy: string | null;
  /** Why trials failed without a statement about the model. */
  readonly failures: readonly FailureKind[];
  /** Scores of its arms. */
  readonly scores?: readonly ArmScore[];
}

/** The caller holds the run's lock. A run that cannot go on is not left as one that runs. */
export async function workOn(sitting: Sitting, caller: Caller): Promise<RunOutcome> {
  const { store, root, row } = sitting;
  try {
    const closing = createClosing();
    let run: Run;
    let worked: Awaited<ReturnType<typeof work>>;
    try {
      run = await open(sitting, caller, closing);
      worked = await work(run);
    } finally {
      await closing.closeAll();
    }
    const shard = shardOf(row);
    return {
      ...worked,
      run: row.name,
      ...(shard && { shard: shardName(shard) }),
      root,
      dir: run.dir,
      spent: spentNano(store, row.id),
      budgetNano: runByName(store, row.name)?.budget_nano ?? null,
      interruptedBy: run.stop.interruptedBy,
      failures: (worked.counts.infra ?? 0) > 0 ? failureKinds(store, row.id) : [],
      scores: armScores(scoreRows(store, row.id)),
    };
  } catch (error) {
    endFailed(sitting);
    throw error;
  }
}

/** The person hears the first error: a record that cannot be written must not hide it. */
function endFailed({ store, row: { id, name } }: Sitting): void {
  try {
    const status = runByName(store, name)?.status;
    if (status === 'running' || status === 'paused')
      setRunStatus(store, id, 'failed', new Date().toISOString());
  } catch {
    // A killed process leaves its run like this too: "ls" tells that it gives no sign of life.
  }
}

async function work(run: Run): Promise<Pick<RunOutcome, keyof BatchResult | 'predictions' | 'graded'>> {
  const { store, row, config, grader, grading, dir, events } = run;
  await discardAbandonedWork(run);
  const result = await runBatch(run);
  await discardAbandonedWork(run);
  const sealed = [...COUNTED_CLASSES].reduce((sum, name) => sum + (result.counts[name] ?? 0), 0);
  const bias = biasWarning(config.order, sealed, plannedCount(run));
  if (bias) events.emit({ type: 'note', text: bias });
  const target = { store, run: row, dir, version: VERSION };
  const predictions = await exportRun(target, run.exporter.written);
  if (grader) await exportRunReports(target, grading.harness);
  return { ...result, predictions, graded: grader ? grader.summary() : null };
}

/** Opens the parts of a run, each after what it needs. `closing` closes them backwards, also when a later part fails to open. */
async function open(sitting: Sitting, caller: Caller, closing: Closing): Promise<Run> {
  const { store, root, row, config, grading } = sitting;
  const { env, cwd } = caller;
  const dir = pathInside(root, row.name);

  // Secrets: before anything is told.
  const redactor = keepSecrets(sitting, caller);

  // Recovery of what a dead process left: before trials are chosen, because its trials are pending again.
  recover(store, root, row, caller.tell);
  await reapOrphans(sitting.arms, caller);
  const all = trialsOf(store, row.id);
  const pending = (sitting.choose?.(all) ?? all).filter(({ state }) => state === 'pending');

  // Instances: a row that cannot be read ends the sitting before anything starts.
  const instances = await plannedInstances(store, row);
  for (const trial of pending) void instances.get(trial.instance_pk)!.instance;

  // Listeners, and what stops the run: before the parts that tell. Listeners hear the end of all other parts.
  const { log, events, stop } = listen(sitting, caller, redactor, closing);
  const note = (text: string) => events.emit({ type: 'note', text });

  // The engine and its images: before the arms, whose containers are there. Images go after the containers, which hold them.
  const imagesConfig = sitting.images ?? imagesConfigSchema.parse({});
  const service = await openRunImages(env, sitting.arms, imagesConfig, events, store);
  closing.add(() => service?.close());
  let images: TrialImages | undefined;
  closing.add(() => images?.finish());
  const engine = service && watchEngine(config.stall.engine_s);
  closing.add(() => engine?.close());

  // Arms: before what grades, which is where they are.
  const asks = sitting.suite?.judge !== undefined;
  const graceMs = config.stop_grace_s * 1000;
  const shared = { store, env, cwd, events, images: service, engine, asks, graceMs };
  const arms = await startArms(armsOf(store, row.id), shared, closing);

  // Grading: before the images, which bring those of the gradings too.
  const budget = budgetOf(store, row, events);
  const suite = await openSuite(sitting.suite, { store, env, redactor, budget, note }, closing);
  const graded = {
    ...{ store, row, grading, dir, redactor, events, stop, suite, arms, instances, engine },
    ensureGraded: service?.ensure,
  };
  const grader = grading.enabled ? await createGrader(graded, cwd) : null;
  closing.add(() => grader?.close());
  const stepGrading = createStepGrading(graded, (text) => log('warn', text));
  closing.add(() => stepGrading.close());

  // Trials in their order, and their images.
  const plan = (trial: TrialRow) => plannedTrial(trial, arms, instances);
  const scheduled = scheduleTrials(store, row, config, pending);
  const { trials: ordered, here } = service
    ? await orderForImages({ store, run: row, order: config.order, images: service, events, plan }, scheduled)
    : { trials: scheduled, here: new Set<string>() };
  const trials = ordered.map(plan);
  images =
    service &&
    imagesOfTrials(
      {
        ...{ service, engine, here, arms, instances, grading: grading.enabled, events },
        onError: (message) => log('warn', message),
      },
      trials,
      grader?.missing() ?? [],
    );

  const clock = awakeClock(() => performance.now());
  closing.add(() => clock.stop());
  const awayMs = () =>
    Math.max(
      engine?.awayMs() ?? 0,
      ...[...arms.values()].map(({ environmentFactory }) => environmentFactory.awayMs()),
    );
  const owner = currentOwner(row.name, 'run', row.created_at);
  const run: Run = {
    ...{ store, row, dir, config, redactor, events, log, stop, budget },
    ...{ arms, instances, trials, suite, engine, images, grading, grader, stepGrading },
    leaseOwner: `${owner.host}:${owner.bootId}:${owner.pid}:${owner.pidStart}`,
    retry: { ...config.retry, made: new Map(), outages: new Map() },
    now: () => clock.now() - awayMs(),
    disk: diskFloorOf(config, [root, await service?.layersDir()]),
    suspicionRules: suspicionRules(config.suspicion_rules),
    exporter: createExporter({ store, run: row, dir, version: VERSION }),
    answered: tellOtherModels(note),
  };

  // The run begins, with the trials that an earlier sitting sealed and did not grade.
  setRunStatus(store, row.id, 'running', null);
  announce(run, ordered);
  grader?.enqueueMissing();

  // The backup and the live state: last, because they are of the whole, and written once more before anything is closed.
  const backups = keepBackups(store, log, ({ message }) => stop.stopStarting('internal_error', message));
  closing.add(() => backups.finish());
  closing.add(keepLiveState(run));
  return run;
}

/** The log, the events, the stop ladder with the attendant of the caller, and the commands that are told of the run. */
function listen(
  { row, root, config }: Sitting,
  caller: Caller,
  redactor: Redactor,
  closing: Closing,
): Pick<Run, 'log' | 'events' | 'stop'> {
  const log = openLog(pathInside(root, row.name, 'run.log'), redactor);
  const events = createEvents(
    (error) => log('warn', 'a listener failed', { error: String(error) }),
    cleanedBy(redactor),
  );
  events.on(logEvents(log));
  const { stop, attendant } = attended(
    caller,
    { run: row.name, root, workers: config.workers, events },
    { onInterrupt: config.on_interrupt, graceS: config.stop_grace_s },
  );
  closing.add(() => attendant.end?.());
  const notifier = createNotifier(config, attendant.say ?? warningTo(caller.tell));
  closing.add(() => notifier.settle());
  events.on(notifier.listener);
  closing.add(() => attendant.over?.());
  return { log, events, stop };
}

/** Undefined where the floor is 0. The disk of a remote engine cannot be seen from here. */
function diskFloorOf(
  { disk_floor }: RunConfig,
  [root, engineDir]: readonly [string, string | undefined],
): DiskFloor | undefined {
  const floorBytes = parseSize(disk_floor);
  if (floorBytes === 0) return undefined;
  return createDiskFloor({
    floorBytes,
    free: () => leastFree(engineDir === undefined ? [root] : [root, engineDir]),
    reserve: reserveFile(root, floorBytes),
  });
}

const plannedCount = ({ config, arms, instances }: Run): number => instances.size * arms.size * config.epochs;

function announce(run: Run, toDo: readonly TrialRow[]): void {
  const { store, row, config, grading, grader } = run;
  const expectedS = expectedSeconds(store, row, toDo);
  run.events.emit({
    type: 'run_started',
    run: row.name,
    planned: plannedCount(run),
    toDo: toDo.length,
    sealed: trialsOf(store, row.id).filter(({ state }) => state === 'sealed').length,
    slots: config.workers,
    arms: run.arms.size,
    epochs: config.epochs,
    budgetNano: row.budget_nano,
    spentNano: spentNano(store, row.id).nano,
    graded: gradedSoFar(store, row.id),
    ...(grader && { grading: { workers: grading.workers, open: grader.missing().length } }),
    ...(expectedS && { expectedS }),
  });
}

/** Why trials failed without a statement about the model: each exit reason once, with its count and one message. */
interface FailureKind {
  readonly reason: string;
  readonly count: number;
  /** An example, and the first line of its message. */
  readonly instanceId: string;
  readonly message: string;
}

const LONGEST = 300;

function failureKinds(store: Store, runId: number): FailureKind[] {
  const failed = trialLines(store, runId).filter((line) => line.exit_class === 'infra');
  const reasons = [...Map.groupBy(failed, (line) => line.exit_reason ?? '')];
  return reasons
    .toSorted((a, b) => b[1].length - a[1].length)
    .map(([reason, lines]) => {
      const { instance_id, attempt_id } = lines[0]!;
      const message = (attempt_id === null ? null : attemptById(store, attempt_id)?.error_message) ?? '';
      return {
        reason,
        count: lines.length,
        instanceId: instance_id,
        message: message.split('\n', 1)[0]!.slice(0, LONGEST),
      };
    });
}
