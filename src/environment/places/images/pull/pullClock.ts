/** Time for pulls and for the disk gate; tests pass their own. */
import { pause } from '../../../../base/async/timer.ts';

export interface PullClock {
  now(): number;
  /** Resolves early, without an error, when the signal aborts. */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
}

export const systemPullClock: PullClock = {
  now: Date.now,
  sleep: pause,
};
