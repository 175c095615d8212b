/**
 * Named phases of one attempt: every wait is inside one, its time is stored, and a phase that makes no progress within its
 * deadline aborts the attempt as stalled:<phase>. Time is monotonic.
 */
import { startTimer } from '../../base/async/timer.ts';
import { StopReason } from '../exit.ts';

/** Phases of waiting, which do not count as work of the attempt. */
const NOT_WORKING: ReadonlySet<string> = new Set(['queue', 'pull', 'rate_wait', 'backoff']);

export interface PhaseSink {
  began(seq: number, name: string, offsetMs: number): void;
  ended(seq: number, durationMs: number): void;
}

export interface PhaseTracker {
  /** The running phase once more is progress in it. */
  begin(name: string): void;
  /** Closes the running phase. */
  end(): void;
  readonly current: string;
  elapsedMs(): number;
  workingMs(): number;
}

export interface PhaseOptions {
  readonly now: () => number;
  /** Milliseconds a phase may last before the attempt counts as stalled; absent or 0: no deadline. */
  readonly deadlinesMs?: Readonly<Record<string, number>>;
  readonly onStall?: (stop: StopReason) => void;
  readonly setTimer?: (fn: () => void, ms: number) => { cancel(): void };
}

const realTimer = (fn: () => void, ms: number) => startTimer(Math.max(1, ms), fn);

export function trackPhases(sink: PhaseSink, options: PhaseOptions): PhaseTracker {
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
  /** Checks the clock when the timer fires, because a process that was stopped meanwhile has waited for less. */
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
    begin(next) {
      progress = now();
      if (next === name) return;
      endAt(progress);
      seq += 1;
      name = next;
      sink.began(seq, next, Math.round(since - start));
      const limit = deadlinesMs[next];
      if (limit) watch(next, limit, limit);
    },
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
