/**
 * One sitting of a run, new or resumed: builds what the arms need, works through the pending trials, grades as predictions arrive,
 * writes the exports. The caller holds the run's lock.
 */
import { type Closing, createClosing } from '../base/async/timer.ts';
import { pathInside } from '../base/files/pathInside.ts';
import { errorText } from '../base/text/errorText.ts';
import type { Redactor } from '../base/text/redact.ts';
import { parseSize } from '../base/text/units.ts';
import type { RunConfig } from '../config/runConfig.ts';
import { type EngineWatch, watchEngines } from '../environment/places/engines/engineWatch.ts';
import type { Program } from '../environment/programs/program.ts';
import type { GradingConfig } from '../grading/gradingConfig.ts';
import type { ReplaySource } from '../model/offline/replayed.ts';
import { SEALED_CLASSES } from '../outcome.ts';
import type { Store } from '../store/open.ts';
import { gradedSoFar } from '../store/records/evaluations.ts';
import { armsOf, type RunRow, setRunStatus, spentNano } from '../store/records/runs.ts';
import { type TrialRow, trialsOf } from '../store/records/trials.ts';
import { type ArmRuntime, startArms } from './arms.ts';
import { discardAbandonedWork } from './attempt/abandonedWork.ts';
import { attemptPortsOf } from './attempt/attemptPorts.ts';
import type { AttemptPorts } from './attempt.ts';
import { type BatchHooks, type BatchResult, runBatch } from './batch.ts';
import { awakeClock } from './control/awakeClock.ts';
import { createBudget, type RunBudget } from './control/budget.ts';
import { createControlInbox } from './control/controlInbox.ts';
import { createDiskFloor, type DiskFloor, leastFree, reserveFile } from './control/diskFloor.ts';
import type { StopLadder } from './control/stop.ts';
import type { RunEvents } from './events.ts';
import { createGates, type StepGates } from './grader/gates.ts';
import { createGrader, type Grader, type GradingSummary } from './grader/grader.ts';
import { keepEngines, type SessionEngines } from './places/sessionEngines.ts';
import { createSessionImages, type ImageOrder, orderForImages } from './places/sessionImages.ts';
import type { TrialImages } from './places/trialImages.ts';
import { type PlannedInstance, type PlannedTrial, plannedInstances, plannedTrial } from './plannedTrial.ts';
import { keepBackups } from './record/backups.ts';
import { createExporter } from './record/exporter.ts';
import { exportRun } from './record/exportRun.ts';
import { keepLiveState } from './record/liveStates.ts';
import { rateBooks } from './record/rateBooks.ts';
import { createRunRecord } from './record/runRecord.ts';
import { exportRunReports } from './record/runReports.ts';
import { biasWarning } from './schedule/order.ts';
import { expectedSeconds, scheduleTrials } from './schedule/schedule.ts';

/** The stored run and its configuration. */
export interface StoredRun {
  readonly store: Store;
  /** DIR: the results root. */
  readonly root: string;
  readonly run: RunRow;
  readonly config: RunConfig;
  readonly grading: GradingConfig;
}

/** What the run gets from its process. */
export interface SessionPorts {
  readonly secret: (name: string) => string | undefined;
  readonly redactor: Redactor;
  readonly events: RunEvents;
  readonly stop: StopLadder;
  /** host:boot:pid:start of this process. */
  readonly leaseOwner: string;
  readonly version: string;
  readonly cwd: string;
  readonly log: AttemptPorts['log'];
  /** What containers get of the agent that an arm names. */
  readonly program?: (agentClass: string) => Program | undefined;
  /** Opens the recording that `replay:NAME` names, for an arm. */
  readonly fetchReplay?: (name: string, arm: string) => Promise<ReplaySource>;
}

export interface SessionResult extends BatchResult {
  readonly dir: string;
  readonly predictions: readonly string[];
  readonly graded: GradingSummary | null;
}

/** The common inputs of the parts of a sitting. */
interface Session {
  readonly stored: StoredRun;
  readonly ports: SessionPorts;
  readonly engines: SessionEngines | undefined;
  readonly engine: EngineWatch | undefined;
  /** DIR/<run>: where its exports go. */
  readonly dir: string;
  readonly arms: ReadonlyMap<number, ArmRuntime>;
  readonly instances: ReadonlyMap<number, PlannedInstance>;
}

