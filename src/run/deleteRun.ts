/** Deletes a run: its rows in the database and its folder. */
import { rmSync } from 'node:fs';
import { pathInside } from '../base/files/pathInside.ts';
import type { Store } from '../store/open.ts';
import { listBaselines } from '../store/records/baselines.ts';
import { type RunRow, removeRun } from '../store/records/runs.ts';
import { lockFolder, withRunLock, workerOn } from './control/runLock.ts';
import { UserError } from './userError.ts';

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

/** Holds the lock of the run meanwhile. A run with an unknown process behind it is refused by `requireDeletable`. */
export async function deleteRun(store: Store, root: string, run: RunRow): Promise<void> {
  requireDeletable(store, root, run);
  const lock = { store, root, runName: run.name, tell: () => {} };
  await withRunLock(lock, async () => {
    removeRun(store, run.id);
    rmSync(pathInside(root, run.name), { recursive: true, force: true });
  });
  rmSync(lockFolder(root, run.name), { recursive: true, force: true });
}
