/** By which rules, with which parsers and against which rows predictions are graded. */
import type { Dataset } from '../../dataset/dataset.ts';
import { type GradingConfig, gradingConfigSchema } from '../../grading/gradingConfig.ts';
import type { ParserRegistry } from '../../grading/parsers/parserRegistry.ts';
import { loadParsers } from '../../grading/userParsers.ts';
import type { Variables } from '../../run/caller.ts';
import { requireDataset } from '../../run/requireDataset.ts';
import { UserError } from '../../run/userError.ts';

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
