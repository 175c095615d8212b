/** A plan in the record: the rows of a new run, made and read back, and where a continued run differs from them. Pure. */

import type { AgentConfig } from '../../agent/agentConfig.ts';
import type { GatewayConfig } from '../../agent/gateway/gatewayConfig.ts';
import { type DatasetConfig, type RunConfig, runConfigSchema } from '../../config/configSchema.ts';
import { type SuiteConfig, suiteConfigSchema } from '../../config/suiteConfig.ts';
import { datasetHash, headOf, type LoadedRow, recordedRow } from '../../dataset/dataset.ts';
import type { PlannedShard } from '../../dataset/shard.ts';
import { type EnvironmentConfig, ONE_ENGINE } from '../../environment/environmentConfig.ts';
import { type ImagesConfig, imagesConfigSchema } from '../../environment/places/imagesConfig.ts';
import { type GradingConfig, gradingConfigSchema } from '../../grading/gradingConfig.ts';
import type { ModelConfig } from '../../model/modelConfig.ts';
import { dollarsToNano } from '../../money.ts';
import {
  type ArmRow,
  type RunPlan,
  type RunRow,
  storedArm,
  wholeArm,
  wholeConfig,
} from '../../store/records/runs.ts';
import { UserError } from '../userError.ts';

/** One model + agent + environment configuration. */
export interface ArmConfig {
  readonly name: string;
  readonly agent: AgentConfig;
  readonly environment: EnvironmentConfig;
  readonly model: ModelConfig;
  /** The section for agents that are programs; absent where it says nothing. */
  readonly gateway?: GatewayConfig;
  /** Model name in its predictions, if not the configured one: a replay predicts as the recorded model. */
  readonly predictsAs?: string;
}

export interface RunRequest {
  readonly name: string;
  readonly createdAt: string;
  readonly arms: readonly ArmConfig[];
  readonly run: RunConfig;
  readonly grading: GradingConfig;
  readonly images?: ImagesConfig;
  /** Absent where the section is empty. */
  readonly suite?: SuiteConfig | undefined;
  readonly configHash: string;
  readonly dataset: {
    readonly source: string;
    readonly split: string | null;
    readonly revision: string | null;
    readonly fileHash: string;
    /** Rows before the selection. */
    readonly count: number;
    readonly wanted: DatasetConfig;
    /** Selected, and left out because they cannot run here. */
    readonly unsupported?: readonly { readonly instance_id: string; readonly reason: string }[];
  };
  readonly selected: readonly LoadedRow[];
  /** The strata of a sample: all of the dataset's, including those without a sampled instance. */
  readonly strata?: readonly {
    readonly key: readonly string[];
    readonly size: number;
    readonly sampled: number;
  }[];
  /** The part of the selection that `selected` is; absent for the whole. */
  readonly shard?: PlannedShard | undefined;
  readonly manifest: Readonly<Record<string, unknown>>;
}

/** Name of a model as predictions carry it. */
export const modelNameOf = (model: ModelConfig): string => model.model_name ?? 'unnamed';

/** The settings of an arm as its row keeps them. */
export const armText = ({ agent, environment, model, gateway }: ArmConfig): string =>
  JSON.stringify({ agent, environment, model, gateway });

export function runRows(request: RunRequest): RunPlan {
  const { run, shard } = request;
  return {
    run: {
      name: request.name,
      created_at: request.createdAt,
      config: JSON.stringify({
        run: request.run,
        grading: request.grading,
        images: request.images,
        dataset: request.dataset.wanted,
        suite: request.suite,
        arms: request.arms,
      }),
      config_hash: request.configHash,
      manifest: JSON.stringify(request.manifest),
      dataset_source: request.dataset.source,
      dataset_revision: request.dataset.revision,
      dataset_hash: datasetHash(request.selected),
      budget_nano: run.cost_limit > 0 ? dollarsToNano(run.cost_limit) : null,
      emit_empty: run.emit_empty ? 1 : 0,
      imported: 0,
    },
    arms: request.arms.map((arm) => ({
      name: arm.name,
      model: arm.predictsAs ?? modelNameOf(arm.model),
      config: armText(arm),
    })),
    instances: request.selected.map((row) => ({
      ...recordedRow(row),
      ...(shard && { position: shard.places.get(headOf(row).instance_id)! }),
    })),
    ...(shard && { places: shard.instances }),
    epochs: run.epochs,
  };
}

export interface Difference {
  readonly key: string;
  readonly was: string | null;
  readonly is: string | null;
}

export interface PlannedConfig {
  readonly run: RunConfig;
  readonly grading: GradingConfig;
  readonly images: ImagesConfig;
  readonly suite: SuiteConfig | undefined;
  readonly arms: readonly ArmConfig[];
}

/** New settings get their defaults; arms stay as recorded, because their trajectories contain them. */
export function plannedConfig(run: RunRow): PlannedConfig {
  const { run: runs, grading, images } = wholeConfig(run);
  return {
    run: runConfigSchema.parse(runs ?? {}),
    grading: gradingConfigSchema.parse(grading ?? {}),
    images: imagesConfigSchema.parse(images ?? {}),
    suite: plannedSuite(run),
    arms: plannedArms(run),
  };
}

export const plannedSuite = (run: Pick<RunRow, 'config'>): SuiteConfig | undefined =>
  suiteConfigSchema.optional().parse(wholeConfig(run).suite);

export const plannedArms = (run: Pick<RunRow, 'config'>): readonly ArmConfig[] =>
  (wholeConfig(run).arms ?? []) as readonly ArmConfig[];

/** A run that an earlier version spread over several engines can be read, graded and compared, and not go on. */
export function refuseSeveralEngines(run: Pick<RunRow, 'name' | 'config'>): void {
  if (plannedArms(run).some(({ environment }) => (environment?.hosts ?? []).length > 0))
    throw new UserError(
      `run ${run.name} cannot go on, because its record names several engines: ${ONE_ENGINE}`,
    );
}

export const plannedArm = (arm: Pick<ArmRow, 'config'>): Omit<ArmConfig, 'name'> =>
  wholeArm(arm) as Omit<ArmConfig, 'name'>;

/** The arm may be imported, so any key may be missing. */
export const recordedEnvironment = (arm: Pick<ArmRow, 'config'>): Partial<EnvironmentConfig> | undefined =>
  storedArm(arm).environment as Partial<EnvironmentConfig> | undefined;
