/** From the flags of `run` to what is asked of a run. */
import type { DatasetConfig } from '../../config/datasetConfig.ts';
import type { LoadedConfig } from '../../config/loadConfig.ts';
import { loadLayers, resolveConfig as resolve } from '../../service/plan/resolveConfig.ts';
import type { ResolvedConfig } from '../../service/plan/resolvedConfig.ts';
import { resultsRoot } from '../../service/resultsRoot.ts';
import type { RunOptions } from '../../service/start/runOptions.ts';
import type { RunArgs } from './runFlags.ts';

export function runOptionsOf(args: RunArgs): RunOptions {
  return {
    results: resultsRoot(args.output),
    name: args.runId,
    dataset: datasetFlags(args),
    dataDir: args.dataDir,
    failedIn: args.failedIn,
    models: args.model,
    config: args.config,
    settings: {
      model: { model_class: args.modelClass, latency_ms: args.modelLatency },
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
    },
    allowConfigChange: args.allowConfigChange,
    redoExisting: args.redoExisting,
  };
}

export const resolveConfig = async (args: RunArgs): Promise<ResolvedConfig> =>
  resolve(runOptionsOf(args), { cwd: process.cwd(), env: process.env });

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

/** `-c` values, checked; throws UserError with every problem. */
export const loadFiles = (specs: readonly string[], overrides: Record<string, unknown>): LoadedConfig =>
  loadLayers(specs, overrides, process.cwd());
