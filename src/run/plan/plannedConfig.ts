/** Reads back what planRun wrote, with its types. An imported run has settings of another tool; only recordedEnvironment accepts those. */
import { type RunConfig, runConfigSchema } from '../../config/runConfig.ts';
import type { EnvironmentConfig } from '../../environment/environmentConfig.ts';
import { type ImagesConfig, imagesConfigSchema } from '../../environment/places/imagesConfig.ts';
import { type GradingConfig, gradingConfigSchema } from '../../grading/gradingConfig.ts';
import { type ArmRow, type RunRow, storedArm, wholeArm, wholeConfig } from '../../store/records/runs.ts';
import type { ArmConfig } from './planRecord.ts';

export interface PlannedConfig {
  readonly run: RunConfig;
  readonly grading: GradingConfig;
  readonly images: ImagesConfig;
  readonly arms: readonly ArmConfig[];
}

/** New settings get their defaults; arms stay as recorded, because their trajectories contain them. */
export function plannedConfig(run: RunRow): PlannedConfig {
  const { run: runs, grading, images } = wholeConfig(run);
  return {
    run: runConfigSchema.parse(runs ?? {}),
    grading: gradingConfigSchema.parse(grading ?? {}),
    images: imagesConfigSchema.parse(images ?? {}),
    arms: plannedArms(run),
  };
}

export const plannedArms = (run: Pick<RunRow, 'config'>): readonly ArmConfig[] =>
  (wholeConfig(run).arms ?? []) as readonly ArmConfig[];

export const plannedArm = (arm: Pick<ArmRow, 'config'>): Omit<ArmConfig, 'name'> =>
  wholeArm(arm) as Omit<ArmConfig, 'name'>;

/** The arm may be imported, so any key may be missing. */
export const recordedEnvironment = (arm: Pick<ArmRow, 'config'>): Partial<EnvironmentConfig> | undefined =>
  storedArm(arm).environment as Partial<EnvironmentConfig> | undefined;
