import { inert } from '../base/text/inert.ts';
import type { Dataset } from '../dataset/dataset.ts';
import { type LoadOptions, loadDataset } from '../suites/loadDataset.ts';
import { UserError } from './userError.ts';

/** The rows of a dataset. Throws a UserError with every reason why it cannot be used. `env` has the settings of the hub. */
export async function requireDataset(source: string, options: LoadOptions): Promise<Dataset> {
  const loaded = await loadDataset(source, options);
  if (loaded.ok) return loaded.dataset;
  const problems = loaded.problems.map(({ message }) => `  ${inert(message)}`);
  throw new UserError(
    `the dataset cannot be used; ${problems.length} problem(s) in ${source}:\n${problems.join('\n')}`,
  );
}
