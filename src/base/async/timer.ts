/** The one place with timers of Node, which fire at once beyond 2^31-1 ms and hold the process unless told otherwise. */

const LONGEST_MS = 2 ** 31 - 1;

/** Rejects with the signal's reason when that fires first. */
export async function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  const over = Promise.withResolvers<void>();
  const timer = startTimer(Math.max(1, ms), over.resolve);
  try {
    await orAborted(over.promise, signal);
  } finally {
    timer.cancel();
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

interface RetryOptions {
  /** The wait after the failure of try `tried` (1 is the first); undefined gives up. */
  readonly delayMs: (error: unknown, tried: number) => number | undefined;
  /** Told before each wait. */
  readonly onWait?: (error: unknown, ms: number) => void;
  readonly sleep?: (ms: number) => Promise<void>;
}

/** Runs work again after a failure that a wait may mend. A call of a model has its own rules: model/limits/withRetries.ts. */
export async function retry<T>(work: () => Promise<T>, options: RetryOptions): Promise<T> {
  for (let tried = 1; ; tried++) {
    try {
      return await work();
    } catch (error) {
      const ms = options.delayMs(error, tried);
      if (ms === undefined) throw error;
      options.onWait?.(error, ms);
      await (options.sleep ?? sleep)(ms);
    }
  }
}

/** No server means a wait of more than a year. */
const YEAR_MS = 366 * 86_400_000;
const SINCE_2001 = Date.UTC(2001);

/** A moment as a number since 1970, in seconds, ms, µs or ns: whichever lies near. 28 November 2026: one in seconds was "498846h". */
const momentOf = (value: number, now: number): number | undefined =>
  [1000, 1, 1e-3, 1e-6]
    .map((unit) => value * unit)
    .find((at) => at > SINCE_2001 && Math.abs(at - now) <= YEAR_MS);

const UNITS: readonly (readonly [RegExp, number])[] = [
  [/^n(?:ano)?s/, 1e-6],
  [/^(?:us|µs|μs|micros)/, 1e-3],
  [/^(?:ms|msecs?|millis)/, 1],
  [/^s/, 1000],
  [/^m/, 60_000],
  [/^h/, 3_600_000],
  [/^d/, 86_400_000],
];

const PART = /^(\d{1,15}(?:\.\d{1,15})?)\s?([a-zµμ]{1,12})\s?/;

/** "20ms", "6m0s", "1h2m3.5s" as OpenAI writes it, "30 seconds", "PT1M30S". */
function durationOf(text: string): number | undefined {
  let rest = text
    .replace(/^p(?=[\dt])/, '')
    .replaceAll(/[t,]\s?(?=\d)/g, ' ')
    .trim();
  let sum = rest === '' ? undefined : 0;
  while (sum !== undefined && rest !== '') {
    const [part = '', amount, name = ''] = PART.exec(rest) ?? [];
    const unit = UNITS.find(([names]) => names.test(name))?.[1];
    sum = unit === undefined ? undefined : sum + Number(amount) * unit;
    rest = rest.slice(part.length);
  }
  return sum;
}

/**
 * How long `Retry-After` and headers like it ask to wait: a number of `unitMs`, a moment since 1970, a date of HTTP or of ISO, or a duration.
 * A time that has passed is 0; undefined for anything else, and for more than a year.
 */
export function retryAfterMs(
  header: string | null | undefined,
  now: number,
  unitMs = 1000,
): number | undefined {
  const value = header?.trim().slice(0, 100) ?? '';
  // Two headers of one name arrive as `5, 5`.
  const digits = /^"?(\d{1,20}(?:\.\d{1,15})?)"?(?:, ?"?\d{1,20}"?)?$/.exec(value)?.[1];
  const number = digits === undefined ? undefined : Number(digits);
  // Date.parse takes almost anything; a date of HTTP starts with the name of a day.
  const dated = /^(?:mon|tue|wed|thu|fri|sat|sun)|^\d{4}-\d\d-\d\dT/i.test(value);
  const at =
    number === undefined ? (dated ? Date.parse(value) : Number.NaN) : (momentOf(number, now) ?? Number.NaN);
  const ms = Number.isNaN(at)
    ? number === undefined
      ? durationOf(value.toLowerCase())
      : number * unitMs
    : Math.max(0, at - now);
  return ms === undefined || ms > YEAR_MS ? undefined : ms;
}

/** Collects things that were opened one after the other and must be closed on every way out. */
export interface Closing {
  /** Closed before all that was added before it. */
  add(close: () => unknown): void;
  /** Closes every part, whatever becomes of the others. Rejects afterwards with the first failure. */
  closeAll(): Promise<void>;
}

export function createClosing(): Closing {
  const toClose: (() => unknown)[] = [];
  return {
    add: (close) => void toClose.push(close),
    async closeAll() {
      const failures: unknown[] = [];
      for (const close of toClose.splice(0).reverse()) {
        try {
          await close();
        } catch (error) {
          failures.push(error);
        }
      }
      if (failures.length > 0) throw failures[0];
    },
  };
}
