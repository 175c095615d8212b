/**
 * The flags of `run` in the groups of its help, because forty in one list are hard to find, and the options that they make. Flags of a
 * verdict are also flags of `compare --gate`.
 */
import { readFileSync, statSync } from 'node:fs';
import { z } from 'zod';
import { MOST, setting } from '../../base/plausible.ts';
import { fileErrorText } from '../../base/text/errorText.ts';
import { environmentNames } from '../../environment/environments.ts';
import { dollarsToNano } from '../../money.ts';
import type { GatePolicy } from '../../report/gate/rules.ts';
import type { RunOptions } from '../../run/plan/resolveConfig.ts';
import { resultsRoot } from '../../run/resultsRoot.ts';
import { UserError } from '../../run/userError.ts';
import { PROGRESS_MODES } from '../terminal/progress.ts';
import { filledText, filledTexts, integer, runName, whole } from './checks.ts';
import {
  type Args,
  type Flag,
  type Flags,
  flags,
  json,
  kebab,
  oneOf,
  output,
  string,
  toggle,
} from './verb.ts';

/** Puts flags under one title in help. */
const grouped = <const T extends Flags>(group: string, table: T): T =>
  Object.fromEntries(Object.entries(table).map(([name, flag]) => [name, { ...flag, group }])) as Flags as T;

/** A limit in dollars; none is off, as in a configuration. */
export const costLimit = {
  type: 'string',
  check: z
    .string()
    .transform((dollars) => (dollars === 'none' ? 0 : Number(dollars)))
    .pipe(
      z
        .number({ error: 'must be a number of dollars, or none' })
        .min(0, 'must be 0 or more dollars, or none'),
    )
    .optional(),
} as const satisfies Flag;

export const progress = {
  ...oneOf(PROGRESS_MODES, 'bars on a terminal, else lines; json: one event a line on stdout'),
  default: 'auto',
} as const;

export const evaluateFlag = { type: 'boolean', describe: 'grade predictions as they arrive' } as const;

const which = flags({
  subset: filledText('dataset: a file, a folder, or full, verified, lite, multilingual, multimodal'),
  split: filledText('split; default: test, or the only one'),
  revision: filledText('commit, branch or tag of the dataset; default: the newest one here'),
  dataDir: filledText('folder with local copies of the named datasets'),
  slice: filledText('Python slice, applied after --filter: 0:5, -3:, ::2'),
  filter: filledText('regular expression that the id must start with'),
  shuffle: { type: 'boolean', describe: 'sort by id, then shuffle as Python does with --seed' },
  instance: filledTexts('i', 'only these ids (repeat, or separate with commas)'),
  limit: whole(0, 'the first N of the remaining instances'),
  sample: whole(0, 'N instances chosen by hash; a larger N includes a smaller one'),
  stratify: filledText('columns to spread the sample over: repo,difficulty'),
  seed: whole(0, 'seed for --shuffle and --sample; default 42', Number.MAX_SAFE_INTEGER),
  shard: filledText('K/N: every N-th of these from the K-th; `swebatch join` makes one run of all shards'),
  failedIn: filledText('only instances that RUN or RUN/ARM did not resolve, from the dataset of that run'),
  skipUnsupported: {
    type: 'boolean',
    describe: 'leave out tasks that cannot run here; the report says how many',
  },
});

const MILLISECONDS = 'must be a number of milliseconds, 0 or more';

const withWhat = flags({
  model: filledTexts('m', 'model id, scripted:PATH, replay:RUN[/ARM] or replay:FILE; several make arms'),
  config: filledTexts('c', 'file, or key.path=value; repeats, later wins'),
  modelClass: filledText('openai, or the path of a module'),
  modelLatency: {
    type: 'number',
    check: z.number({ error: MILLISECONDS }).min(0, MILLISECONDS).max(MOST.milliseconds).optional(),
    describe: 'milliseconds a scripted model takes',
  },
  environmentClass: filledText(`${environmentNames().join(', ')}, or the path of a module`),
  pull: oneOf(['never', 'missing', 'always'], 'when images are pulled'),
});

const how = flags({
  workers: { alias: 'w', ...whole(1, 'slots: instances at a time', MOST.atOnce) },
  epochs: whole(1, 'independent repeats of every instance', MOST.repeats),
  costLimit: {
    ...costLimit,
    describe: 'budget of the whole run in dollars, over restarts; none: no limit',
  },
  order: oneOf(['dataset', 'shuffle', 'longest'], 'order in which trials start'),
  evaluate: evaluateFlag,
  emitEmpty: { type: 'boolean', describe: 'write "" into predictions for trials that were not decided' },
  redoExisting: toggle('run sealed trials once more; all attempts are kept'),
  allowConfigChange: toggle(
    'continue with a changed configuration; the report tells trials before and after it apart',
  ),
  dryRun: toggle(
    'show the plan only: instances, images, disk, expected cost and time, detectable difference',
  ),
  online: toggle('with --dry-run: ask the endpoints for their models, which costs nothing'),
});

