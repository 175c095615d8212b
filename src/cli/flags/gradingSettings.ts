/** From the flags of `evaluate` to what the service takes. */
import type { GradingConfig } from '../../grading/gradingConfig.ts';
import type { DatasetChoice } from '../../service/evaluate/requireSubset.ts';
import { UserError } from '../../service/userError.ts';
import type { EvaluateArgs } from './evaluateFlags.ts';

/** What was given; the rest is as the run was planned, or the default. */
export function gradingGiven(args: EvaluateArgs): Partial<GradingConfig> {
  const own = args.parser.map((entry): [string, string] => {
    const at = entry.indexOf('=');
    if (at < 1) throw new UserError(`--parser ${entry}: write ID=MODULE, e.g. --parser mine=./my-parser.ts`);
    return [entry.slice(0, at), entry.slice(at + 1)];
  });
  return {
    ...(args.workers !== undefined && { workers: args.workers }),
    ...(args.timeout !== undefined && { timeout: args.timeout }),
    ...(args.memory !== undefined && { memory: args.memory }),
    ...(args.network !== undefined && { network: args.network }),
    ...(args.capAdd.length > 0 && { cap_add: args.capAdd }),
    ...(args.dialect !== undefined && { dialect: args.dialect }),
    parsers: Object.fromEntries(own),
  };
}

export const idsGiven = (args: EvaluateArgs): string[] =>
  args.instance.flatMap((entry) => entry.split(',')).filter(Boolean);

export const datasetGiven = (args: EvaluateArgs, subset: string): DatasetChoice => ({
  subset,
  split: args.split,
  dataDir: args.dataDir,
});
