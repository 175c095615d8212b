/**
 * When a pull may begin: a sliding window of pulls, and the pause that a registry's 429 imposes on all pulls from it, and on nothing else:
 * a mirror serves on while the registry behind it refuses.
 */

export interface PullThrottle {
  /** Milliseconds until the budget allows the next pull. */
  wait(now: number): number;
  /** A pull begins. */
  begin(now: number): void;
  /** The registry refused; returns when pulls from it go on. */
  refuse(registry: string, now: number, resetMs: number | undefined): number;
  /** Until when the registry is to be left alone; undefined when it may be asked. */
  refusedUntil(registry: string, now: number): number | undefined;
  /** A pull came through: the next refusal starts from the short pause again. */
  succeed(registry: string): void;
}

const FIRST_PAUSE_MS = 60_000;
const LONGEST_PAUSE_MS = 15 * 60_000;

interface Refusal {
  until: number;
  times: number;
}

export function pullThrottle(limits: {
  pulls: number;
  windowMs: number;
  firstPauseMs?: number;
  /** Moments of pulls that an earlier process began. */
  begun?: readonly number[];
}): PullThrottle {
  const begun = [...(limits.begun ?? [])].sort((a, b) => a - b).slice(-Math.max(1, limits.pulls));
  const refusals = new Map<string, Refusal>();
  return {
    wait(now) {
      if (limits.pulls === 0) return 0;
      while (begun.length > 0 && begun[0]! <= now - limits.windowMs) begun.shift();
      return begun.length < limits.pulls ? 0 : begun[0]! + limits.windowMs - now;
    },
    begin(now) {
      if (limits.pulls === 0) return;
      begun.push(now);
      if (begun.length > limits.pulls) begun.shift();
    },
    refuse(registry, now, resetMs) {
      const before = refusals.get(registry) ?? { until: 0, times: 0 };
      // Pulls that ran side by side are refused together: that is one refusal.
      const alreadyKnown = now < before.until;
      const first = limits.firstPauseMs ?? FIRST_PAUSE_MS;
      const growing = Math.min(first * 2 ** before.times, LONGEST_PAUSE_MS);
      // "Now", or a moment that has passed, and refused all the same: asking at once again would go on for ever.
      const pause = resetMs !== undefined && resetMs > 0 ? resetMs : alreadyKnown ? 0 : growing;
      const until = Math.max(before.until, now + pause);
      refusals.set(registry, { until, times: before.times + (alreadyKnown ? 0 : 1) });
      return until;
    },
    refusedUntil(registry, now) {
      const until = refusals.get(registry)?.until ?? 0;
      return now < until ? until : undefined;
    },
    succeed(registry) {
      const known = refusals.get(registry);
      if (known) known.times = 0;
    },
  };
}
