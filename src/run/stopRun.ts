/** Stops a run from another process: the signals are those of a person at its terminal. */

import { workerOn } from './control/runLock.ts';
import { openForReading, requireRun } from './resultsRoot.ts';
import { UserError } from './userError.ts';

export interface StoppedRun {
  readonly run: string;
  /** The process that was told; null when none works on the run. */
  readonly pid: number | null;
  readonly status: string;
}

/** `now`: what runs is cut short and captured; without it running instances finish. Throws a UserError for a run that another machine holds. */
export function stopRun(root: string, selector: string, now: boolean): StoppedRun {
  using store = openForReading(root);
  const run = requireRun(store, selector);
  const worker = workerOn(root, run.name);
  if (!worker) return { run: run.name, pid: null, status: run.status };
  if (worker.life !== 'alive')
    throw new UserError(`pid ${worker.pid} on ${worker.host} works on ${run.name}; stop it there`);
  process.kill(worker.pid, 'SIGINT');
  // Two signals of one kind that come together count once.
  if (now) process.kill(worker.pid, 'SIGTERM');
  return { run: run.name, pid: worker.pid, status: run.status };
}

/** Of a run that no process works on. A process that was killed cannot write that its run ended. */
export const howItIs = (status: string): string =>
  status === 'running' || status === 'paused'
    ? `the one that did was killed while the run was ${status}`
    : `it is ${status}`;
