/**
 * Monotonic time during which this process was running. While it is stopped (SIGSTOP, a suspended machine, a paused virtual one) it cannot
 * read answers, so that time must not count against any limit.
 */

export interface AwakeClock {
  readonly now: () => number;
  stop(): void;
}

const TICK_MS = 1_000;
/** A longer gap between two ticks means that the process was stopped, not busy. */
const GAP_MS = 5_000;

const realTicks = (look: () => void) => {
  const timer = setInterval(look, TICK_MS);
  timer.unref();
  return { cancel: () => clearInterval(timer) };
};

export function awakeClock(
  now: () => number,
  everyTick: (look: () => void) => { cancel(): void } = realTicks,
): AwakeClock {
  let last = now();
  let asleep = 0;
  const look = (): number => {
    const at = now();
    if (at - last > TICK_MS + GAP_MS) asleep += at - last - TICK_MS;
    last = at;
    return at - asleep;
  };
  const ticks = everyTick(look);
  return { now: look, stop: () => ticks.cancel() };
}
