/** A run by name, or results of another tool by path: runs win, so that a folder of the same name hides none. */
import { existsSync } from 'node:fs';
import type { Caller } from '../../run/caller.ts';
import { databasePath, openForReading } from '../../run/resultsRoot.ts';
import { findRun } from '../../store/records/runs.ts';
import { type OpenedSource, openSource } from './openSource.ts';

/** Null for a run of the results root, and where nothing of another tool is there. */
export async function foreignRun(
  selector: string,
  root: string,
  caller: Pick<Caller, 'env' | 'tell'>,
): Promise<OpenedSource | null> {
  return !existsSync(selector) || isRun(selector, root) ? null : await openSource(selector, caller);
}

/** A record that cannot be opened names no run: what stands beside it can be read all the same. */
function isRun(selector: string, root: string): boolean {
  if (!existsSync(databasePath(root))) return false;
  try {
    using store = openForReading(root);
    return 'id' in findRun(store, selector);
  } catch {
    return false;
  }
}
