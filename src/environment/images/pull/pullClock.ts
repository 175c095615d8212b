/** Time for pulls and for the disk gate; tests pass their own. */
import { setTimeout } from 'node:timers/promises';

export interface PullClock {
  now(): number;
  /** Resolves early, without an error, when the signal aborts. */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
}

const LONGEST_TIMER_MS = 2 ** 31 - 1;

export const systemClock: PullClock = {
  now: Date.now,
  sleep: (ms, signal) =>
    setTimeout(Math.min(ms, LONGEST_TIMER_MS), undefined, { signal }).catch(() => undefined),
};
