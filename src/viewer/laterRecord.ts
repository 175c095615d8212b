/** The record that a live server reads. Before the first run there is none: then the page is empty and says what to do, and fills by itself. */
import { basename, join, resolve } from 'node:path';
import { openStore, StorageError } from '../store/open.ts';
import { viewerQueries } from '../store/records/viewerQueries.ts';
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
    version: () => `${look()?.queries.dataVersion() ?? 'none'}`,
    newestEvent: () => look()?.queries.newestEvent()?.seq ?? 0,
    close: () => opened?.store.close(),
  };
}

/** A file that another program began to make has no tables yet: it counts as missing. */
function openIfThere(results: string, title: string) {
  try {
    const store = openStore(databaseOf(results), { readonly: true });
    const queries = viewerQueries(store);
    return { store, queries, documents: createDocuments(queries, { title }) };
  } catch (error) {
    if (error instanceof StorageError && error.code === 'missing') return undefined;
    throw error;
  }
}
