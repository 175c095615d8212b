/** One command on this machine, in a process group of its own, with its output in the order of writing. */

import { type ChildProcess, spawn } from 'node:child_process';
import { constants } from 'node:os';
import { startTimer } from '../../base/async/timer.ts';
import { createCollector, type OutputCollector } from '../exec/outputCollector.ts';
import { createPace } from '../exec/pace.ts';
import { shellScript } from '../shellScript.ts';
import { sweepMarked, ticksNow } from './sweepMarked.ts';

const RUN_PROCESS = shellScript('runProcess.sh', import.meta.url);
/** Seconds after its timeout at which coreutils ends a command that nobody has stopped. */
const OUTLIVES_S = 5;
/** How long after the end of a command whose output somebody else still holds open its last bytes are waited for. */
const LAST_BYTES_MS = 50;

export interface LocalCommand {
  readonly line: readonly string[];
  readonly cwd: string;
  readonly env: Record<string, string>;
  readonly timeoutS: number;
  readonly maxBytes: number;
  readonly mark: string;
  readonly signal?: AbortSignal | undefined;
}

export interface LocalEnd {
  /** An error when nothing could be started. */
  readonly code: number | NodeJS.ErrnoException;
  readonly timedOut: boolean;
  readonly durationMs: number;
  readonly collector: OutputCollector;
}

export async function runProcess(command: LocalCommand): Promise<LocalEnd> {
  const { timeoutS, signal, mark } = command;
  const collector = createCollector(command.maxBytes);
  const began = performance.now();
  const since = ticksNow();
  const child = start(command);
  let timedOut = false;
  let sweeping: Promise<void> | undefined;
  const stop = () => {
    sweeping ??= sweepMarked(mark, since, child.pid);
  };
  const onTimeout = () => {
    timedOut = true;
    stop();
  };
  const timer = startTimer(timeoutS * 1000, onTimeout);
  signal?.addEventListener('abort', stop, { once: true });
  const pace = child.stdout ? createPace(child.stdout) : undefined;
  child.stdout?.on('data', (chunk: Buffer) => {
    collector.push(chunk);
    pace?.(chunk.length, collector.totalBytes);
  });
  const code = await endOf(child, () => {
    timer.cancel();
    signal?.removeEventListener('abort', stop);
  });
  // The command may be dead before what it left elsewhere is.
  await sweeping;
  return { code, timedOut, durationMs: performance.now() - began, collector };
}

function start({ line, cwd, env, timeoutS }: LocalCommand): ChildProcess {
  const deadline = timeoutS > 0 ? String(Math.ceil(timeoutS) + OUTLIVES_S) : '';
  // Detached makes a process group.
  return spawn('/bin/sh', ['-c', RUN_PROCESS, 'swebatch-local', deadline, ...line], {
    cwd,
    env,
    stdio: ['ignore', 'pipe', 'ignore'],
    detached: true,
  });
}

/** `exit`, not `close`: a background child that keeps stdout open does not delay the end. What is in the pipe is read first. */
function endOf(child: ChildProcess, onExit: () => void): Promise<number | NodeJS.ErrnoException> {
  return new Promise((resolve) => {
    child.on('error', (error) => {
      onExit();
      resolve(error);
    });
    child.on('exit', (status, signalName) => {
      onExit();
      const done = () => resolve(status ?? 128 + (signalName ? constants.signals[signalName] : 0));
      if (child.stdout?.readableEnded) return done();
      const idle = startTimer(LAST_BYTES_MS, done);
      child.stdout?.on('end', () => {
        idle.cancel();
        done();
      });
    });
  });
}
