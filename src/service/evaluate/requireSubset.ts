/** The rows of a dataset that somebody named, or why it cannot be used. */
import { type Dataset, loadDataset } from '../../dataset/read/loadDataset.ts';
import type { Variables } from '../caller.ts';
import { UserError } from '../userError.ts';

export interface DatasetChoice {
  /** A file, a folder, a known name or a hub id. */
  readonly subset: string;
  readonly split?: string | undefined;
  /** Folder with local copies of the named datasets. */
  readonly dataDir?: string | undefined;
}

export async function requireSubset(
  { subset, split, dataDir }: DatasetChoice,
  env: Variables,
): Promise<Dataset> {
  const loaded = await loadDataset(subset, { split, dataDir, env });
  if (loaded.ok) return loaded.dataset;
  throw new UserError(
    `the dataset ${subset} cannot be used:\n${loaded.problems.map((p) => `  ${p.message}`).join('\n')}`,
  );
}
