/** Verdicts from saved logs, without containers. */
import { existsSync } from 'node:fs';
import { headOf, readInstance } from '../../dataset/dataset.ts';
import type { Instance } from '../../dataset/instance.ts';
import type { GradingConfig } from '../../grading/gradingConfig.ts';
import { type Regraded, regradeFolder } from '../../grading/regradeFolder.ts';
import type { Caller, Variables } from '../../run/caller.ts';
import { redactorOf } from '../../run/secrets.ts';
import { UserError } from '../../run/userError.ts';
import { type DatasetChoice, gradingConfig, requireParsers, requireSubset } from './gradeRun.ts';

interface RegradeOptions {
  /** Folders of instance folders, at any depth. */
  readonly folders: readonly string[];
  /** Datasets say which tests are expected; the first one that has an id wins. */
  readonly datasets: readonly DatasetChoice[];
  readonly grading?: Partial<GradingConfig> | undefined;
  /** The ids that count, and no others. */
  readonly instances?: readonly string[] | undefined;
  /** Replace report.json in each folder. */
  readonly write: boolean;
}

export async function regradeLogs(options: RegradeOptions, { env, cwd }: Pick<Caller, 'env' | 'cwd'>) {
  const missing = options.folders.filter((folder) => !existsSync(folder));
  if (missing.length > 0) throw new UserError(`there is no folder ${missing.join(', ')}`);
  const config = gradingConfig(options.grading);
  const { harness } = config;
  const instances = await rowsOf(options.datasets, env);
  const parsers = await requireParsers(config, cwd);
  const only = options.instances?.length ? { only: new Set(options.instances) } : {};
  const redactor = redactorOf(env);
  const rows: Regraded[] = [];
  const skipped: string[] = [];
  for (const folder of options.folders) {
    const found = await regradeFolder(folder, {
      harness,
      instances,
      parsers,
      write: options.write,
      ...only,
      holdsSecret: redactor.contains,
    });
    rows.push(...found.rows);
    skipped.push(...found.skipped);
  }
  return { rows, skipped, harness };
}

async function rowsOf(
  datasets: readonly DatasetChoice[],
  env: Variables,
): Promise<ReadonlyMap<string, Instance>> {
  const rows = new Map<string, Instance>();
  for (const choice of datasets)
    for (const row of (await requireSubset(choice, env)).rows) {
      const { instance_id } = headOf(row);
      if (!rows.has(instance_id)) rows.set(instance_id, readInstance(row));
    }
  return rows;
}
