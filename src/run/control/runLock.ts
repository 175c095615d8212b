/** The lock of a run: only one process works on it. A transaction of the results database keeps two from taking it at once. */
import { pathInside } from '../../base/files/pathInside.ts';
import { currentOwner, isOwnerAlive, type Liveness, ownerLabels } from '../../environment/owner.ts';
import { guarded, type Store } from '../../store/open.ts';
import type { Tell } from '../caller.ts';
import { UserError } from '../userError.ts';
import { type LockHolder, readHolder, takeLock } from './lock.ts';

/** Not in the run's own folder, which is made from the record and may be deleted while the run works. */
const LOCKS = '.locks';

export interface LockRequest {
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
      ...{ pid, pidStart, ...(pidNamespace !== undefined && { pidNamespace }), bootId, host },
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
