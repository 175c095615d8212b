/** From the flags of `evaluate` to a grading configuration and the rows of the datasets named. */
import { type Dataset, type LoadedRow, loadDataset } from '../../dataset/read/loadDataset.ts';
import { type GradingConfig, gradingConfigSchema } from '../../grading/gradingConfig.ts';
import type { ParserRegistry } from '../../grading/parsers/parserRegistry.ts';
import { loadParsers } from '../../grading/userParsers.ts';
import { UserError } from '../../service/userError.ts';
import { hubVariables } from '../verbs/datasets.ts';
import type { EvaluateArgs } from './evaluateFlags.ts';

/** `stored` is what a run was planned with; flags win. */
export function gradingOf(args: EvaluateArgs, stored: unknown = {}): GradingConfig {
  const base = gradingConfigSchema.parse(stored);
  const own = args.parser.map((entry): [string, string] => {
    const at = entry.indexOf('=');
    if (at < 1) throw new UserError(`--parser ${entry}: write ID=MODULE, e.g. --parser mine=./my-parser.ts`);
    return [entry.slice(0, at), entry.slice(at + 1)];
  });
  return {
    ...base,
    enabled: true,
    ...(args.workers !== undefined && { workers: args.workers }),
    ...(args.timeout !== undefined && { timeout: args.timeout }),
    ...(args.memory !== undefined && { memory: args.memory }),
    ...(args.network !== undefined && { network: args.network }),
    ...(args.capAdd.length > 0 && { cap_add: args.capAdd }),
    ...(args.dialect !== undefined && { dialect: args.dialect }),
    parsers: { ...base.parsers, ...Object.fromEntries(own) },
  };
}

/** The user's parsers beside the official ones; read before anything is made or started. */
export const parsersOf = (config: GradingConfig): Promise<ParserRegistry> =>
  loadParsers(config.parsers, process.cwd()).catch((error: Error) => {
    throw new UserError(error.message, {
      hint: 'paths of parsers are taken from the folder that swebatch is called in; give it as --parser ID=MODULE, or call from there',
    });
  });

export const wantedIds = (args: EvaluateArgs): ReadonlySet<string> | undefined => {
  const ids = args.instance.flatMap((entry) => entry.split(',')).filter(Boolean);
  return ids.length > 0 ? new Set(ids) : undefined;
};

export async function loadSubset(args: EvaluateArgs, source: string): Promise<Dataset> {
  const loaded = await loadDataset(source, { split: args.split, dataDir: args.dataDir, env: hubVariables() });
  if (loaded.ok) return loaded.dataset;
  throw new UserError(
    `the dataset ${source} cannot be used:\n${loaded.problems.map((p) => `  ${p.message}`).join('\n')}`,
  );
}

/** Rows of several datasets by id; the first one that has an id wins. */
export async function loadSubsets(args: EvaluateArgs): Promise<Map<string, LoadedRow>> {
  const rows = new Map<string, LoadedRow>();
  for (const source of args.subset)
    for (const row of (await loadSubset(args, source)).rows)
      if (!rows.has(row.instance.instance_id)) rows.set(row.instance.instance_id, row);
  return rows;
}
