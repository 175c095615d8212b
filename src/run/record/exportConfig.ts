/** The configuration of a run as a file that starts the same run again: sections, arms, and the rows it had. Pure. */
import { stringify } from 'yaml';
import { armNameOf } from '../../config/loadConfig.ts';
import { type RunRow, wholeConfig } from '../../store/records/runs.ts';
import { plannedArms } from '../plan/planRecord.ts';

type ExportedRun = Pick<RunRow, 'config' | 'dataset_source' | 'dataset_hash' | 'imported'>;

/** What `run -c -` reads: sections for one arm, `arms:` where there are several or a name of its own. */
export function exportConfig(run: ExportedRun, ids: readonly string[]): string {
  const { arms = [], dataset, ...sections } = wholeConfig(run);
  if (run.imported === 1) {
    // An import has only the published settings; the rest are the defaults of this program.
    const { name: _, ...published } = arms[0] ?? { name: '' };
    return write({ ...published, dataset: rowsOf(run, ids) });
  }
  const rows = {
    subset: run.dataset_source,
    ...dataset,
    ...(dataset ? { rows_sha256: run.dataset_hash } : {}),
  };
  // A replay takes the name for its predictions from its recording again.
  const plain = plannedArms(run).map(({ predictsAs: _, ...arm }) => arm);
  const [only] = plain;
  if (plain.length === 1 && only && only.name === armNameOf(only.model)) {
    const { name: _, ...parts } = only;
    return write({ ...parts, ...sections, dataset: rows });
  }
  return write({ ...sections, arms: plain, dataset: rows });
}

const rowsOf = (run: ExportedRun, ids: readonly string[]) => ({
  subset: run.dataset_source,
  instances: ids,
});

const write = (value: unknown): string => stringify(value, { lineWidth: 0 });
