/** The standing of a run: that of the record, unless the process that would have to correct it is gone. */
import { dirname } from 'node:path';
import type { Store } from '../store/open.ts';
import { loadRunData, type RunData } from '../store/records/runData.ts';
import type { RunRow, RunStatus } from '../store/records/runs.ts';
import { workerOn } from './control/lock.ts';

/** A killed process cannot write that it ended: of its run the record says "running" until somebody resumes it. */
export const isDead = (root: string, { name, status, created_at }: Standing): boolean =>
  (status === 'running' || status === 'paused') &&
  !hasWorker(root, name) &&
  Date.now() - Date.parse(created_at) > BEGINS_MS;

type Standing = Pick<RunRow, 'name' | 'status' | 'created_at'>;
/** A run that has just been recorded may not have its lock yet. */
const BEGINS_MS = 2000;

function hasWorker(root: string, name: string): boolean {
  try {
    return workerOn(root, name) !== null;
  } catch {
    // A name that no run of ours could have.
    return false;
  }
}

export const statusOf = (root: string, run: Standing): RunStatus =>
  isDead(root, run) ? 'interrupted' : run.status;

/** Trials by class; those that a dead process was working on have not run. */
export function countsOf(
  root: string,
  run: Standing,
  counts: ReadonlyMap<string, number>,
): Record<string, number> {
  const { running = 0, ...others } = Object.fromEntries(counts);
  if (running === 0 || !isDead(root, run)) return Object.fromEntries(counts);
  return { ...others, not_run: (others.not_run ?? 0) + running };
}

/** The data of reports, tables and exports of a run; undefined where there is none. */
export function reportData(store: Store, runId: number): RunData | undefined {
  const data = loadRunData(store, runId);
  return data && settled(dirname(store.name), data);
}

/** The data of a dead run: its trials run no more either. */
function settled(root: string, data: RunData): RunData {
  const status = data.run.status as RunStatus;
  if (!isDead(root, { name: data.run.name, status, created_at: data.run.createdAt })) return data;
  return {
    ...data,
    run: { ...data.run, status: 'interrupted' },
    trials: data.trials.map((trial) =>
      trial.state === 'running' || trial.state === 'leased'
        ? { ...trial, state: 'pending', notRunReason: 'interrupted' }
        : trial,
    ),
  };
}
