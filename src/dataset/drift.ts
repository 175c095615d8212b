/** What changed between two readings of a dataset: revisions drift under one name, and a run must say which one it used. */
import type { Instance } from './instance.ts';
import { gradingHashOf, rowHashOf } from './read/row.ts';

export interface DatasetReading {
  readonly revision: string | null;
  readonly rows: readonly Instance[];
}

export interface DatasetDrift {
  readonly same: boolean;
  readonly added: readonly string[];
  readonly removed: readonly string[];
  /** Rows whose text changed; `grading` lists those among them whose verdict may change with it. */
  readonly changed: readonly string[];
  readonly grading: readonly string[];
  /** For people; empty when nothing changed. */
  readonly message: string;
}

export function datasetDrift(before: DatasetReading, after: DatasetReading): DatasetDrift {
  const [old, now] = [before, after].map((d) => new Map(d.rows.map((row) => [row.instance_id, row])));
  const added = [...now!.keys()].filter((id) => !old!.has(id));
  const removed = [...old!.keys()].filter((id) => !now!.has(id));
  const common = [...now!.values()].flatMap((row) => {
    const earlier = old!.get(row.instance_id);
    return earlier ? [[earlier, row] as const] : [];
  });
  const differ = (hash: (row: Instance) => string) =>
    common.filter(([a, b]) => hash(a) !== hash(b)).map(([, row]) => row.instance_id);
  const changed = differ(rowHashOf);
  const grading = differ(gradingHashOf);
  const parts = [
    before.revision === after.revision
      ? ''
      : `revision ${before.revision?.slice(0, 12) ?? 'unknown'} → ${after.revision?.slice(0, 12) ?? 'unknown'}`,
    some('added', added),
    some('removed', removed),
    some('changed', changed),
    some('with other tests or scripts', grading),
  ].filter((part) => part !== '');
  const same = added.length + removed.length + changed.length === 0;
  return {
    same,
    added,
    removed,
    changed,
    grading,
    message: parts.length ? `the dataset changed: ${parts.join('; ')}` : '',
  };
}

const SHOWN = 5;
const some = (what: string, ids: readonly string[]) =>
  ids.length === 0
    ? ''
    : `${ids.length} ${what} (${ids.slice(0, SHOWN).join(', ')}${ids.length > SHOWN ? ', …' : ''})`;
