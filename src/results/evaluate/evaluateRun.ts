/** Grades a run of a results root under its lock. */
import { existsSync } from 'node:fs';
import type { GradingConfig } from '../../grading/gradingConfig.ts';
import type { Caller } from '../../run/caller.ts';
import { withRunLock } from '../../run/control/runLock.ts';
import { databasePath, openForWriting, requireRun } from '../../run/resultsRoot.ts';
import { UserError } from '../../run/userError.ts';
import { wholeConfig } from '../../store/records/runs.ts';
import { type Evaluation, gradeRun } from './gradeRun.ts';
import { gradingConfig, requireParsers } from './gradingRules.ts';

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
