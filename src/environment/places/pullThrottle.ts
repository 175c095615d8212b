/**
 * When a pull may begin: a sliding window of pulls for each registry, which engines and processes share, and the pause that a registry's 429 imposes on all pulls from it, and on nothing else:
 * a mirror serves on while the registry behind it refuses.
 */

export interface PullThrottle {
  /** 0 when the pull may begin, and is counted; else after how many milliseconds there may be room. */
  take(registry: string, now: number): number;
  /** The registry refused; returns when pulls from it go on. */
  refuse(registry: string, now: number, resetMs: number | undefined): number;
  /** Until when the registry is to be left alone; undefined when it may be asked. */
  refusedUntil(registry: string, now: number): number | undefined;
  /** A pull came through: the next refusal starts from the short pause again. */
  succeed(registry: string): void;
}

export interface PullAsk {
  readonly registry: string;
  /** Milliseconds since 1970. */
  readonly at: number;
  /** Pulls of one window. */
  readonly pulls: number;
  readonly windowMs: number;
}

/** The pulls of all who share a budget. */
export interface PullBook {
  take(ask: PullAsk): number;
}

/** Of those who have nothing else in common. */
export function ownPullBook(): PullBook {
  const begunOf = new Map<string, number[]>();
  return {
    take({ registry, at, pulls, windowMs }) {
      const begun = (begunOf.get(registry) ?? []).filter((one) => one > at - windowMs);
      begunOf.set(registry, begun);
      if (begun.length >= pulls) return begun[begun.length - pulls]! + windowMs - at;
      begun.push(at);
      return 0;
    },
  };
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
  /** Shared with other engines and processes. */
  book?: PullBook | undefined;
}): PullThrottle {
  const { pulls, windowMs, book = ownPullBook() } = limits;
  const refusals = new Map<string, Refusal>();
  return {
    take: (registry, at) => (pulls === 0 ? 0 : book.take({ registry, at, pulls, windowMs })),
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
