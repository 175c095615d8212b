/** Rows of a dataset in the record of a run: the columns of an instance, and one hash over the selection. */
import { sha256 } from '../base/sha256.ts';
import { imageOf } from './instance.ts';
import type { LoadedRow } from './read/loadDataset.ts';

type Recorded = Pick<LoadedRow, 'instance' | 'rowHash'>;

export const recordedRow = ({ instance, rowHash, weight = 1 }: Recorded & { readonly weight?: number }) => ({
  instance_id: instance.instance_id,
  repo: instance.repo,
  difficulty: instance.difficulty,
  image: imageOf(instance),
  row_hash: rowHash,
  row: JSON.stringify(instance),
  weight,
});

/** Hash over ids and rows in order: runs with the same hash have the same instances. */
export const datasetHash = (rows: readonly Recorded[]): string =>
  sha256(rows.map((row) => `${row.instance.instance_id} ${row.rowHash}`).join('\n'));
