// The official data that some tests of this folder need: rows of the published datasets, real logs and reports. It is not part of the
// project; where it is absent the tests that use it are skipped and say so.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readInstance } from '../../src/dataset/dataset.ts';
import type { Instance } from '../../src/dataset/instance.ts';
import type { InstanceReport } from '../../src/formats/harness/instanceReport.ts';
import { loadDataset } from '../../src/suites/loadDataset.ts';

export const DATA = join(import.meta.dirname, '..', '..', '..', 'shared', 'data');
export const hasData = existsSync(join(DATA, 'grading-logs')) && existsSync(join(DATA, 'datasets'));
export const WITHOUT_DATA =
  'needs the official logs and datasets (shared/data), which are not part of the project';

export const PYTHON_SPLITS = [
  'SWE-bench_Verified_test',
  'SWE-bench_Lite_test',
  'SWE-bench_Lite_dev',
  'SWE-bench_dev',
] as const;
export const OTHER_SPLITS = ['SWE-bench_Multilingual_test', 'SWE-bench_Multimodal_dev'] as const;
const splitPath = (split: string): string => join(DATA, 'datasets', `${split}.parquet`);

export async function rowsOf(split: string): Promise<Instance[]> {
  const loaded = await loadDataset(splitPath(split));
  if (!loaded.ok) throw new Error(loaded.problems.map((problem) => problem.message).join('\n'));
  return loaded.dataset.rows.map(readInstance);
}

export interface OfficialLog {
  /** Path from the folder of logs. */
  readonly name: string;
  readonly instanceId: string;
  readonly log: string;
  readonly report: InstanceReport;
  readonly script: string | undefined;
  readonly patch: string | undefined;
}

const textOf = (path: string) => (existsSync(path) ? readFileSync(path, 'utf8') : undefined);

/** Every folder with a log and an official report. */
export function officialLogs(): OfficialLog[] {
  return ['curated', 'verified-98'].flatMap((set) => {
    const root = join(DATA, 'grading-logs', set);
    return readdirSync(root, { withFileTypes: true })
      .filter((entry) => entry.isDirectory() && existsSync(join(root, entry.name, 'report.json')))
      .map(({ name }) => {
        const folder = join(root, name);
        const report = JSON.parse(readFileSync(join(folder, 'report.json'), 'utf8')) as InstanceReport;
        return {
          name: `${set}/${name}`,
          instanceId: Object.keys(report)[0]!,
          log: readFileSync(join(folder, 'test_output.txt'), 'utf8'),
          report,
          script: textOf(join(folder, 'eval.sh')),
          patch: textOf(join(folder, 'patch.diff')),
        };
      });
  });
}
