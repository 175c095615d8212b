/** A configuration with nothing left open: what is planned, checked and recorded. */
import type { DatasetConfig } from '../../config/datasetConfig.ts';
import type { RunConfig } from '../../config/runConfig.ts';
import type { ImagesConfig } from '../../environment/images/imagesConfig.ts';
import type { GradingConfig } from '../../grading/gradingConfig.ts';
import type { ArmConfig } from '../../runner/schedule/planRun.ts';
import type { Caller, Variables } from '../caller.ts';

export interface ResolvedConfig {
  readonly arms: readonly ArmConfig[];
  readonly run: RunConfig;
  readonly grading: GradingConfig;
  readonly images: ImagesConfig;
  readonly dataset: DatasetConfig;
  readonly hash: string;
  /** Keys that stood in the configuration, under the variable that stands for them. */
  readonly keys: Variables;
  readonly warnings: readonly string[];
  readonly files: readonly { readonly path: string; readonly sha256: string }[];
}

/** The caller with the keys that the configuration itself holds. */
export const withKeys = (caller: Caller, { keys }: Pick<ResolvedConfig, 'keys'>): Caller => ({
  ...caller,
  env: { ...caller.env, ...keys },
});
