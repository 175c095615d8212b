/**
 * Many instances at once: a p-queue of slots works through the pending trials of a run. Read this file first; slot.ts is one attempt.
 */
import PQueue from 'p-queue';
import { exitClassOf, isFinalReason } from '../outcome.ts';
import { insertEvent } from '../store/events.ts';
import { StorageError } from '../store/open.ts';
import { type RunStatus, setRunStatus } from '../store/runs.ts';
import { classCounts, heartbeat, markNotRun, type TrialRow, trialById } from '../store/trials.ts';
import { type Breaker, createBreaker } from './breaker.ts';
import { DURABLE_EVENTS } from './events.ts';
import { type AttemptOutcome, type Batch, runAttempt } from './slot.ts';
import { createStartAhead } from './startAhead.ts';

export interface BatchHooks {
  /** An attempt has ended, however: export its trajectory. */
  ended(attemptId: number): void;
  /** A trial was sealed with a statement about the model: export it, grade it. */
  sealed(trial: TrialRow, outcome: AttemptOutcome): void;
  /** Waits for what `sealed` started. */
  drain(): Promise<void>;
}

export interface BatchResult {
  readonly status: RunStatus;
  readonly counts: Record<string, number>;
  /** Set when the run stopped for a reason that no instance can help: authentication, missing model. */
  readonly fatal: string | null;
}

