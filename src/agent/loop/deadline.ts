/** The wall-clock limit of an attempt as an AbortSignal, so that a request or a command in flight ends with it. */
import { startTimer, type Timer } from '../../base/async/timer.ts';
import { EnvironmentError } from '../../environment/environment.ts';
import { TimeExceeded } from './exceptions.ts';

interface DeadlineParts {
  readonly limitS: number;
  /** `interrupts`: cuts short what is in flight. `before-query`: looked at between steps only, in whole seconds. */
  readonly mode: 'interrupts' | 'before-query';
  /** Milliseconds, monotonic. */
  readonly now: () => number;
  readonly signal?: AbortSignal | undefined;
}

export interface Deadline {
  /** Fires at the limit, or when the caller's own signal does, with its reason. */
  readonly signal: AbortSignal;
  elapsedMs(): number;
  /** Throws TimeExceeded once the limit is reached. */
  check(): void;
  /** Work that the limit cuts short. Its abort becomes TimeExceeded; a broken environment stays one. */
  during<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T>;
  stop(): void;
}

export const timeExceeded = (limitS: number): TimeExceeded =>
  new TimeExceeded(`the limit of ${limitS} seconds was reached`);

export function startDeadline({ limitS, mode, now, signal: outer }: DeadlineParts): Deadline {
  const started = now();
  const controller = new AbortController();
  const passOn = (): void => controller.abort(outer?.reason);
  let fired = false;
  let timer: Timer | undefined;
  const elapsedMs = (): number => now() - started;
  const elapsed = (): number =>
    mode === 'before-query' ? Math.floor(elapsedMs() / 1000) : elapsedMs() / 1000;

  /** A timer can come early against another clock: look again until it is really time. */
  const arm = (): void => {
    const leftMs = limitS * 1000 - elapsedMs();
    if (leftMs > 0) {
      timer = startTimer(Math.max(leftMs, 1), arm, { idle: true });
      return;
    }
    fired = true;
    controller.abort();
  };
  if (outer?.aborted) passOn();
  else outer?.addEventListener('abort', passOn, { once: true });
  if (mode === 'interrupts' && limitS > 0) arm();

  const check = (): void => {
    if (fired || (0 < limitS && limitS <= elapsed())) throw timeExceeded(limitS);
  };
  const cutShort = (): boolean => fired && !outer?.aborted;
  return {
    signal: controller.signal,
    elapsedMs,
    check,
    async during(work) {
      try {
        const result = await work(controller.signal);
        if (cutShort()) check();
        return result;
      } catch (error) {
        if (cutShort() && !(error instanceof EnvironmentError)) check();
        throw error;
      }
    },
    stop() {
      timer?.cancel();
      outer?.removeEventListener('abort', passOn);
    },
  };
}
