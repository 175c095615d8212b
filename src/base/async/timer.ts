/** The one place with timers of Node, which fire at once beyond 2^31-1 ms and hold the process unless told otherwise. */
import { setTimeout as wait } from 'node:timers/promises';

const LONGEST_MS = 2 ** 31 - 1;

/** Rejects with the signal's reason when that fires first. */
export async function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  try {
    await wait(Math.min(ms, LONGEST_MS), undefined, { signal });
  } catch (error) {
    throw signal?.aborted ? signal.reason : error;
  }
}

/** Ends early, without an error, when the signal fires. */
export const pause = (ms: number, signal: AbortSignal | undefined): Promise<void> =>
  sleep(ms, signal).catch(() => undefined);

export interface Timer {
  /** Begins anew with the whole time, as after a sign of life. */
  restart(): void;
  cancel(): void;
}

/** Calls `fire` once, `ms` from now; 0 means no limit. With `idle` the process may end meanwhile. */
export function startTimer(ms: number, fire: () => void, { idle = false } = {}): Timer {
  let timer: NodeJS.Timeout | undefined;
  const restart = (): void => {
    clearTimeout(timer);
    if (ms <= 0) return;
    timer = setTimeout(fire, Math.min(ms, LONGEST_MS));
    if (idle) timer.unref();
  };
  restart();
  return { restart, cancel: () => clearTimeout(timer) };
}

/** Waits for work, but not for ever: undefined when it did not end in time. The work itself goes on. */
export async function within<T>(work: Promise<T>, ms: number): Promise<T | undefined> {
  const late = Promise.withResolvers<undefined>();
  const timer = startTimer(Math.max(1, ms), () => late.resolve(undefined));
  try {
    return await Promise.race([work, late.promise]);
  } finally {
    timer.cancel();
  }
}

/** Rejects with the signal's reason when that fires before the work is done. A value that comes later is handed to `late`. */
export async function orAborted<T>(
  work: Promise<T>,
  signal: AbortSignal | undefined,
  late: (value: T) => unknown = () => {},
): Promise<T> {
  if (!signal) return work;
  const aborted = Promise.withResolvers<never>();
  const onAbort = () => aborted.reject(signal.reason);
  if (signal.aborted) onAbort();
  else signal.addEventListener('abort', onAbort, { once: true });
  try {
    return await Promise.race([work, aborted.promise]);
  } catch (error) {
    if (signal.aborted) work.then(late).catch(() => undefined);
    throw error;
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}
