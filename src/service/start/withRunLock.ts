/** The lock of a run: only one process works on it. A transaction of the results database keeps two from taking it at once. */
import { pathInside } from '../../base/files/pathInside.ts';
import { currentOwner, isOwnerAlive, ownerLabels } from '../../environment/owner.ts';
import { takeLock } from '../../runner/control/lock.ts';
import { guarded, type Store } from '../../store/open.ts';
import type { Tell } from '../caller.ts';
import { UserError } from '../userError.ts';

/** Not in the run's own folder, which is made from the record and may be deleted while the run works. */
const LOCKS = '.locks';

export interface LockRequest {
  readonly store: Store;
  readonly root: string;
  readonly runName: string;
  readonly tell: Tell;
}

/** Holds the lock during `work`. */
export async function withRunLock<T>(
  { store, root, runName, tell }: LockRequest,
  work: () => Promise<T>,
): Promise<T> {
  const { pid, pidStart, pidNamespace, bootId, host } = currentOwner(runName, 'run');
  const lock = takeLock(
    pathInside(root, LOCKS, runName, 'run.lock'),
    {
      ...{ pid, pidStart, ...(pidNamespace !== undefined && { pidNamespace }), bootId, host },
      since: new Date().toISOString(),
    },
    ({ pidNamespace: space, ...holder }) =>
      isOwnerAlive(
        ownerLabels(
          { ...holder, ...(space !== undefined && { pidNamespace: space }), run: runName, attempt: 'run' },
          '',
          new Date(0),
        ),
      ) !== 'dead',
    (taking) => guarded(store, () => store.transaction(taking).immediate()),
    pathInside(root, runName, 'run.lock'),
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
