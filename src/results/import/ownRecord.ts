/** The places of a run of this program with all of its rows: a source's files, or the database of the results root that it lies in. */
import { existsSync, statSync } from 'node:fs';
import { basename, dirname, resolve } from 'node:path';
import { recordsIn } from '../../formats/formats.ts';
import { readRecordFile } from '../../run/record/recordFile.ts';
import { databasePath, openForReading } from '../../run/resultsRoot.ts';
import type { Store } from '../../store/open.ts';
import { type RunRow, runByName } from '../../store/records/runs.ts';
import { type RecordedRow, rowsOfRun } from '../../store/records/wholeRun.ts';

type Part = Iterable<RecordedRow> | AsyncIterable<RecordedRow>;

export interface OwnRecord {
  readonly parts: readonly Part[];
  readonly close: () => void;
}

/** Null where there is none: then it is read as what it looks like. */
export async function ownRecord(source: string): Promise<OwnRecord | null> {
  const carried = await recordsIn(source);
  const parts = (carried ?? []).map(
    ({ path, bytes }) =>
      () =>
        readRecordFile(path, bytes),
  );
  const live = openDatabase(source);
  if (live && (!parts[0] || (await isOf(live.run, parts[0]()))))
    return { parts: [rowsOfRun(live.store, live.run.id)], close: () => live.store.close() };
  live?.store.close();
  return carried && { parts: parts.map((part) => part()), close: () => {} };
}

/** The database of the results root that a folder lies in; null for other sources. */
export function databaseBeside(source: string): string | null {
  if (!statSync(source, { throwIfNoEntry: false })?.isDirectory()) return null;
  const path = databasePath(dirname(resolve(source)));
  return existsSync(path) ? path : null;
}

/** Newer than the exports of its runs where a process was killed (observed: tests/results/import/sameFigures.test.ts). */
function openDatabase(source: string): { readonly store: Store; readonly run: RunRow } | null {
  if (databaseBeside(source) === null) return null;
  const folder = resolve(source);
  let store: Store | undefined;
  try {
    store = openForReading(dirname(folder));
    const run = runByName(store, basename(folder));
    if (run) return { store, run };
  } catch {
    // Of another version, or damaged: the folder stands for itself.
  }
  store?.close();
  return null;
}

/** A folder that was copied into another root may have the name of a run there (observed: tests/results/import/sameFigures.test.ts). */
async function isOf(run: RunRow, rows: AsyncIterable<RecordedRow>): Promise<boolean> {
  for await (const [, row] of rows)
    return row.created_at === run.created_at && row.config_hash === run.config_hash;
  return false;
}