export async function runSession(
  stored: StoredRun,
  toDo: readonly TrialRow[],
  ports: SessionPorts,
  engines?: SessionEngines,
): Promise<SessionResult> {
  const closing = createClosing();
  try {
    return await sit(stored, toDo, ports, engines, closing);
  } finally {
    await closing.closeAll();
  }
}

async function sit(
  stored: StoredRun,
  toDo: readonly TrialRow[],
  ports: SessionPorts,
  engines: SessionEngines | undefined,
  closing: Closing,
): Promise<SessionResult> {
  const { store, run, config } = stored;
  const { events, stop, log } = ports;
  const dir = pathInside(stored.root, run.name);
  const pool = engines?.pool;
  const engine = engines && watchEngines(config.stall.engine_s, pool);
  const arms = await startArms(
    armsOf(store, run.id),
    { ...ports, ...engines, engine, rates: rateBooks(store) },
    closing,
  );
  closing.add(() => engine?.close());
  keepEngines(engines, { store, run, events, isoNow, onError: brokenRecord(stop) }, closing);
  const instances = await plannedInstances(store, run);
  // A row that cannot be read ends the sitting before anything starts.
  for (const trial of toDo) void instances.get(trial.instance_pk)!.instance;
  const session = { stored, ports, engines, engine, dir, arms, instances };
  const plan = (trial: TrialRow) => plannedTrial(trial, arms, instances);
  const budget = budgetOf(session);
  const grader = stored.grading.enabled ? await graderOf(session) : null;
  closing.add(() => grader?.close());
  const { trials: ordered, here } = await inOrder(session, plan, toDo);
  const trials = ordered.map(plan);
  const images = imagesOf(session, trials, grader, here);
  closing.add(() => images?.finish());
  const disk = diskFloorOf(session);
  const clock = awakeClock(() => performance.now());
  closing.add(() => clock.stop());
  const target = { store, run, dir, version: ports.version };
  const exporter = createExporter(target);
  setRunStatus(store, run.id, 'running', null);
  announce(session, ordered, grader?.missing().length);
  // Trials that an earlier sitting sealed and did not grade.
  grader?.enqueueMissing();
  const backups = keepBackups(store, log, ({ message }) => stop.stopStarting('internal_error', message));
  closing.add(() => backups.finish());
  const hooks: BatchHooks = {
    ended: (attemptId) => exporter.attemptEnded(attemptId),
    sealed: (trialId) => grader?.enqueue(trialId),
    drain: async () => {
      await grader?.drain();
      await exporter.flush();
    },
  };
  closing.add(liveStateOf(session));
  const record = createRunRecord({ store, run, leaseOwner: ports.leaseOwner, isoNow });
  const controls = createControlInbox({
    ...{ store, runId: run.id, events, now: () => new Date() },
    onError: brokenRecord(stop),
  });
  // Neither the sleep of this machine nor an outage of the engine counts against a limit.
  const gates = gatesOf(session, closing);
  const now = () => clock.now() - (engine?.awayMs() ?? 0);
  const attempts = attemptPortsOf(stored, ports, { budget, isoNow, now, gates });
  const discard = () => discardAbandonedWork(store, run.id, factoriesOf(arms), (text) => log('warn', text));
  await discard();
  const result = await runBatch(
    { config, record, events, stop, budget, disk, engine, images, attempts, hooks, controls },
    trials,
  );
  await discard();
  warnOfBias(session, result);
  const predictions = await exportRun(target);
  if (grader) await exportRunReports(target, stored.grading.dialect);
  return { ...result, dir, predictions, graded: grader ? grader.summary() : null };
}

const factoriesOf = (arms: ReadonlyMap<number, ArmRuntime>) =>
  [...arms.values()].map(({ environmentFactory }) => environmentFactory);

const isoNow = () => new Date().toISOString();

const brokenRecord = (stop: StopLadder) => (error: unknown) =>
  stop.stopStarting('internal_error', errorText(error));

