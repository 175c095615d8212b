/** Time as the model layer sees it, so that tests need not wait. */

import { sleep } from '../../base/async/timer.ts';

export interface Clock {
  /** Milliseconds, monotonic: for durations and deadlines. */
  readonly now: () => number;
  /** Milliseconds since 1970: for records and for Retry-After dates. */
  readonly wall: () => number;
  /** Rejects with the signal's reason when that fires first. */
  readonly sleep: (ms: number, signal?: AbortSignal) => Promise<void>;
  /** 0 to 1. */
  readonly random: () => number;
}

export const systemClock: Clock = {
  now: () => performance.now(),
  wall: () => Date.now(),
  sleep,
  random: Math.random,
};

/** 500 → "500ms", 3000 → "3s", 250000 → "4m10s", 86400000 → "24h". */
export function formatDuration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)}ms`;
  const seconds = Math.round(ms / 100) / 10;
  if (seconds < 60) return `${seconds}s`;
  const whole = Math.round(ms / 1000);
  const hours = Math.floor(whole / 3600);
  const minutes = Math.floor((whole % 3600) / 60);
  const rest = whole % 60;
  return `${hours ? `${hours}h` : ''}${minutes ? `${minutes}m` : ''}${rest && !hours ? `${rest}s` : ''}`;
}