export async function runBatch(
  batch: Batch,
  toDo: readonly TrialRow[],
  hooks: BatchHooks,
): Promise<BatchResult> {
  const { store, run, config, stop, events } = batch;
  const queue = new PQueue({ concurrency: config.workers });
  const freeSlots = Array.from({ length: config.workers }, (_, i) => config.workers - i);
  const breaker = createBreaker({
    consecutive: config.breaker.consecutive,
    fraction: config.breaker.fraction,
    window: config.breaker.window,
    emptyPatches: config.breaker.empty_patches,
  });
  let broken: unknown = null;
  let open = 0;
  const finished = Promise.withResolvers<void>();
  const timers = new Set<{ fire(): void }>();
  const ahead = createStartAhead(batch);

  events.on((event) => {
    if (!DURABLE_EVENTS.has(event.type)) return;
    const { type, ...data } = event;
    try {
      insertEvent(store, run.id, batch.isoNow(), type, data);
    } catch (error) {
      breakRun(error);
    }
  });

  /** The record cannot be kept: nothing new starts, what runs is ended, and the error is thrown at the end. */
  const breakRun = (error: unknown) => {
    if (broken !== null) return;
    broken = error;
    stop.stopStarting('internal_error', error instanceof Error ? error.message : String(error));
    while (stop.stage < 2) stop.interrupt('a storage error');
  };

  const release = () => {
    open -= 1;
    if (open === 0) finished.resolve();
  };

  const enqueue = (trial: TrialRow, priority: number) => {
    void admission
      .add(
        async () => {
          await imageReady(trial);
          ahead.waits(trial, priority);
          await queue.add(() => work(trial), { priority });
        },
        { priority },
      )
      .catch(breakRun)
      .finally(release);
  };

  /** Images are waited for outside of slots, by as many trials as may run ahead of them; stopping ends the wait. */
  const imagesWanted = new AbortController();
  const admission = new PQueue({
    concurrency: batch.images ? config.workers + batch.images.ahead : Number.POSITIVE_INFINITY,
  });
  const imageReady = async (trial: TrialRow): Promise<void> => {
    const arm = batch.arms.get(trial.arm_id)!;
    if (arm.environment.environment_class !== 'docker') return;
    const image = arm.environment.image ?? batch.instances.get(trial.instance_pk)!.row.image;
    await batch.images?.ready(image, imagesWanted.signal);
  };

  const later = (ms: number, fn: () => void) => {
    const entry = {
      fire: () => {
        if (!timers.delete(entry)) return;
        clearTimeout(timer);
        fn();
      },
    };
    const timer = setTimeout(() => entry.fire(), ms);
    timers.add(entry);
  };

  async function work(trial: TrialRow): Promise<void> {
    ahead.taken(trial);
    if (stop.why) return;
    const slot = freeSlots.pop()!;
    let outcome: AttemptOutcome | null;
    try {
      outcome = await runAttempt(batch, trial, slot, ahead.slotEmptying);
    } finally {
      freeSlots.push(slot);
    }
    if (!outcome) return;
    const { ending, label, settlement } = outcome;
    hooks.ended(outcome.attemptId);
    if (batch.budget.exhausted()) stop.stopStarting('budget_stopped', budgetText(batch));
    decide(breaker, outcome);
    const sealedTrial = trialById(store, trial.id)!;
    if (settlement === 'seal') {
      if (isFinalReason(ending.reason)) hooks.sealed(sealedTrial, outcome);
    } else if (settlement === 'again' && exitClassOf(ending.reason) !== 'cancelled' && !stop.why) {
      events.emit({
        type: 'note',
        text: `${label.instanceId}: ${ending.reason}, will run again in a fresh container`,
      });
      open += 1;
      later(config.retry.backoff_s * 1000, () => enqueue(sealedTrial, -1));
    }
  }

  function decide(current: Breaker, outcome: AttemptOutcome): void {
    const { ending, label } = outcome;
    const decision = current.note({
      instanceId: label.instanceId,
      reason: ending.reason,
      class: exitClassOf(ending.reason),
      message: ending.message,
      patchBytes: outcome.patchBytes,
    });
    if (decision.do === 'stop') {
      events.emit({ type: 'breaker', reason: decision.reason });
      stop.stopStarting(ending.reason, decision.reason);
    } else if (decision.do === 'pause') pause(current, decision.reason);
    else if (decision.do === 'resume') {
      queue.concurrency = config.workers;
      events.emit({ type: 'resumed', reason: decision.reason });
    }
  }

  let probes = 0;
  function pause(current: Breaker, reason: string): void {
    events.emit({ type: 'breaker', reason });
    probes += 1;
    if (probes > config.breaker.max_probes) {
      stop.stopStarting('internal_error', `${probes - 1} probes failed: ${reason}`);
      return;
    }
    queue.pause();
    ahead.giveUp();
    events.emit({
      type: 'paused',
      reason: `${reason}; one instance probes in ${config.breaker.probe_after_s} s`,
    });
    later(config.breaker.probe_after_s * 1000, () => {
      current.probe();
      queue.concurrency = 1;
      queue.start();
    });
  }

  stop.onChange(() => {
    if (!stop.why) return;
    imagesWanted.abort();
    ahead.giveUp();
    // Whatever still waits finds out in work() that nothing is started any more.
    queue.concurrency = config.workers;
    queue.start();
    for (const entry of [...timers]) entry.fire();
  });

  const beat = setInterval(() => {
    try {
      heartbeat(store, run.id, batch.leaseOwner, Date.now());
    } catch (error) {
      breakRun(error);
    }
  }, config.heartbeat_s * 1000);

  try {
    open += 1;
    for (const trial of toDo) {
      open += 1;
      enqueue(trial, 0);
    }
    release();
    await finished.promise;
  } finally {
    clearInterval(beat);
  }
  await hooks.drain();
  if (broken !== null)
    throw broken instanceof Error ? broken : new StorageError('write_failed', String(broken));

  if (stop.why) markNotRun(store, run.id, stop.why.reason);
  const counts = Object.fromEntries(classCounts(store, run.id));
  const status = statusOf(batch, counts);
  setRunStatus(store, run.id, status, batch.isoNow());
  const fatal = stop.why && exitClassOf(stop.why.reason) === 'config' ? stop.why.message : null;
  events.emit({ type: 'run_ended', run: run.name, status, counts, spentNano: batch.budget.spent() });
  return { status, counts, fatal };
}

function statusOf(batch: Batch, counts: Record<string, number>): RunStatus {
  const { stop } = batch;
  const undecided = ['infra', 'cancelled', 'not_run', 'config', 'running'].some((c) => (counts[c] ?? 0) > 0);
  if (!undecided) return 'complete';
  if (stop.interruptedBy) return 'interrupted';
  if (stop.why && exitClassOf(stop.why.reason) === 'config') return 'failed';
  if (stop.why?.reason === 'budget_stopped') return 'budget';
  return 'incomplete';
}

const budgetText = (batch: Batch): string => {
  const limit = batch.budget.limitNano;
  return `run budget ${limit === null ? '' : `$${(limit / 1e9).toFixed(2)} `}reached`;
};
