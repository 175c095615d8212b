/**
 * Many trials at once. Read run.ts before it; attempt.ts is one attempt.
 *
 * Each trial waits for its image, then for a slot, and has one attempt there. After the attempt the trial is sealed and graded, or comes
 * back for another attempt, or the whole run pauses or stops. A run that stops starts nothing more and waits for running attempts; the
 * stop ladder (control/stop.ts) decides how fast they end.
 */
import { exitClassOf, isFinalReason } from '../outcome.ts';
import { insertEvent } from '../store/records/attemptBodies.ts';
import { type RunStatus, setRunStatus } from '../store/records/runs.ts';
import { classCounts, heartbeat, markNotRun } from '../store/records/trials.ts';
import { assertInPlace, onFullDisk } from '../store/writing.ts';
import { type AttemptOutcome, runAttempt } from './attempt.ts';
import type { Run } from './contract.ts';
import { budgetEnd, type RunBudget } from './control/budget.ts';
import { createCancels, serveControls } from './control/liveControls.ts';
import { createPauses } from './control/pauses.ts';
import { createRecordFailure, type StopLadder } from './control/stop.ts';
import type { RunEvent } from './events.ts';
import type { PlannedTrial } from './plannedTrial.ts';
import { createContainerPreparation } from './schedule/containerPreparation.ts';
import { createDelays, createTrialQueue, type TrialQueue } from './schedule/trialQueue.ts';

/** Events that the database keeps; the others have tables of their own or are only for displays. */
const DURABLE_EVENTS: ReadonlySet<RunEvent['type']> = new Set([
  'run_started',
  'trial_started',
  'trial_ended',
  'graded',
  'paused',
  'resumed',
  'breaker',
  'budget',
  'pulled',
  'stopping',
  'control',
  'note',
  'run_ended',
]);

export interface BatchResult {
  readonly status: RunStatus;
  readonly counts: Record<string, number>;
  /** The reason why the run stopped, where it affects every instance: authentication, missing model. */
  readonly fatal: string | null;
}

export async function runBatch(run: Run): Promise<BatchResult> {
  const { store, row, config, events, stop, budget, disk, engine, grader, stepGrading, exporter } = run;
  const failure = createRecordFailure(stop);
  const delays = createDelays();
  const cancels = createCancels();
  const queue = createTrialQueue(run, {
    delays,
    preparation: createContainerPreparation(run),
    isCancelled: cancels.has,
    attempt: (turn) => cancels.during(turn.trial.id, (signal) => runAttempt(run, turn, signal)),
    attempted(trial, outcome) {
      exporter.attemptEnded(outcome.attemptId);
      if (budget.exhausted()) stop.stopStarting('budget_stopped', budgetText(budget));
      pauses.judge(trial, { ...outcome, patchBytes: Buffer.byteLength(outcome.patch) });
      settleTrial(run, queue, trial, outcome);
    },
    onError: failure.report,
  });
  const pauses = createPauses(run, queue, delays, (status) =>
    failure.guard(() => setRunStatus(store, row.id, status, null)),
  );
  engine?.follow({ away: pauses.engineAway, back: pauses.engineBack, lost: pauses.engineLost });
  events.on((event) => {
    const { type, ...data } = event;
    if (DURABLE_EVENTS.has(type))
      failure.guard(() => insertEvent(store, row.id, new Date().toISOString(), type, data));
  });
  const controls = serveControls(run, { queue, pauses, cancels, failure });
  stop.onChange(() => {
    if (!stop.why) return;
    pauses.end();
    queue.emptyOut();
    delays.endAll();
  });
  // A sign of life for other processes that read the same results.
  const beat = () => {
    assertInPlace(store);
    heartbeat(store, row.id, run.leaseOwner, Date.now());
  };
  const heart = setInterval(() => failure.guard(beat), config.heartbeat_s * 1000);
  try {
    if (disk) onFullDisk(store, () => disk.relieve());
    disk?.watch(pauses.diskLow, pauses.diskRoom);
    // Writes into a deleted database would be lost.
    assertInPlace(store);
    try {
      await queue.workThrough(run.trials);
    } finally {
      clearInterval(heart);
      disk?.close();
    }
    try {
      await grader?.drain();
      await stepGrading.drain();
      await exporter.flush();
    } catch (error) {
      // If both fail, the error of the record is thrown.
      failure.note(error);
    }
  } finally {
    controls.end();
  }
  failure.throwIfAny();
  return conclude(run);
}

/** A sealed trial is graded. A trial that infrastructure ended comes back, and runs in a fresh container. */
function settleTrial(
  { config, events, stop, grader, stepGrading }: Run,
  queue: TrialQueue,
  trial: PlannedTrial,
  { ending: { reason }, settlement, patch, work, verdict }: AttemptOutcome,
): void {
  if (verdict !== null) stepGrading.judged(trial, { patch, work, verdict });
  if (settlement === 'seal') {
    if (isFinalReason(reason) && verdict === null) grader?.enqueue(trial.id);
  } else if (settlement === 'again' && exitClassOf(reason) !== 'cancelled' && !stop.why) {
    const { instanceId } = trial.label;
    events.emit({ type: 'note', text: `${instanceId}: ${reason}, will run again in a fresh container` });
    queue.comeBack(trial, config.retry.backoff_s * 1000);
  }
}

/** After the last attempt: pending trials get a reason, and the run gets its status. */
function conclude({ store, row, events, stop, budget }: Run): BatchResult {
  if (stop.why) markNotRun(store, row.id, stop.why.reason);
  // Trials by exit class; the sum is the number of planned trials.
  const counts = Object.fromEntries(classCounts(store, row.id));
  const status = statusOf(stop, counts);
  setRunStatus(store, row.id, status, new Date().toISOString());
  const fatal = stop.why && exitClassOf(stop.why.reason) === 'config' ? stop.why.message : null;
  events.emit({ type: 'run_ended', run: row.name, status, counts, spentNano: budget.spent() });
  return { status, counts, fatal };
}

function statusOf({ why, interruptedBy }: StopLadder, counts: Record<string, number>): RunStatus {
  const undecided = ['infra', 'cancelled', 'not_run', 'config', 'running'].some((c) => (counts[c] ?? 0) > 0);
  if (!undecided) return 'complete';
  if (interruptedBy) return 'interrupted';
  if (why && exitClassOf(why.reason) === 'config') return 'failed';
  if (why?.reason === 'budget_stopped') return 'budget';
  return 'incomplete';
}

const budgetText = ({ limitNano, spent }: RunBudget): string => budgetEnd(limitNano, spent());
