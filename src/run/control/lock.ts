/**
 * The lock of a run: only one process works on it. A file names the holder; it lies beside the record, for the folder of the run's exports may
 * be deleted at any time. Of two processes one wins: a transaction of the results database keeps two from taking it at once. A lock is taken
 * over when its owner is provably dead.
 */

import { closeSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { makeFolder } from '../../base/files/makeFolder.ts';
import { pathInside } from '../../base/files/pathInside.ts';
import { recordOf } from '../../base/isRecord.ts';
import { currentOwner, isOwnerAlive, type Liveness, ownerLabels } from '../../environment/owner.ts';
import type { Store } from '../../store/open.ts';
import { guarded } from '../../store/writing.ts';
import type { Tell } from '../caller.ts';
import { UserError } from '../userError.ts';

export interface LockHolder {
  readonly pid: number;
  readonly pidStart: string;
  readonly pidNamespace?: string | undefined;
  readonly bootId: string;
  readonly host: string;
  readonly since: string;
}

/** Checked by hand: a list of runs reads locks too, and loads nothing that takes longer than its answer. */
function isHolder(value: unknown): value is LockHolder {
  const { pid, pidStart, pidNamespace = '', bootId, host, since } = recordOf(value);
  return (
    typeof pid === 'number' &&
    [pidStart, pidNamespace, bootId, host, since].every((part) => typeof part === 'string')
  );
}

export type LockResult =
  | { ok: true; tookOver: LockHolder | null; release(): void }
  | { ok: false; holder: LockHolder; message: string };

/** Runs `work` while no other process is inside such work for the same results. */
export type Exclusively = <T>(work: () => T) => T;

/**
 * A holder on another host counts as alive. `exclusively` keeps two processes from finding the same dead lock at once: the slower one
 * would remove the new lock of the faster one.
 */
export function takeLock(
  path: string,
  me: LockHolder,
  isAlive: (holder: LockHolder) => boolean,
  exclusively: Exclusively,
): LockResult {
  makeFolder(dirname(path));
  return exclusively(() => {
    const mine = (tookOver: LockHolder | null): LockResult => ({
      ok: true,
      tookOver,
      release: () => releaseLock(path, me),
    });
    if (create(path, me)) return mine(null);
    const holder = readHolder(path);
    if (holder && isAlive(holder))
      return {
        ok: false,
        holder,
        message: `the run is locked by pid ${holder.pid} on ${holder.host} since ${holder.since}; wait for it or stop it. If that process is gone, remove ${path}`,
      };
    // The holder is dead (T-51), or the file is no lock of ours (lock.test.ts).
    rmSync(path, { force: true });
    if (create(path, me)) return mine(holder);
    throw new Error(`cannot take the lock ${path}: another program keeps making it`);
  });
}

/** On a full disk there is no lock at all (T-51). A crash before it is written leaves an empty one, which counts as dead. */
function create(path: string, me: LockHolder): boolean {
  let file: number;
  try {
    file = openSync(path, 'wx');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
  try {
    writeFileSync(file, JSON.stringify(me));
    return true;
  } catch (error) {
    rmSync(path, { force: true });
    throw error;
  } finally {
    closeSync(file);
  }
}

/** The holder that the lock names; null where no lock can be read. */
function readHolder(path: string): LockHolder | null {
  try {
    const read: unknown = JSON.parse(readFileSync(path, 'utf8'));
    return isHolder(read) ? read : null;
  } catch {
    return null;
  }
}

/** Removes the lock only while it is ours. */
function releaseLock(path: string, me: LockHolder): void {
  const holder = readHolder(path);
  if (holder && holder.pid === me.pid && holder.pidStart === me.pidStart && holder.bootId === me.bootId)
    rmSync(path, { force: true });
}

/** Not in the run's own folder, which is made from the record and may be deleted while the run works. */
const LOCKS = '.locks';

interface LockRequest {
  readonly store: Store;
  readonly root: string;
  readonly runName: string;
  readonly tell: Tell;
}

/** Holds nothing but the lock. */
export const lockFolder = (root: string, runName: string): string => pathInside(root, LOCKS, runName);

const lockPath = (root: string, runName: string): string => pathInside(lockFolder(root, runName), 'run.lock');

const livenessOf = ({ pidNamespace: space, ...holder }: LockHolder): Liveness =>
  isOwnerAlive(
    ownerLabels(
      { ...holder, ...(space !== undefined && { pidNamespace: space }), run: '', attempt: 'run' },
      '',
      new Date(0),
    ),
  );

/** The process that works on the run; null when no process does, which is known of this machine's processes only. */
export function workerOn(root: string, runName: string): (LockHolder & { readonly life: Liveness }) | null {
  const holder = readHolder(lockPath(root, runName));
  const life = holder && livenessOf(holder);
  return holder && life && life !== 'dead' ? { ...holder, life } : null;
}

/** Holds the lock during `work`. */
export async function withRunLock<T>(
  { store, root, runName, tell }: LockRequest,
  work: () => Promise<T>,
): Promise<T> {
  const { pid, pidStart, pidNamespace, bootId, host } = currentOwner(runName, 'run');
  const lock = takeLock(
    lockPath(root, runName),
    {
      pid,
      pidStart,
      ...(pidNamespace !== undefined && { pidNamespace }),
      bootId,
      host,
      since: new Date().toISOString(),
    },
    (holder) => livenessOf(holder) !== 'dead',
    (taking) => guarded(store, () => store.transaction(taking).immediate()),
  );
  if (!lock.ok) throw new UserError(lock.message);
  if (lock.tookOver)
    tell({
      level: 'note',
      text: `took over the lock of pid ${lock.tookOver.pid} on ${lock.tookOver.host}; that process is gone`,
    });
  try {
    return await work();
  } finally {
    lock.release();
  }
}
