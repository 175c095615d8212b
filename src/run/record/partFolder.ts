import { join } from 'node:path';
import { pathName } from '../../base/text/fileName.ts';
import { LOG_ROOT } from '../../formats/harness/logFolders.ts';
import type { Store } from '../../store/open.ts';
import { armsOf, type RunRow, storedConfig } from '../../store/records/runs.ts';

/** The folder of an attempt's arm and epoch, relative to the run's folder. */
export function partFolder(store: Store, run: RunRow, arm: string, epoch: number): string {
  const epochs = storedConfig(run).run?.epochs ?? 1;
  const single = armsOf(store, run.id).length === 1 && epochs === 1;
  return single ? '' : join(pathName(arm), `epoch-${epoch}`);
}

/** The folder of the logs of that part's gradings, relative to the run's folder. */
export const gradingLogs = (store: Store, run: RunRow, arm: string, epoch: number): string =>
  join(partFolder(store, run, arm, epoch), LOG_ROOT);
