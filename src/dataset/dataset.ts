/** A dataset that was read, and its rows in the record of a run: the columns of an instance, and one hash over the selection. */
import { createHash } from 'node:crypto';
import { type Instance, type InstanceHead, imageOf } from './instance.ts';

/** `headOf`, `readInstance` and `readRowHash` tell what is in a row. */
export type LoadedRow = HeldRow | RowInFile;

interface Row {
  /** Line of a JSON file, row number of a Parquet file; from 1, counted on over the files of a sharded split. */
  readonly line: number;
  /** The reason why the instance cannot run here; `--skip-unsupported` leaves it out. */
  readonly refused?: string;
  /** The number of instances of its stratum for which this one stands; absent: 1. */
  readonly weight?: number;
}

export interface HeldRow extends Row {
  readonly instance: Instance;
  /** sha256 of the normalised row; the same whatever file form it came in. */
  readonly rowHash: string;
}

/** A row of a large file, which stays there: its head, and where the rest is. Half a million of them are in memory, so each is one flat object. */
export interface RowInFile extends Row, InstanceHead {
  readonly file: RowFile;
  /** Number among the rows of its file. */
  readonly at: number;
  /** The place of its line, in bytes. */
  readonly start: number;
  readonly length: number;
}

/** Reads the row again; throws when the file has changed. */
export interface RowFile {
  instance(row: RowInFile): Instance;
  rowHash(row: RowInFile): string;
}

type InstanceRow = Pick<HeldRow, 'instance'> | RowInFile;
type HashedRow = Pick<HeldRow, 'instance' | 'rowHash' | 'weight'> | RowInFile;

/** Reads nothing. */
export const headOf = (row: InstanceRow): InstanceHead => ('file' in row ? row : row.instance);
export const readInstance = (row: InstanceRow): Instance =>
  'file' in row ? row.file.instance(row) : row.instance;
export const readRowHash = (row: HashedRow): string => ('file' in row ? row.file.rowHash(row) : row.rowHash);

export interface Dataset {
  /** The name that the user gave. */
  readonly source: string;
  /** The file, or the first of a sharded split. */
  readonly path: string;
  readonly files: readonly string[];
  readonly split: string | null;
  readonly revision: string | null;
  /** sha256 of the bytes of all files, in order. */
  readonly fileHash: string;
  readonly rows: readonly LoadedRow[];
  /** Oddities that do not stop a run. */
  readonly warnings?: readonly string[];
  /** The dataset's tasks are folders, which cannot be written as rows. */
  readonly needsFolders?: boolean;
}

export function recordedRow(row: HashedRow) {
  const instance = readInstance(row);
  return {
    instance_id: instance.instance_id,
    repo: instance.repo,
    difficulty: instance.difficulty,
    image: imageOf(instance),
    row_hash: readRowHash(row),
    row: JSON.stringify(instance),
    weight: row.weight ?? 1,
  };
}

/** Hash over ids and rows in order: runs with the same hash have the same instances. */
export function rowsHash(
  rows: Iterable<{ readonly instance_id: string; readonly row_hash: string }>,
): string {
  const hash = createHash('sha256');
  let between = '';
  for (const { instance_id, row_hash } of rows) {
    hash.update(`${between}${instance_id} ${row_hash}`);
    between = '\n';
  }
  return hash.digest('hex');
}

/** The same of rows that no record has yet. */
export const datasetHash = (rows: readonly HashedRow[]): string => rowsHash(namedHashes(rows));

function* namedHashes(rows: readonly HashedRow[]) {
  for (const row of rows) yield { instance_id: headOf(row).instance_id, row_hash: readRowHash(row) };
}

/** A dataset as flat rows, for `datasets convert`; loading them again gives the same row hashes. */
export function datasetText(instances: readonly Instance[], form: 'jsonl' | 'json'): string {
  const rows = instances.map(({ extra, ...columns }) => ({ ...columns, ...extra }));
  if (form === 'json') return `${JSON.stringify(rows, null, 2)}\n`;
  return rows.map((row) => `${JSON.stringify(row)}\n`).join('');
}