const whatComesOut = flags({
  output: { ...output, check: z.string().min(1) },
  runId: {
    ...string('name of the run; default: a new one from the time'),
    check: runName('must be 1 to 100 of A-Z a-z 0-9 _ . - and start with a letter or digit'),
  },
  progress,
  json,
});

/** "2%", "2pp" or 0.02. */
const share = (describe: string) => {
  const check = z.string().transform((given, ctx) => {
    const match = /^\s*(\d*\.?\d+)\s*(%|pp)?\s*$/.exec(given);
    const value = match ? Number(match[1]) / (match[2] ? 100 : 1) : Number.NaN;
    if (value >= 0 && value <= 1) return value;
    ctx.addIssue({ code: 'custom', message: `"${given}" must be a share such as 2% or 0.02` });
    return z.NEVER;
  });
  return { ...string(describe), check: check.optional() };
};

export const gateFlags = flags({
  minResolved: share('minimum share of valid instances resolved (40% or 0.4)'),
  maxDrop: share(
    'maximum drop over matched instances (2% or 0.02), beside the tests; the verdict says how often chance exceeds it',
  ),
  maxBroken: integer(
    0,
    'how many rocks may fail in every re-measurement; default 0. A rock is an instance that many runs before always resolved',
  ),
  mustPass: string(
    'file with ids that must be resolved, one a line; with --remeasure those that failed are run again',
  ),
  maxInfra: share('maximum share of trials lost to infrastructure'),
  maxCost: {
    type: 'number',
    check: setting.dollars().optional(),
    describe: 'maximum cost in dollars, with what is measured again',
  },
  setChanges: oneOf(
    ['allow', 'warn', 'fail'],
    'what to do about instances that only one run has; default warn',
  ),
});

/** The help of `run` lists these after the other limits. */
const { maxBroken, mustPass, setChanges, ...limits } = gateFlags;

const nightFlags = flags({
  baseline: filledText(
    'judge the run against this: "last" (newest comparable whose gate did not fail), a baseline\'s name, or a run',
  ),
  remeasure: integer(
    0,
    'with --baseline: run newly failed instances (and, where many failed, newly solved ones) again this many times before the verdict; default 3',
    MOST.repeats,
  ),
  withoutBaseline: oneOf(['warn', 'fail'], 'what to do when no comparable run exists; default warn'),
  ...limits,
  maxBroken,
  mustPass,
  setChanges,
});
export type NightArgs = Args<typeof nightFlags>;

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
    dataset: {
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
      shard: args.shard,
      skip_unsupported: args.skipUnsupported,
    },
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

/** Before anything is paid: flags that judge nothing, and a list of ids that is not there. */
export function checkNight(args: NightArgs): void {
  const { baseline, ...others } = nightFlags;
  const idle = Object.keys(others).find((name) => args[name as keyof typeof others] !== undefined);
  if (args.baseline === undefined && idle !== undefined)
    throw new UserError(`--${kebab(idle)} judges nothing without --baseline`, {
      hint: `add --baseline last, or the name of a run${idle === 'maxCost' ? '; --cost-limit is what ends a run that spent as much' : ''}`,
    });
  policyOf(args);
}

export const policyOf = (args: Args<typeof gateFlags>): GatePolicy => ({
  minResolved: args.minResolved,
  maxDrop: args.maxDrop,
  maxInfra: args.maxInfra,
  maxBroken: args.maxBroken,
  maxCostNano: args.maxCost === undefined ? undefined : dollarsToNano(args.maxCost),
  mustPass: args.mustPass === undefined ? undefined : idsFrom(args.mustPass),
  setChanges: args.setChanges,
});

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new UserError(`--must-pass: ${path} cannot be read: ${fileErrorText(error)}`);
  }
}

function idsFrom(path: string): string[] {
  const stat = statSync(path, { throwIfNoEntry: false });
  if (!stat?.isFile()) throw new UserError(`--must-pass: there is no file ${path}`);
  const ids = textOf(path)
    .split(/\r?\n/)
    .map((l) => l.replace(/#.*/, '').trim())
    .filter(Boolean);
  if (ids.length === 0) throw new UserError(`--must-pass: ${path} names no instance`);
  return [...new Set(ids)];
}
