/**
 * Requests of another process to a run. A run that works is asked by a request through the record, whose answer is waited for, or by the signals
 * of a person at its terminal. A run that nobody works on can be deleted.
 */

import { rmSync } from 'node:fs';
import { pause } from '../base/async/timer.ts';
import { pathInside } from '../base/files/pathInside.ts';
import { backUp, newestBackup } from '../store/backup.ts';
import { type ControlRow, controlById, insertControl, withdrawControl } from '../store/live/controls.ts';
import type { Store } from '../store/open.ts';
import { listBaselines } from '../store/records/baselines.ts';
import { type RunRow, removeRun } from '../store/records/runs.ts';
import { giveBackSpace } from '../store/writing.ts';
import { ControlRefusal, REQUEST_HOLDS_MS, readControl } from './control/controlRequest.ts';
import { lockFolder, withRunLock, workerOn } from './control/lock.ts';
import { discardWorkOf } from './places/sittingEngines.ts';
import { openForReading, openForWriting, requireRun } from './resultsRoot.ts';
import { UserError } from './userError.ts';

interface ControlAnswer {
  readonly run: string;
  readonly request: number;
  readonly done: boolean;
  readonly answer: string;
}

interface AskRequest {
  readonly root: string;
  /** Name, unique prefix or "last". */
  readonly run: string;
  readonly command: string;
  readonly argument: string | null;
  /** The name of the person or program, and from where it asks: the events of the run have it. */
  readonly by: string;
  readonly signal?: AbortSignal | undefined;
  readonly waitMs?: number;
}

const LOOK_MS = 100;

/** Throws a UserError for a run that nobody works on, and for words that no run knows. */
export async function askRun(request: AskRequest): Promise<ControlAnswer> {
  const { root, command, argument, by, signal, waitMs = REQUEST_HOLDS_MS } = request;
  try {
    readControl(command, argument);
  } catch (error) {
    throw error instanceof ControlRefusal ? new UserError(error.message) : error;
  }
  using store = openForWriting(root);
  const run = requireRun(store, request.run);
  if (!workerOn(root, run.name)) throw nobodyWorks(root, run);
  const asked_at = new Date().toISOString();
  const id = insertControl(store, { run_id: run.id, asked_at, asked_by: by, command, argument });
  const until = performance.now() + waitMs;
  let missed = 0;
  for (;;) {
    const answer = answerIn(controlById(store, id)!, run);
    if (answer) return answer;
    // A run that ends answers what is open first, so it is looked for twice.
    missed = workerOn(root, run.name) ? 0 : missed + 1;
    const over = missed > 1 || signal?.aborted || performance.now() >= until;
    if (over) return giveUp(store, root, run, id, missed > 1);
    await pause(LOOK_MS, signal);
  }
}

function answerIn({ id, state, answer }: ControlRow, { name }: RunRow): ControlAnswer | null {
  if (state === 'open' || state === 'taken') return null;
  return { run: name, request: id, done: state === 'done', answer: answer ?? 'it was withdrawn' };
}

function giveUp(store: Store, root: string, run: RunRow, id: number, gone: boolean): ControlAnswer {
  const withdrawn = withdrawControl(store, id, new Date().toISOString());
  const late = answerIn(controlById(store, id)!, run);
  if (late && !withdrawn) return late;
  if (gone)
    throw new UserError(
      `the process that worked on ${run.name} ended before it answered; ${withdrawn ? 'nothing was done' : 'what it had begun ended with it'}`,
      { next: { do: 'resume_run', results: root, run: run.name } },
    );
  throw new UserError(
    withdrawn
      ? `the process that works on ${run.name} does not answer; the request is withdrawn, and nothing was done`
      : `the process that works on ${run.name} has taken the request and is not done with it yet`,
    { hint: 'see the run.log of the run' },
  );
}

const nobodyWorks = (root: string, run: RunRow): UserError =>
  new UserError(
    `no process works on ${run.name}; ${howItIs(run.status)}`,
    run.status === 'complete' ? {} : { next: { do: 'resume_run', results: root, run: run.name } },
  );

/**
 * `pid` is null when no process works on the run. `now`: what runs is cut short and captured; without it running instances finish. Throws a
 * UserError for a run that another machine holds.
 */
export function stopRun(root: string, selector: string, now: boolean) {
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

/** The state of a run that no process works on. A process that was killed cannot write that its run ended. */
export const howItIs = (status: string): string =>
  status === 'running' || status === 'paused'
    ? `the one that did was killed while the run was ${status}`
    : `it is ${status}`;

/** Throws a UserError for a run that somebody works on or that is a baseline. */
export function requireDeletable(store: Store, root: string, run: RunRow): void {
  const worker = workerOn(root, run.name);
  if (worker) throw new UserError(`pid ${worker.pid} on ${worker.host} works on ${run.name}; stop it first`);
  const baseline = listBaselines(store).find((one) => one.run_id === run.id);
  if (baseline)
    throw new UserError(`${run.name} is the baseline "${baseline.name}"`, {
      hint: 'remove that baseline first, or set it to another run',
    });
}

/**
 * Holds the lock of the run meanwhile. A run with an unknown process behind it is refused by `requireDeletable`. Returns end states of
 * containers that an engine which does not answer still has.
 */
export async function deleteRun(store: Store, root: string, run: RunRow): Promise<string[]> {
  requireDeletable(store, root, run);
  const lock = { store, root, runName: run.name, tell: () => {} };
  const left = await withRunLock(lock, async () => {
    // Afterwards nobody knows whose they were.
    const kept = await discardWorkOf(store, run);
    removeRun(store, run.id);
    rmSync(pathInside(root, run.name), { recursive: true, force: true });
    return kept;
  });
  rmSync(lockFolder(root, run.name), { recursive: true, force: true });
  giveBackSpace(store);
  // The copy would keep what was deleted, and its space.
  if (newestBackup(store.name) !== undefined) await backUp(store.name, new Date().toISOString());
  return left;
}
