/**
 * Monotonic time in which this process could work. While it is stopped (SIGSTOP, a suspended machine, a paused virtual one) the answers
 * that it waits for cannot be read: that time is nobody's delay, and no limit may fall due because of it.
 */

export interface AwakeClock {
  readonly now: () => number;
  stop(): void;
}

const TICK_MS = 1_000;
/** A gap longer than this between two looks is no busy moment. */
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
