/**
 * The stop ladder. Stage 1 stops starting and lets the running finish (or captures them), stage 2 captures and removes
 * containers within the grace, stage 3 exits at once. Signals, budget and breaker all come through here. Below it: waiting for
 * work that may ignore its signal.
 */

import { startTimer } from '../../base/async/timer.ts';
import { errorText } from '../../base/text/errorText.ts';
import type { ExitReason } from '../../outcome.ts';
import { StorageError } from '../../store/open.ts';

/** The reason why our own AbortSignal fired. */
export class StopReason extends Error {
  override readonly name = 'StopReason';
  readonly reason: ExitReason;
  readonly detail: string | null;
  constructor(reason: ExitReason, message: string, detail: string | null = null) {
    super(message);
    this.reason = reason;
    this.detail = detail;
  }
}

export type StopLadder = ReturnType<typeof createStopLadder>;

interface StopOptions {
  readonly onInterrupt: 'finish' | 'capture';
  readonly graceS: number;
  /** Called at stage 3. */
  readonly exitNow: () => void;
  readonly setTimer?: (fn: () => void, ms: number) => void;
}

/** Share of the grace; the rest is for the removal. */
const FOR_CAPTURE = 2 / 3;

const realTimer = (fn: () => void, ms: number) => void startTimer(Math.max(1, ms), fn, { idle: true });

export function createStopLadder(options: StopOptions) {
  const { setTimer = realTimer } = options;
  let controller = new AbortController();
  const capturing = new AbortController();
  const grace = new AbortController();
  const listeners: (() => void)[] = [];
  let stage: 0 | 1 | 2 | 3 = 0;
  let why: { reason: ExitReason; message: string } | null = null;
  let interruptedBy: string | null = null;
  const changed = () => {
    for (const listener of listeners) listener();
  };
  const abortAttempts = () => {
    if (controller.signal.aborted) return;
    controller.abort(new StopReason('cancelled', `interrupted by ${interruptedBy ?? 'the run'}`));
    const over = () => new Error(`not done in the ${options.graceS} s of run.stop_grace_s`);
    setTimer(() => capturing.abort(over()), options.graceS * 1000 * FOR_CAPTURE);
    setTimer(() => grace.abort(over()), options.graceS * 1000);
  };

  return {
    get stage(): 0 | 1 | 2 | 3 {
      return stage;
    },
    /** The reason why nothing new is started; null while the run is on. */
    get why(): { readonly reason: ExitReason; readonly message: string } | null {
      return why;
    },
    get interruptedBy(): string | null {
      return interruptedBy;
    },
    /** After the second press: fires when the rest of the grace is needed to remove containers. */
    captureEnds: capturing.signal as AbortSignal,
    /** After the second press: fires when the grace is over. */
    graceEnds: grace.signal as AbortSignal,
    /** Fires when the attempts that run now must end. Another signal after each `halt`: an attempt keeps the one it began with. */
    get attempts(): AbortSignal {
      return controller.signal;
    },
    /** Ends the attempts that run now and lets the run go on. */
    halt(reason: StopReason): void {
      if (stage >= 2) return;
      const running = controller;
      controller = new AbortController();
      running.abort(reason);
    },
    onChange: (listener: () => void) => void listeners.push(listener),
    /** Stops starting for an internal reason: budget, authentication. */
    stopStarting(reason: ExitReason, message: string): void {
      why ??= { reason, message };
      changed();
    },
    /** One press of Ctrl-C or one SIGTERM. Returns the sentence to show. */
    interrupt(signalName: string): string {
      // Two signals that wait together may be handed over in either order (stop.test.ts): "ctl stop --now" is Ctrl-C in both.
      if (interruptedBy === null || (interruptedBy === 'SIGTERM' && signalName === 'SIGINT'))
        interruptedBy = signalName;
      why ??= { reason: 'cancelled', message: `interrupted by ${signalName}` };
      stage = Math.min(3, stage + 1) as 0 | 1 | 2 | 3;
      if (stage === 1 && options.onInterrupt === 'capture') stage = 2;
      if (stage >= 2) abortAttempts();
      changed();
      if (stage === 1)
        return 'stopping: nothing new is started, running instances finish. Again: capture their work and remove containers.';
      if (stage === 2)
        return `stopping now: capturing work and removing containers (up to ${options.graceS} s). Again: exit at once, containers are removed at the next start.`;
      options.exitNow();
      return 'exiting at once';
    },
  };
}

export type RecordFailure = ReturnType<typeof createRecordFailure>;

/**
 * When the record cannot be kept (T-53), nothing new starts, running attempts end as by a second interrupt, and the first error is thrown at the
 * end, after an orderly shutdown.
 */
export function createRecordFailure(stop: StopLadder) {
  let first: unknown = null;
  const report = (error: unknown) => {
    if (first !== null) return;
    first = error;
    stop.stopStarting('internal_error', errorText(error));
    while (stop.stage < 2) stop.interrupt('a storage error');
  };
  return {
    report,
    /** Guards a write in a callback, which cannot throw. */
    guard(write: () => void): void {
      try {
        write();
      } catch (error) {
        report(error);
      }
    },
    /** Notes an error after the work: thrown at the end, unless there was one before. */
    note(error: unknown): void {
      first ??= error;
    },
    throwIfAny(): void {
      if (first === null) return;
      throw first instanceof Error ? first : new StorageError('write_failed', String(first));
    },
  };
}

/** Waits for `work` or the abort, whichever is first; a late result goes to `late`. */
export function orAbort<T>(
  work: Promise<T>,
  signal: AbortSignal,
  late?: (value: T) => Promise<void>,
): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    let settled = false;
    const onAbort = () => {
      if (settled) return;
      settled = true;
      reject(signal.reason instanceof Error ? signal.reason : new StopReason('cancelled', 'cancelled'));
    };
    if (signal.aborted) queueMicrotask(onAbort);
    else signal.addEventListener('abort', onAbort, { once: true });
    work.then(
      (value) => {
        signal.removeEventListener('abort', onAbort);
        if (settled) void late?.(value).catch(() => {});
        else {
          settled = true;
          resolve(value);
        }
      },
      (error: unknown) => {
        signal.removeEventListener('abort', onAbort);
        if (settled) return;
        settled = true;
        reject(error instanceof Error ? error : new Error(String(error)));
      },
    );
  });
}
