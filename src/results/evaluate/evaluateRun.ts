/** Grades a run of a results root under its lock. */

import { existsSync } from 'node:fs';
import type { Dataset } from '../../dataset/dataset.ts';
import { type GradingConfig, gradingConfigSchema } from '../../grading/gradingConfig.ts';
import { loadParsers, type ParserRegistry } from '../../grading/parsers/parserRegistry.ts';
import type { Caller, Variables } from '../../run/caller.ts';
import { withRunLock } from '../../run/control/lock.ts';
import { requireDataset } from '../../run/datasets.ts';
import { databasePath, openForWriting, requireRun } from '../../run/resultsRoot.ts';
import { UserError } from '../../run/userError.ts';
import { wholeConfig } from '../../store/records/runs.ts';
import { type Evaluation, gradeRun } from './gradeRun.ts';

export interface EvaluateOptions {
  /** Results root. */
  readonly results: string;
  /** Over what the run was planned with. */
  readonly grading?: Partial<GradingConfig> | undefined;
  /** Only these ids. */
  readonly instances?: readonly string[] | undefined;
  /** Grade instances again that have a verdict. */
  readonly again?: boolean | undefined;
}

export interface EvaluateRunOptions extends EvaluateOptions {
  /** Name, unique prefix, or "last". */
  readonly run: string;
}

export async function evaluateRun(options: EvaluateRunOptions, caller: Caller): Promise<Evaluation> {
  const { results: root } = options;
  if (!existsSync(databasePath(root)))
    throw new UserError(`there are no results in ${root}, so no run "${options.run}"`, {
      hint: 'a predictions file must end in .json or .jsonl',
      next: { do: 'name_results' },
    });
  using store = openForWriting(root);
  const run = requireRun(store, options.run);
  const config = gradingConfig(options.grading, wholeConfig(run).grading);
  await requireParsers(config, caller.cwd);
  const only = wantedIds(options);
  return await withRunLock({ store, root, runName: run.name, tell: caller.tell }, () =>
    gradeRun({ store, root, run, config, only, again: options.again ?? false }, caller),
  );
}

export const wantedIds = ({ instances }: EvaluateOptions): ReadonlySet<string> | undefined =>
  instances && instances.length > 0 ? new Set(instances) : undefined;

export interface DatasetChoice {
  /** A file, a folder, a known name or a hub id. */
  readonly subset: string;
  readonly split?: string | undefined;
  /** Folder with local copies of the named datasets. */
  readonly dataDir?: string | undefined;
}

export const requireSubset = ({ subset, ...where }: DatasetChoice, env: Variables): Promise<Dataset> =>
  requireDataset(subset, { ...where, env });

/** `stored` is what a run was planned with; what is given wins. */
export function gradingConfig(given: Partial<GradingConfig> = {}, stored: unknown = {}): GradingConfig {
  const base = gradingConfigSchema.parse(stored);
  return { ...base, ...given, enabled: true, parsers: { ...base.parsers, ...given.parsers } };
}

/** The user's parsers beside the official ones; read before anything is made or started. */
export const requireParsers = (config: GradingConfig, cwd: string): Promise<ParserRegistry> =>
  loadParsers(config.parsers, cwd).catch((error: Error) => {
    throw new UserError(error.message, {
      hint: 'relative paths of parsers start in the working directory',
    });
  });
