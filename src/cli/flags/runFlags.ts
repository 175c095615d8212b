/** The flags of `run` in the groups of its help, because forty in one list are hard to find, and the options that they make. */

import { z } from 'zod';
import type { DatasetConfig } from '../../config/runConfig.ts';
import { environmentNames } from '../../environment/environments.ts';
import type { RunOptions } from '../../run/plan/resolveConfig.ts';
import { resultsRoot } from '../../run/resultsRoot.ts';
import { PROGRESS_MODES } from '../terminal/progress.ts';
import { filled, filledList, runName, whole } from './checks.ts';
import { json, output } from './commonFlags.ts';
import { nightFlags } from './gateFlags.ts';
import { type Args, type Flag, flags, grouped } from './verb.ts';

/** In dollars; none is off, as in a configuration. */
export const costLimit = {
  type: 'string',
  coerce: (value: string | readonly string[]) =>
    Array.isArray(value) ? value : value === 'none' ? 0 : Number(value),
  check: z
    .number({ error: 'must be a number of dollars, or none' })
    .min(0, 'must be 0 or more dollars, or none')
    .optional(),
} as const satisfies Flag;

export const progress = {
  choices: PROGRESS_MODES,
  default: 'auto',
  bare: true,
  describe: 'bars on a terminal, else lines; json: one event a line on stdout',
} as const satisfies Flag;

export const evaluateFlag = {
  type: 'boolean',
  describe: 'grade predictions as they arrive',
} as const satisfies Flag;

const which = flags({
  subset: {
    type: 'string',
    check: filled,
    describe: 'dataset: a file, a folder, or full, verified, lite, multilingual, multimodal',
  },
  split: { type: 'string', check: filled, describe: 'split; default: test, or the only one' },
  revision: {
    type: 'string',
    check: filled,
    describe: 'commit, branch or tag of the dataset; default: the newest one here',
  },
  dataDir: {
    type: 'string',
    check: filled,
    describe: 'folder with local copies of the named datasets',
  },
  slice: {
    type: 'string',
    check: filled,
    describe: 'Python slice, applied after --filter: 0:5, -3:, ::2',
  },
  filter: { type: 'string', check: filled, describe: 'regular expression that the id must start with' },
  shuffle: { type: 'boolean', describe: 'sort by id, then shuffle as Python does with --seed' },
  instance: {
    alias: 'i',
    type: 'string',
    list: true,
    bare: true,
    check: filledList,
    describe: 'only these ids (repeat, or separate with commas)',
  },
  limit: { type: 'number', check: whole(0), describe: 'the first N of the remaining instances' },
  sample: {
    type: 'number',
    check: whole(0),
    describe: 'N instances chosen by hash; a larger N includes a smaller one',
  },
  stratify: {
    type: 'string',
    check: filled,
    describe: 'columns to spread the sample over: repo,difficulty',
  },
  seed: { type: 'number', check: whole(0), describe: 'seed for --shuffle and --sample; default 42' },
  failedIn: { type: 'string', check: filled, describe: 'only instances that RUN did not resolve' },
  skipUnsupported: {
    type: 'boolean',
    describe: 'leave out tasks that cannot run here; the report says how many',
  },
});

const MILLISECONDS = 'must be a number of milliseconds, 0 or more';

const withWhat = flags({
  model: {
    alias: 'm',
    type: 'string',
    list: true,
    bare: true,
    check: filledList,
    describe: 'model id, scripted:PATH, replay:RUN[/ARM] or replay:FILE; several make arms',
  },
  config: {
    alias: 'c',
    type: 'string',
    list: true,
    bare: true,
    check: filledList,
    describe: 'file, or key.path=value; repeats, later wins',
  },
  modelClass: { type: 'string', check: filled, describe: 'openai, or the path of a module' },
  modelLatency: {
    type: 'number',
    check: z.number({ error: MILLISECONDS }).min(0, MILLISECONDS).optional(),
    describe: 'milliseconds a scripted model takes',
  },
  environmentClass: {
    type: 'string',
    check: filled,
    describe: `${environmentNames().join(', ')}, or the path of a module`,
  },
  pull: { choices: ['never', 'missing', 'always'], bare: true, describe: 'when images are pulled' },
});

const how = flags({
  workers: { alias: 'w', type: 'number', check: whole(1), describe: 'slots: instances at a time' },
  epochs: { type: 'number', check: whole(1), describe: 'independent repeats of every instance' },
  costLimit: {
    ...costLimit,
    describe: 'budget of the whole run in dollars, over restarts; none: no limit',
  },
  order: {
    choices: ['dataset', 'shuffle', 'longest'],
    bare: true,
    describe: 'order in which trials start',
  },
  evaluate: evaluateFlag,
  emitEmpty: {
    type: 'boolean',
    describe: 'write "" into predictions for trials that were not decided',
  },
  redoExisting: {
    type: 'boolean',
    default: false,
    describe: 'run sealed trials once more; all attempts are kept',
  },
  allowConfigChange: {
    type: 'boolean',
    default: false,
    describe: 'continue with a changed configuration; recorded as a boundary',
  },
  dryRun: {
    type: 'boolean',
    default: false,
    describe: 'show the plan only: instances, images, disk, expected cost and time, detectable difference',
  },
  online: {
    type: 'boolean',
    default: false,
    describe: 'with --dry-run: ask the endpoints for their models, which costs nothing',
  },
});

const whatComesOut = flags({
  output: { ...output, check: z.string().min(1) },
  runId: {
    type: 'string',
    check: runName('must be 1 to 100 of A-Z a-z 0-9 _ . - and start with a letter or digit'),
    describe: 'name of the run; default: a new one from the time',
  },
  progress,
  json,
});

export const runFlags = flags({
  ...grouped('Which instances:', which),
  ...grouped('With what:', withWhat),
  ...grouped('How:', how),
  ...grouped('What comes out:', whatComesOut),
  ...grouped('As a gate, with a baseline:', nightFlags),
});
export type RunArgs = Args<typeof runFlags>;

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
  skip_unsupported: args.skipUnsupported,
});
