/** The record that a live server reads. Before the first run there is none: then the page is empty and says what to do, and fills by itself. */
import { basename, join, resolve } from 'node:path';
import { openStore, StorageError, type Store } from '../store/open.ts';
import { type ViewerQueries, viewerQueries } from '../store/records/viewerQueries.ts';
import type { RunList } from './documents/resources.ts';
import { createDocuments, type Documents } from './documents/resources.ts';

export const databaseOf = (results: string): string =>
  results.endsWith('.db') ? results : join(results, 'swebatch.db');

export interface LaterRecord {
  readonly documents: Documents;
  /** Another text whenever something was written, or the record appeared. */
  version(): string;
  newestEvent(): number;
  close(): void;
}

interface Opened {
  readonly store: Store;
  readonly queries: ViewerQueries;
  readonly documents: Documents;
}

export function openRecord(results: string): LaterRecord {
  const title = basename(resolve(results));
  const empty: RunList = { title, madeAt: null, runs: [] };
  let opened: Opened | undefined;
  const look = (): Opened | undefined => {
    opened ??= openIfThere(results, title);
    return opened;
  };
  look();
  return {
    documents: {
      read: (path) => {
        const record = look();
        if (record) return record.documents.read(path);
        return path === 'runs' ? empty : undefined;
      },
    },
    version: () => `${look()?.queries.dataVersion() ?? 'none'}`,
    newestEvent: () => look()?.queries.newestEvent()?.seq ?? 0,
    close: () => opened?.store.close(),
  };
}

/** A file that another program began to make has no tables yet: it counts as missing. */
function openIfThere(results: string, title: string): Opened | undefined {
  try {
    const store = openStore(databaseOf(results), { readonly: true });
    const queries = viewerQueries(store);
    return { store, queries, documents: createDocuments(queries, { title }) };
  } catch (error) {
    if (error instanceof StorageError && error.code === 'missing') return undefined;
    throw error;
  }
}
