/** A dataset that was read, and its rows in the record of a run: the columns of an instance, and one hash over the selection. */
import { createHash } from 'node:crypto';
import { headOf, type Instance, type InstanceHead, imageOf } from './instance.ts';

export interface LoadedRow {
  /** Of a large file it is read again each time it is asked for: ask `headOf` for what that knows. */
  readonly instance: Instance;
  readonly head?: InstanceHead;
  /** sha256 of the normalised row; the same whatever file form it came in. */
  readonly rowHash: string;
  /** Line of a JSON file, row number of a Parquet file; from 1, counted on over the files of a sharded split. */
  readonly line: number;
  /** Why it cannot run here; `--skip-unsupported` leaves it out. */
  readonly refused?: string;
}

export interface Dataset {
  /** As the user named it. */
  readonly source: string;
  /** The file, or the first of a sharded split. */
  readonly path: string;
  readonly files: readonly string[];
  readonly split: string | null;
  readonly revision: string | null;
  /** sha256 of the bytes of all files, in order. */
  readonly fileHash: string;
  readonly rows: readonly LoadedRow[];
  /** What was found odd and does not stop a run. */
  readonly warnings?: readonly string[];
  /** Its tasks are folders, which cannot be written as rows. */
  readonly needsFolders?: boolean;
}

type Recorded = Pick<LoadedRow, 'instance' | 'head' | 'rowHash'>;

export function recordedRow(selected: Recorded & { readonly weight?: number }) {
  const { instance, rowHash, weight = 1 } = selected;
  return {
    instance_id: instance.instance_id,
    repo: instance.repo,
    difficulty: instance.difficulty,
    image: imageOf(instance),
    row_hash: rowHash,
    row: JSON.stringify(instance),
    weight,
  };
}

/** Hash over ids and rows in order: runs with the same hash have the same instances. */
export function datasetHash(rows: readonly Recorded[]): string {
  const hash = createHash('sha256');
  for (const [i, row] of rows.entries())
    hash.update(`${i > 0 ? '\n' : ''}${headOf(row).instance_id} ${row.rowHash}`);
  return hash.digest('hex');
}

/** A dataset as flat rows, for `datasets convert`; loading them again gives the same row hashes. */
export function datasetText(instances: readonly Instance[], form: 'jsonl' | 'json'): string {
  const rows = instances.map(({ extra, ...columns }) => ({ ...columns, ...extra }));
  if (form === 'json') return `${JSON.stringify(rows, null, 2)}\n`;
  return rows.map((row) => `${JSON.stringify(row)}\n`).join('');
}
