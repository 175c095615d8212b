/** A results root: its database, and runs by name. */
import { mkdirSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { closest } from '../base/text/closest.ts';
import { openStore, type Store } from '../store/open.ts';
import { findRun, hasRuns, listRuns, type RunRow } from '../store/records/runs.ts';
import { UserError } from './userError.ts';

export const resultsRoot = (option: string | undefined): string => resolve(option ?? 'results');

export const databasePath = (root: string): string => resolve(root, 'swebatch.db');

export const openForReading = (root: string): Store => openStore(databasePath(root), { readonly: true });

export const openForWriting = (root: string): Store => openStore(databasePath(root));

export function makeAndOpen(root: string): Store {
  mkdirSync(root, { recursive: true });
  return openForWriting(root);
}

/** Opened for reading when it is first asked for: comparing files needs no database. */
export function lazyStore(root: string): Disposable & { get(): Store } {
  let store: Store | undefined;
  return {
    get: () => (store ??= openForReading(root)),
    [Symbol.dispose]: () => store?.close(),
  };
}

/** A run by name, unique prefix or "last". */
export function requireRun(store: Store, selector: string): RunRow {
  const found = findRun(store, selector);
  if ('id' in found) return found;
  if (found.candidates.length > 0)
    throw new UserError(`"${selector}" names several runs: ${found.candidates.join(', ')}`);
  if (!hasRuns(store))
    throw new UserError(`${dirname(store.name)} holds no runs yet`, {
      next: { do: 'start_run' },
    });
  const close = closest(
    selector,
    listRuns(store).map(({ name }) => name),
  );
  throw new UserError(`there is no run "${selector}"${close ? `; did you mean "${close}"?` : ''}`, {
    next: { do: 'list_runs', results: dirname(store.name) },
  });
}
