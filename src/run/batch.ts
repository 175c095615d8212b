/**
 * Many instances at once: works through the trials of a run, several at a time. Read this file first; attempt.ts is one attempt.
 *
 * Each trial waits for its image, then for a slot, and has one attempt there. After the attempt the trial is sealed and graded, or comes
 * back for another attempt, or the whole run pauses or stops. A run that stops starts nothing more and waits for running attempts; the
 * stop ladder (control/stop.ts) decides how fast they end.
 */
import type { RunConfig } from '../config/runConfig.ts';
import type { EngineWatch } from '../environment/places/engines/engineWatch.ts';
import { exitClassOf, isFinalReason } from '../outcome.ts';
import type { RunStatus } from '../store/records/runs.ts';
import { type AttemptOutcome, type AttemptPorts, runAttempt } from './attempt.ts';
import type { RunBudget } from './control/budget.ts';
import { type Cancels, createCancels } from './control/cancels.ts';
import type { ControlInbox } from './control/controlInbox.ts';
import type { DiskFloor } from './control/diskFloor.ts';
import { type LiveControlPorts, liveControls } from './control/liveControls.ts';
import { createPauses } from './control/pauses.ts';
import { createRecordFailure, type RecordFailure } from './control/recordFailure.ts';
import type { StopLadder } from './control/stop.ts';
import type { RunEvents } from './events.ts';
import type { TrialImages } from './places/trialImages.ts';
import type { PlannedTrial } from './plannedTrial.ts';
import type { RunRecord } from './record/runRecord.ts';
import { createContainerPreparation } from './schedule/containerPreparation.ts';
import { createDelays } from './schedule/delays.ts';
import { createTrialQueue, type TrialQueue } from './schedule/trialQueue.ts';
import type { Turn } from './schedule/turn.ts';

export interface BatchHooks {
  /** An attempt has ended in any way: export its trajectory. */
  ended(attemptId: number): void;
  /** A trial was sealed with a statement about the model: grade it. */
  sealed(trialId: number): void;
  /** Waits for the work of the other two. */
  drain(): Promise<void>;
}

export interface BatchPorts {
  readonly config: Pick<RunConfig, 'workers' | 'retry' | 'breaker' | 'stall' | 'heartbeat_s'>;
  readonly record: RunRecord;
  readonly events: RunEvents;
  readonly stop: StopLadder;
  readonly budget: RunBudget;
  /** Absent when run.disk_floor is 0. */
  readonly disk?: DiskFloor | undefined;
  /** Of the engine, or of several together; absent where there is none. */
  readonly engine?: Pick<EngineWatch, 'follow'> | undefined;
  /** Absent where no image has to be brought: every arm is local. */
  readonly images?: TrialImages | undefined;
  readonly attempts: AttemptPorts;
  readonly hooks: BatchHooks;
  /** Requests of people while it works. */
  readonly controls?: ControlInbox | undefined;
}

export interface BatchResult {
  readonly status: RunStatus;
  readonly counts: Record<string, number>;
  /** Set when the run stopped for a reason that affects every instance: authentication, missing model. */
  readonly fatal: string | null;
}

