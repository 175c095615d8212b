/**
 * Many instances at once: a p-queue of slots works through the pending trials of a run. Read this file first; runAttempt.ts is one attempt.
 */

import PQueue from 'p-queue';
import { startTimer } from '../base/async/timer.ts';
import { exitClassOf, isFinalReason } from '../outcome.ts';
import { assertInPlace, onFullDisk, StorageError } from '../store/open.ts';
import { insertEvent } from '../store/records/events.ts';
import { type RunStatus, setRunStatus } from '../store/records/runs.ts';
import { classCounts, heartbeat, markNotRun, type TrialRow, trialById } from '../store/records/trials.ts';
import { WRONG_ENVIRONMENT } from './attempt/probeEnvironment.ts';
import { type Breaker, createBreaker } from './control/breaker.ts';
import { DURABLE_EVENTS } from './events.ts';
import { HOST_FLOOR, StopReason } from './exit.ts';
import type { Admission } from './images/trialImages.ts';
import { type AttemptOutcome, type Batch, runAttempt } from './runAttempt.ts';
import { createStartAhead } from './schedule/containerPreparation.ts';

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

  const leave = () => {
    open -= 1;
    if (open === 0) finished.resolve();
  };

  /** Nothing new starts while anything holds the queue. */
  const holds = new Set<'breaker' | 'disk'>();
  const hold = (why: 'breaker' | 'disk') => {
    holds.add(why);
    queue.pause();
    ahead.giveUp();
    showStatus('paused');
  };
  const release = (why: 'breaker' | 'disk') => {
    holds.delete(why);
    if (holds.size > 0) return;
    showStatus('running');
    queue.start();
  };
  const showStatus = (now: RunStatus) => {
    try {
      setRunStatus(store, run.id, now, null);
    } catch (error) {
      breakRun(error);
    }
  };
  const imageOf = (trial: TrialRow): string =>
    batch.arms.get(trial.arm_id)!.environment.image ?? batch.instances.get(trial.instance_pk)!.row.image;

  const behindAll = -toDo.length;
  const enqueue = (trial: TrialRow, priority: number) => {
    const queuedAt = batch.now();
    void admission
      .add(
        async () => {
          const admitted = await imageReady(trial);
          try {
            ahead.waits(trial, priority, admitted);
            await queue.add(() => work(trial, admitted, queuedAt, () => waitAgain(trial, priority)), {
              priority,
            });
          } finally {
            admitted?.place?.release();
          }
        },
        { priority },
      )
      .catch(breakRun)
      .finally(leave);
  };

  /** The disk filled up while the trial waited for a slot: it leaves the slot and waits until there is room. */
  const waitAgain = (trial: TrialRow, priority: number) => {
    ahead.giveUp();
    open += 1;
    enqueue(trial, priority);
  };

  /** Images are waited for outside of slots, by as many trials as may run ahead of them; stopping ends the wait. */
  const imagesWanted = new AbortController();
  const admission = new PQueue({
    concurrency: batch.images ? config.workers + batch.images.ahead : Number.POSITIVE_INFINITY,
  });
  const imageReady = async (trial: TrialRow): Promise<Admission | undefined> => {
    if (batch.arms.get(trial.arm_id)!.environment.environment_class !== 'docker') return undefined;
    return batch.images?.ready(imageOf(trial), imagesWanted.signal);
  };

  const later = (ms: number, fn: () => void) => {
    const entry = {
      fire: () => {
        if (!timers.delete(entry)) return;
        timer.cancel();
        fn();
      },
    };
    const timer = startTimer(Math.max(1, ms), () => entry.fire());
    timers.add(entry);
  };

  async function work(
    trial: TrialRow,
    admitted: Admission | undefined,
    queuedAt: number,
    waitAgain: () => void,
  ): Promise<void> {
    ahead.taken(trial);
    if (stop.why) return;
    if (admitted && !(await batch.images!.mayStart(admitted))) {
      waitAgain();
      return;
    }
    if (stop.why) return;
    const slot = freeSlots.pop()!;
    let outcome: AttemptOutcome | null;
    try {
      const waitedMs = batch.now() - queuedAt;
      outcome = await runAttempt(batch, trial, slot, admitted, ahead.slotEmptying, waitedMs);
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
      later(config.retry.backoff_s * 1000, () => enqueue(sealedTrial, behindAll));
    }
  }

  function decide(current: Breaker, outcome: AttemptOutcome): void {
    const { ending, label } = outcome;
    if (ending.detail === HOST_FLOOR) return;
    const missing = ending.detail === WRONG_ENVIRONMENT ? ending.evidence?.package : null;
    const decision = current.note({
      image: imageOf(outcome.trial),
      missingPackage: typeof missing === 'string' ? missing : null,
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
    hold('breaker');
    events.emit({
      type: 'paused',
      reason: `${reason}; one instance probes in ${config.breaker.probe_after_s} s`,
    });
    later(config.breaker.probe_after_s * 1000, () => {
      current.probe();
      queue.concurrency = 1;
      release('breaker');
    });
  }

  /** What is needed to end attempts is given back first: their work is captured and recorded on the disk that is full. */
  function diskLow(message: string): void {
    if (stop.why) return;
    hold('disk');
    stop.halt(new StopReason('disk_full', `${message}: stopped until there is room`, HOST_FLOOR));
    events.emit({
      type: 'paused',
      reason: `${message}; what ran is stopped and captured until there is room (or run.disk_floor is lower)`,
    });
  }
  function diskRoom(): void {
    events.emit({ type: 'resumed', reason: 'the disk has room again' });
    release('disk');
  }

  stop.onChange(() => {
    if (!stop.why) return;
    imagesWanted.abort();
    ahead.giveUp();
    // Whatever still waits finds out in work() that nothing is started any more.
    queue.concurrency = config.workers;
    holds.clear();
    queue.start();
    for (const entry of [...timers]) entry.fire();
  });

  const beat = setInterval(() => {
    try {
      assertInPlace(store);
      heartbeat(store, run.id, batch.leaseOwner, Date.now());
    } catch (error) {
      breakRun(error);
    }
  }, config.heartbeat_s * 1000);

  try {
    const { disk } = batch;
    if (disk) onFullDisk(store, () => disk.relieve());
    disk?.watch(diskLow, diskRoom);
    assertInPlace(store);
    open += 1;
    // Images become ready in any order; of those that are, the trial that stands first in the order takes the slot.
    for (const [place, trial] of toDo.entries()) {
      open += 1;
      enqueue(trial, -place);
    }
    leave();
    await finished.promise;
  } finally {
    clearInterval(beat);
    batch.disk?.close();
  }
  try {
    await hooks.drain();
  } catch (error) {
    // Of two things that failed the record is what matters.
    broken ??= error;
  }
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
