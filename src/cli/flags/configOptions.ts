/** From the flags of `run` to resolved arms: configuration files, key=value, then flags; one arm for each model. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type DatasetConfig, withFlags } from '../../config/dataset.ts';
import { ConfigError } from '../../config/error.ts';
import { configHash } from '../../config/identity.ts';
import { type LoadedConfig, loadConfig } from '../../config/load.ts';
import type { RunConfig } from '../../config/run.ts';
import type { ImagesConfig } from '../../environment/images/config.ts';
import type { GradingConfig } from '../../grading/gradingConfig.ts';
import { sha256 } from '../../runner/attempt/choosePatch.ts';
import type { ArmConfig } from '../../runner/schedule/planRun.ts';
import { PACKAGE_ROOT } from '../../service/version.ts';
import { CliError } from '../terminal/context.ts';
import type { RunArgs } from './runFlags.ts';

export interface ResolvedConfig {
  readonly arms: readonly ArmConfig[];
  readonly run: RunConfig;
  readonly grading: GradingConfig;
  readonly images: ImagesConfig;
  readonly dataset: DatasetConfig;
  readonly hash: string;
  readonly warnings: readonly string[];
  readonly files: readonly { readonly path: string; readonly sha256: string }[];
}

/** Flags that were not given are left out, so that they override nothing. */
const given = (values: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(values)
      .map(([key, value]) => [key, isSection(value) ? given(value) : value] as const)
      .filter(([, value]) => value !== undefined && !(isSection(value) && Object.keys(value).length === 0)),
  );

const isSection = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

export async function resolveConfig(args: RunArgs): Promise<ResolvedConfig> {
  const models = args.model ?? [];
  const overrides = given({
    model: {
      model_name: models.length === 1 ? models[0] : undefined,
      model_class: args.modelClass,
      latency_ms: args.modelLatency,
    },
    environment: { environment_class: args.environmentClass, pull: args.pull },
    run: {
      workers: args.workers,
      epochs: args.epochs,
      cost_limit: args.costLimit,
      order: args.order,
      emit_empty: args.emitEmpty,
    },
    // A gate needs verdicts.
    grading: { enabled: args.evaluate ?? (args.baseline ? true : undefined) },
    arms: models.length > 1 ? models.map((model_name) => ({ model: { model_name } })) : undefined,
  });
  const specs = args.config ?? [];
  // key=value alone changes the default; a file replaces it, as in mini-swe-agent.
  const onlyValues = specs.every((spec) => spec.includes('='));
  let loaded = loadFiles(onlyValues ? ['default', ...specs] : specs, overrides);
  // The prompt of default.yaml asks for blocks; its counterpart asks for tool calls.
  if (onlyValues && loaded.config.agent.protocol === 'tool-call')
    loaded = loadFiles(['swebench', ...specs], overrides);
  const { config } = loaded;
  return {
    arms: loaded.arms,
    run: config.run,
    grading: config.grading,
    images: config.images,
    dataset: withFlags(config.dataset, datasetFlags(args)),
    // An arm is all that `arms:` said about it: two ways to write the same arms are the same experiment.
    hash: sha256(
      loaded.arms.map((arm) => `${arm.name} ${configHash({ ...config, ...arm, arms: [] })}`).join('\n'),
    ),
    warnings: loaded.warnings,
    files: loaded.files,
  };
}

const datasetFlags = (args: RunArgs): DatasetConfig => ({
  subset: args.subset,
  split: args.split,
  revision: args.revision,
  instances: args.instance?.flatMap((i) => i.split(',')).filter(Boolean),
  shuffle: args.shuffle,
  filter: args.filter,
  slice: args.slice,
  limit: args.limit,
  sample: args.sample,
  stratify: args.stratify,
  seed: args.seed,
});

/** `-c` values, checked; throws CliError with every problem. */
export function loadFiles(specs: readonly string[], overrides: Record<string, unknown>): LoadedConfig {
  try {
    return loadConfig({
      specs,
      overrides,
      cwd: process.cwd(),
      configsDir: join(PACKAGE_ROOT, 'configs'),
      readFile: (path) => {
        try {
          return readFileSync(path === '-' ? 0 : path, 'utf8');
        } catch (error) {
          if (['ENOENT', 'EISDIR', 'ENOTDIR'].includes((error as { code?: string }).code ?? '')) return null;
          throw error;
        }
      },
    });
  } catch (error) {
    if (error instanceof ConfigError) throw new CliError(error.message);
    throw error;
  }
}