/** Money of earlier sittings counts: a restart does not renew the budget. */
function budgetOf({ stored: { store, run }, ports: { events } }: Session): RunBudget {
  const { committedNano } = spentNano(store, run.id);
  const budget = createBudget(run.budget_nano, committedNano, (percent, spentNow) =>
    events.emit({ type: 'budget', percent, spentNano: spentNow, budgetNano: budget.limitNano! }),
  );
  return budget;
}

const graderOf = ({ stored, ports, engines, engine, dir, instances }: Session): Promise<Grader> => {
  const { store, run, grading } = stored;
  const arms = armsOf(store, run.id);
  return createGrader({
    ...{ ...ports, store, run, dir, instances, arms },
    config: grading,
    images: engines?.images,
    pool: engines?.pool?.beside(),
    engine,
  });
};

/** The configured order, adapted to the images. */
async function inOrder(
  { stored, ports: { events }, engines }: Session,
  plan: (trial: TrialRow) => PlannedTrial,
  toDo: readonly TrialRow[],
): Promise<ImageOrder> {
  const { store, run, config } = stored;
  const scheduled = scheduleTrials(store, run, config, toDo);
  if (!engines) return { trials: scheduled, here: new Set() };
  const { images } = engines;
  return orderForImages({ store, run, order: config.order, images, events, plan }, scheduled);
}

function imagesOf(
  { stored, ports: { events, log }, engines, engine, arms, instances }: Session,
  trials: readonly PlannedTrial[],
  grader: Grader | null,
  here: ReadonlySet<string>,
): TrialImages | undefined {
  if (!engines) return undefined;
  const grading = stored.grading.enabled;
  const onError = (message: string) => log('warn', message);
  const service = engines.images;
  const gradings = grader?.missing() ?? [];
  return createSessionImages(
    { service, engine, here, arms, instances, grading, events, onError },
    trials,
    gradings,
  );
}

/** Watches the disks of the record and of the engine's layers; that of a remote engine cannot be seen from here. */
function diskFloorOf({ stored: { root, config }, engines }: Session): DiskFloor | undefined {
  const floorBytes = parseSize(config.disk_floor);
  if (floorBytes === 0) return undefined;
  const folders = [root, ...(engines?.engineDir === undefined ? [] : [engines.engineDir])];
  return createDiskFloor({
    floorBytes,
    free: () => leastFree(folders),
    reserve: reserveFile(root, floorBytes),
  });
}

const liveStateOf = ({ stored, ports: { events }, engines, arms }: Session) =>
  keepLiveState({ ...stored, events, arms: [...arms.values()], pool: engines?.pool });

const plannedCount = ({ stored: { config }, arms, instances }: Session): number =>
  instances.size * arms.size * config.epochs;

function announce(session: Session, toDo: readonly TrialRow[], toGrade: number | undefined): void {
  const { store, run, config, grading } = session.stored;
  const expectedS = expectedSeconds(store, run, toDo);
  session.ports.events.emit({
    type: 'run_started',
    run: run.name,
    planned: plannedCount(session),
    toDo: toDo.length,
    sealed: trialsOf(store, run.id).filter(({ state }) => state === 'sealed').length,
    slots: config.workers,
    arms: session.arms.size,
    epochs: config.epochs,
    budgetNano: run.budget_nano,
    spentNano: spentNano(store, run.id).nano,
    graded: gradedSoFar(store, run.id),
    ...(toGrade !== undefined && { grading: { workers: grading.workers, open: toGrade } }),
    ...(expectedS && { expectedS }),
  });
}

function gatesOf(
  { stored: { store, run, grading }, ports: { events }, engines, engine }: Session,
  closing: Closing,
): StepGates {
  const gates = createGates(
    {
      ...{ config: grading, arms: armsOf(store, run.id), events, engine },
      ...{ images: engines?.images, pool: engines?.pool?.beside() },
    },
    run.name,
  );
  closing.add(() => gates.close());
  return gates;
}

function warnOfBias(session: Session, { counts }: BatchResult): void {
  const sealed = [...SEALED_CLASSES].reduce((sum, name) => sum + (counts[name] ?? 0), 0);
  const bias = biasWarning(session.stored.config.order, sealed, plannedCount(session));
  if (bias) session.ports.events.emit({ type: 'note', text: bias });
}
