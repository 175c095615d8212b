/**
 * Named phases of one attempt: every wait is inside one, its time is stored, and a phase that makes no progress within its
 * deadline aborts the attempt as stalled:<phase>. Time is monotonic, and stands still while this process is stopped.
 */

import { startTimer } from '../../base/async/timer.ts';
import type { RunConfig } from '../../config/configSchema.ts';
import type { ArmRuntime } from '../arms.ts';
import { StopReason } from './stop.ts';

/** Phases of waiting, which do not count as work of the attempt. */
const NOT_WORKING: ReadonlySet<string> = new Set(['queue', 'pull', 'rate_wait', 'backoff']);

interface PhaseSink {
  began(seq: number, name: string, offsetMs: number): void;
  ended(seq: number, durationMs: number): void;
}

interface PhaseOptions {
  readonly now: () => number;
  /** Milliseconds a phase may last before the attempt counts as stalled; absent or 0: no deadline. */
  readonly deadlinesMs?: Readonly<Record<string, number>>;
  readonly onStall?: (stop: StopReason) => void;
  readonly setTimer?: (fn: () => void, ms: number) => { cancel(): void };
}

const realTimer = (fn: () => void, ms: number) => startTimer(Math.max(1, ms), fn);

export function trackPhases(sink: PhaseSink, options: PhaseOptions) {
  const { now, deadlinesMs = {}, onStall = () => {}, setTimer = realTimer } = options;
  const start = now();
  let seq = -1;
  let name = '';
  /** The end of the last phase and the begin of the next: phases have no gaps, so recording time counts too. */
  let since = start;
  /** When the running phase was last begun, which it may be several times: calls of a program overlap. */
  let progress = start;
  let waiting = 0;
  let timer: { cancel(): void } | null = null;
  const endAt = (at: number) => {
    if (name === '') return;
    const duration = at - since;
    since = at;
    if (NOT_WORKING.has(name)) waiting += duration;
    timer?.cancel();
    timer = null;
    sink.ended(seq, Math.round(duration));
    name = '';
  };
  const reached = () => (name === '' ? since : now());
  /** The clock is checked when the timer fires: a process that was stopped meanwhile has waited for less (T-63). */
  const watch = (phase: string, limit: number, ms: number) => {
    timer = setTimer(() => {
      const left = limit - (now() - progress);
      if (left >= 1) watch(phase, limit, left);
      else
        onStall(
          new StopReason(
            'stalled',
            `no progress in phase "${phase}" for ${Math.round(limit / 1000)} s`,
            phase,
          ),
        );
    }, ms);
  };
  return {
    /** The running phase once more is progress in it. */
    begin(next: string): void {
      progress = now();
      if (next === name) return;
      endAt(progress);
      seq += 1;
      name = next;
      sink.began(seq, next, Math.round(since - start));
      const limit = deadlinesMs[next];
      if (limit) watch(next, limit, limit);
    },
    /** Closes the running phase. */
    end: () => endAt(now()),
    get current() {
      return name;
    },
    elapsedMs: () => Math.round(reached() - start),
    workingMs: () => {
      const at = reached();
      return Math.round(at - start - waiting - (NOT_WORKING.has(name) ? at - since : 0));
    },
  };
}

/** An installed agent between two calls of a model: it may run the tests of the repository. */
const PROGRAM_S = 1800;

/** The milliseconds that each phase of an attempt may go without progress before it counts as stalled; 0 is no deadline. */
export function phaseDeadlines(
  stall: RunConfig['stall'],
  { environment, model }: Pick<ArmRuntime, 'environment' | 'model'>,
): Readonly<Record<string, number>> {
  // A command and a call have timeouts of their own: only what outlives them has stalled.
  const exec = stall.exec_s || (environment.timeout > 0 ? environment.timeout * 2 + 60 : 0);
  const call = stall.model_s || (model.total_timeout_s > 0 ? model.total_timeout_s + 60 : 0);
  const seconds = {
    start: stall.start_s,
    probe: stall.start_s,
    unpack: stall.seal_s,
    seal: stall.seal_s,
    verify: stall.seal_s,
    snapshot: stall.seal_s,
    setup: stall.setup_s,
    rate_wait: stall.rate_wait_s,
    backoff: stall.backoff_s,
    exec,
    program: stall.exec_s || PROGRAM_S,
    model: call,
    // Has a limit of its own, after which the attempt goes on without the patch.
    capture: 0,
  };
  return Object.fromEntries(Object.entries(seconds).map(([phase, s]) => [phase, s * 1000]));
}

const TICK_MS = 1_000;
/** A longer gap between two ticks means that the process was stopped, not busy. */
const GAP_MS = 5_000;

const realTicks = (look: () => void) => {
  const timer = setInterval(look, TICK_MS);
  timer.unref();
  return { cancel: () => clearInterval(timer) };
};

/**
 * Monotonic time during which this process was running (T-63). While it is stopped (SIGSTOP, a suspended machine, a paused virtual one) it cannot
 * read answers, so that time must not count against any limit.
 */
export function awakeClock(
  now: () => number,
  everyTick: (look: () => void) => { cancel(): void } = realTicks,
) {
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
