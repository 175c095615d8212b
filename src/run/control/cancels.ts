/** Trials that a person takes out of this sitting: one that runs is ended, one that waits does not start. */
import type { ExitReason } from '../../outcome.ts';
import { StopReason } from '../exit.ts';

export interface Cancels {
  has(trialId: number): boolean;
  runs(trialId: number): boolean;
  /** An attempt of the trial begins; the signal ends it. */
  begin(trialId: number): AbortSignal;
  /** It is over, and its container is gone. */
  ended(trialId: number, reason: ExitReason | null): void;
  /** Resolves with how the running attempt ended; null at once where none runs, or when its end is not ours to record. */
  cancel(trialId: number): Promise<ExitReason | null>;
}

interface Running {
  readonly abort: AbortController;
  readonly over: PromiseWithResolvers<ExitReason | null>;
}

export function createCancels(): Cancels {
  const cancelled = new Set<number>();
  const running = new Map<number, Running>();
  return {
    has: (trialId) => cancelled.has(trialId),
    runs: (trialId) => running.has(trialId),
    begin(trialId) {
      const one = { abort: new AbortController(), over: Promise.withResolvers<ExitReason | null>() };
      running.set(trialId, one);
      return one.abort.signal;
    },
    ended(trialId, reason) {
      running.get(trialId)?.over.resolve(reason);
      running.delete(trialId);
    },
    async cancel(trialId) {
      cancelled.add(trialId);
      const one = running.get(trialId);
      one?.abort.abort(new StopReason('cancelled', 'cancelled by a person'));
      return one ? one.over.promise : null;
    },
  };
}