export async function runBatch(ports: BatchPorts, trials: readonly PlannedTrial[]): Promise<BatchResult> {
  const { config, record, events, stop, disk, hooks } = ports;
  const failure = createRecordFailure(stop);
  const delays = createDelays();
  const cancels = createCancels();
  const queue: TrialQueue = createTrialQueue({
    ...ports,
    workers: config.workers,
    now: ports.attempts.now,
    delays,
    preparation: createContainerPreparation({
      ...ports,
      runName: record.runName,
      nextAttemptNumber: (trialId) => record.nextAttemptNumber(trialId),
    }),
    isCancelled: cancels.has,
    attempt: (turn) => attemptOf(ports, cancels, turn),
    attempted: (trial, outcome) => follow(trial, outcome),
    onError: failure.report,
  });
  const pauses = createPauses({
    ...ports,
    queue,
    delays,
    instances: record.instances(),
    showStatus: (status) => failure.guard(() => record.showStatus(status)),
  });
  ports.engine?.follow({ away: pauses.engineAway, back: pauses.engineBack, lost: pauses.engineLost });
  const follow = (trial: PlannedTrial, outcome: AttemptOutcome) => {
    hooks.ended(outcome.attemptId);
    if (ports.budget.exhausted()) stop.stopStarting('budget_stopped', budgetText(ports.budget));
    pauses.judge(trial, outcome);
    settleTrial(ports, queue, trial, outcome);
  };
  events.on((event) => failure.guard(() => record.keep(event)));
  const controls = serveControls(ports, failure, { ...ports, trials, queue, pauses, cancels });
  stop.onChange(() => {
    if (!stop.why) return;
    pauses.end();
    queue.emptyOut();
    delays.endAll();
  });
  const heart = setInterval(() => failure.guard(() => record.beat()), config.heartbeat_s * 1000);
  try {
    if (disk) record.onFullDisk(() => disk.relieve());
    disk?.watch(pauses.diskLow, pauses.diskRoom);
    record.assertInPlace();
    try {
      await queue.workThrough(trials);
    } finally {
      clearInterval(heart);
      disk?.close();
    }
    // If both fail, the error of the record is thrown.
    await hooks.drain().catch(failure.note);
  } finally {
    controls.end();
  }
  failure.throwIfAny();
  return conclude(ports);
}

/** Until its environment is gone, so that "cancelled" is said when nothing is left of it. */
async function attemptOf(
  { attempts }: BatchPorts,
  cancels: Cancels,
  turn: Turn,
): Promise<AttemptOutcome | null> {
  let outcome: AttemptOutcome | null = null;
  try {
    outcome = await runAttempt({ ...attempts, cancelled: cancels.begin }, turn);
    return outcome;
  } finally {
    cancels.ended(turn.trial.id, outcome?.ending.reason ?? null);
  }
}

/** How soon a request of a person is seen. */
const LOOK_MS = 250;

function serveControls(
  { controls }: BatchPorts,
  failure: RecordFailure,
  ports: LiveControlPorts,
): { end(): void } {
  if (!controls) return { end() {} };
  controls.serve(liveControls(ports));
  const look = setInterval(() => failure.guard(() => controls.look()), LOOK_MS);
  return {
    end() {
      clearInterval(look);
      failure.guard(() => controls.close());
    },
  };
}

/** A sealed trial is graded. One that infrastructure ended comes back, and runs in a fresh container. */
function settleTrial(
  { config, events, stop, hooks }: BatchPorts,
  queue: TrialQueue,
  trial: PlannedTrial,
  { ending: { reason }, settlement }: AttemptOutcome,
): void {
  if (settlement === 'seal') {
    if (isFinalReason(reason)) hooks.sealed(trial.id);
  } else if (settlement === 'again' && exitClassOf(reason) !== 'cancelled' && !stop.why) {
    const { instanceId } = trial.label;
    events.emit({ type: 'note', text: `${instanceId}: ${reason}, will run again in a fresh container` });
    queue.comeBack(trial, config.retry.backoff_s * 1000);
  }
}

/** After the last attempt: pending trials get a reason, and the run gets its status. */
function conclude({ record, events, stop, budget }: BatchPorts): BatchResult {
  if (stop.why) record.markNotRun(stop.why.reason);
  const counts = record.counts();
  const status = statusOf(stop, counts);
  record.end(status);
  const fatal = stop.why && exitClassOf(stop.why.reason) === 'config' ? stop.why.message : null;
  events.emit({ type: 'run_ended', run: record.runName, status, counts, spentNano: budget.spent() });
  return { status, counts, fatal };
}

function statusOf(stop: StopLadder, counts: Record<string, number>): RunStatus {
  const undecided = ['infra', 'cancelled', 'not_run', 'config', 'running'].some((c) => (counts[c] ?? 0) > 0);
  if (!undecided) return 'complete';
  if (stop.interruptedBy) return 'interrupted';
  if (stop.why && exitClassOf(stop.why.reason) === 'config') return 'failed';
  if (stop.why?.reason === 'budget_stopped') return 'budget';
  return 'incomplete';
}

const budgetText = ({ limitNano }: RunBudget): string =>
  `run budget ${limitNano === null ? '' : `$${(limitNano / 1e9).toFixed(2)} `}reached`;
