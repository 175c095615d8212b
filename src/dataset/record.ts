/** Rows of a dataset in the record of a run: the columns of an instance, and one hash over the selection. */
import { createHash } from 'node:crypto';
import { headOf, imageOf } from './instance.ts';
import type { LoadedRow } from './read/loadDataset.ts';

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
