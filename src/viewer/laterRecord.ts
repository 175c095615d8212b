/**
 * The record that a live server reads. Before the first run there is none: then the page is empty and says what to do, and fills by itself
 * (observed: tests/viewer/emptyRoot.test.ts).
 */
import { basename, join, resolve } from 'node:path';
import { openStore, StorageError, type Store } from '../store/open.ts';
import { dataVersion } from '../store/query.ts';
import { newestEvent } from '../store/records/attemptBodies.ts';
import { createDocuments, type RunList } from './documents/resources.ts';

export const databaseOf = (results: string): string =>
  results.endsWith('.db') ? results : join(results, 'swebatch.db');

export function openRecord(results: string) {
  const title = basename(resolve(results));
  const empty: RunList = { title, madeAt: null, runs: [] };
  let opened: ReturnType<typeof openIfThere>;
  const look = () => {
    opened ??= openIfThere(results, title);
    return opened;
  };
  look();
  const asked = (question: (store: Store) => number): number | undefined => {
    const record = look();
    return record && question(record.store);
  };
  return {
    documents: {
      read: (path: string) => {
        const record = look();
        if (record) return record.documents.read(path);
        return path === 'runs' ? empty : undefined;
      },
      *prepareList() {
        yield* look()?.documents.prepareList() ?? [];
      },
    },
    /** Another text whenever something was written, or the record appeared. */
    version: () => `${asked(dataVersion) ?? 'none'}`,
    newestEvent: () => asked(newestEvent) ?? 0,
    close: () => opened?.store.close(),
  };
}

/** A file that another program began to make has no tables yet: it counts as missing (observed: tests/viewer/emptyRoot.test.ts). */
function openIfThere(results: string, title: string) {
  try {
    const store = openStore(databaseOf(results), { readonly: true });
    return { store, documents: createDocuments(store, { title }) };
  } catch (error) {
    if (error instanceof StorageError && error.code === 'missing') return undefined;
    throw error;
  }
}
