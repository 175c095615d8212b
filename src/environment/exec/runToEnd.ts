/** A running command until its end, whoever makes it: the command itself, the clock, the caller or the disk. */
import { startTimer, type Timer } from '../../base/async/timer.ts';
import type { ContainerControl } from './ports.ts';
import type { CommandEnd, RunningCommand } from './transport.ts';

/** After a kill request the end mark comes within milliseconds; later than this the container is restarted. */
export const KILL_GRACE_MS = 1500;

export interface Ended {
  readonly end: CommandEnd;
  readonly why: 'itself' | 'timeout' | 'abort' | 'disk';
  readonly durationMs: number;
  readonly running: RunningCommand;
  readonly usedBytes: number;
  /** Nothing else could end it. */
  readonly restarted: boolean;
}

export interface EndedBy {
  /** 0: no limit. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
  readonly watchDisk?: ContainerControl['watchDisk'];
  readonly restart: () => Promise<void>;
}

export async function runToEnd(running: RunningCommand, by: EndedBy): Promise<Ended> {
  const { timeoutMs, signal, watchDisk, restart } = by;
  const began = performance.now();
  const stuck = Promise.withResolvers<'stuck'>();
  let why: Ended['why'] = 'itself';
  let usedBytes = 0;
  let grace: Timer | undefined;
  const stop = (reason: Ended['why']) => {
    if (why !== 'itself') return;
    why = reason;
    running.kill();
    grace = startTimer(KILL_GRACE_MS, () => stuck.resolve('stuck'));
  };
  const timer = startTimer(timeoutMs, () => stop('timeout'));
  const onAbort = () => stop('abort');
  if (signal?.aborted) onAbort();
  signal?.addEventListener('abort', onAbort, { once: true });
  const unwatch = watchDisk?.((bytes) => {
    usedBytes = bytes;
    stop('disk');
  });
  const first = await Promise.race([running.ended, stuck.promise]);
  timer.cancel();
  grace?.cancel();
  unwatch?.();
  signal?.removeEventListener('abort', onAbort);
  let restarted = false;
  if (first === 'stuck')
    // Nothing inside could kill it (everything was stopped, uninterruptible I/O): the container starts again, files stay.
    restarted = await restart().then(
      () => true,
      () => false,
    );
  const end: CommandEnd = first === 'stuck' ? { kind: 'lost' } : first;
  return { end, why, durationMs: performance.now() - began, running, usedBytes, restarted };
}
