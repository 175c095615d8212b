/** The end of an attempt in its environment: its work is captured, then the environment is removed, each within a limit of its own. */

import { startTimer, type Timer } from '../../base/async/timer.ts';
import { type CapturedPatch, type Environment, isLoss } from '../../environment/environment.ts';
import { StorageError } from '../../store/open.ts';
import type { Run } from '../contract.ts';
import { orAbort } from '../control/orAbort.ts';
import type { PhaseTracker } from '../control/phases.ts';
import type { Ending } from '../exit.ts';
import type { AttemptJournal } from '../record/attemptJournal.ts';

/** A limit of 0 means none; an hour is longer than any capture or removal takes. */
const WITHOUT_LIMIT_S = 3600;

export interface CapturedWork {
  readonly captured: CapturedPatch | null;
  /** Set when the engine went away with the work in it. */
  readonly lost: unknown;
}

/** Captures the work for every exit reason, except when the container is gone. */
export async function captureWork(
  { config: { stall }, stop, now }: Run,
  journal: AttemptJournal,
  environment: Environment,
  ending: Ending,
): Promise<CapturedWork> {
  if (ending.reason === 'env_died') return { captured: null, lost: null };
  journal.phases.begin('capture');
  const limit = limitBy(now, Math.max(1, stall.capture_s || WITHOUT_LIMIT_S));
  try {
    const work = orAbort(environment.capturePatch(), limit.signal);
    return { captured: await orAbort(work, stop.captureEnds), lost: null };
  } catch (error) {
    if (error instanceof StorageError) throw error;
    const { message } = error as Error;
    journal.note(`the work could not be captured: ${message}`);
    journal.warn('capture failed', { message });
    return { captured: null, lost: isLoss(error) ? error : null };
  } finally {
    limit.cancel();
  }
}

/** The end state of the container as an image, for tasks that are graded by it; null where it could not be kept. */
export async function leaveWork(
  { config: { stall }, stop, now }: Run,
  journal: AttemptJournal,
  environment: Environment,
  ending: Ending,
): Promise<string | null> {
  if (ending.reason === 'env_died' || !environment.keepWork) return null;
  const limit = limitBy(now, Math.max(1, stall.capture_s || WITHOUT_LIMIT_S));
  try {
    const kept = orAbort(environment.keepWork(), limit.signal);
    return await orAbort(kept, stop.captureEnds);
  } catch (error) {
    const { message } = error as Error;
    journal.note(`the end state of the container could not be kept, so its patch is graded: ${message}`);
    journal.warn('the work could not be kept', { message });
    return null;
  } finally {
    limit.cancel();
  }
}

/** By the clock of the run, which stands still while the engine is away. */
function limitBy(now: () => number, seconds: number): { signal: AbortSignal; cancel(): void } {
  const controller = new AbortController();
  const began = now();
  let timer: Timer;
  const look = (ms: number): void => {
    timer = startTimer(ms, () => {
      const left = seconds * 1000 - (now() - began);
      if (left >= 1) look(left);
      else controller.abort(new Error(`not done within ${seconds} s`));
    });
  };
  look(seconds * 1000);
  return { signal: controller.signal, cancel: () => timer.cancel() };
}

/** A daemon that does not answer must not hold the slot; the factory's close waits for the removal once more. */
export async function removeEnvironment(
  { config: { stall }, stop }: Run,
  journal: AttemptJournal,
  environment: Environment,
): Promise<void> {
  beginStop(journal.phases);
  const limitS = stall.stop_s || WITHOUT_LIMIT_S;
  try {
    await orAbort(orAbort(environment.close(), AbortSignal.timeout(limitS * 1000)), stop.graceEnds);
  } catch {
    journal.note(
      stop.graceEnds.aborted
        ? 'the container was still there when the grace period of the interrupt ended; "swebatch clean" removes it'
        : `the container was still there after ${limitS} s (run.stall.stop_s); "swebatch clean" removes it`,
    );
    journal.warn('the container could not be removed in time');
  }
}

/** The container is removed even when the phase cannot be recorded; another write throws the storage error. */
function beginStop(phases: PhaseTracker): void {
  try {
    phases.begin('stop');
  } catch (error) {
    if (!(error instanceof StorageError)) throw error;
  }
}
