/** What `run` takes: its flags, and the check of what yargs lets through. */
import type { Argv } from 'yargs';
import { z } from 'zod';
import { nightArgs, nightOptions } from '../night.ts';
import { CliError } from '../terminal/context.ts';
import { PROGRESS_MODES } from '../terminal/progress.ts';
import { costLimitOption, jsonOption, outputOption } from './verb.ts';

const text = z.string().min(1).optional();
const list = z.array(z.string().min(1)).min(1, 'needs a value').optional();
const whole = (least: number) => {
  const error = `must be a whole number of ${least} or more`;
  return z.number({ error }).int(error).min(least, error).optional();
};
const count = whole(0);

/** yargs lets NaN, repeats and missing values through (reference stack.md 2.6); this does not. */
export const runArgsSchema = z.object({
  subset: text,
  split: text,
  revision: text,
  dataDir: text,
  slice: text,
  filter: text,
  shuffle: z.boolean().optional(),
  instance: list,
  limit: count,
  sample: count,
  stratify: text,
  seed: count,
  failedIn: text,
  model: list,
  modelClass: text,
  modelLatency: z.number({ error: 'must be a number of milliseconds' }).min(0).optional(),
  environmentClass: text,
  config: list,
  workers: whole(1),
  epochs: whole(1),
  costLimit: z.number({ error: 'must be a number of dollars, or none' }).min(0).optional(),
  output: z.string().min(1),
  runId: z
    .string()
    .regex(
      /^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$/,
      'must be 1 to 100 of A-Z a-z 0-9 _ . - and start with a letter or digit',
    )
    .optional(),
  redoExisting: z.boolean(),
  evaluate: z.boolean().optional(),
  emitEmpty: z.boolean().optional(),
  pull: z.enum(['never', 'missing', 'always']).optional(),
  order: z.enum(['dataset', 'shuffle', 'longest']).optional(),
  allowConfigChange: z.boolean(),
  dryRun: z.boolean(),
  ...nightArgs,
  progress: z.enum(PROGRESS_MODES),
  json: z.boolean(),
});
export type RunArgs = z.infer<typeof runArgsSchema>;

function kebab(name: string): string {
  return name.replace(/[A-Z]/g, (c) => `-${c.toLowerCase()}`);
}

export function checkArgs<T extends z.ZodType>(
  schema: T,
  argv: Readonly<Record<string, unknown>>,
): z.infer<T> {
  const parsed = schema.safeParse(argv);
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.map((i) => {
    const name = String(i.path[0]);
    const repeated = i.code === 'invalid_type' && i.path.length === 1 && Array.isArray(argv[name]);
    return `--${kebab(name)}: ${repeated ? 'given more than once' : i.message}`;
  });
  throw new CliError(problems.join('\n'));
}

/** Forty flags in one column are not found again. */
const GROUPS: Readonly<Record<string, readonly string[]>> = {
  'Which instances:': [
    ...['subset', 'split', 'revision', 'data-dir', 'slice', 'filter', 'shuffle', 'instance', 'limit'],
    ...['sample', 'stratify', 'seed', 'failed-in'],
  ],
  'With what:': ['model', 'config', 'model-class', 'model-latency', 'environment-class', 'pull'],
  'How:': [
    ...['workers', 'epochs', 'cost-limit', 'order', 'evaluate', 'emit-empty', 'redo-existing'],
    ...['allow-config-change', 'dry-run'],
  ],
  'What comes out:': ['output', 'run-id', 'progress', 'json'],
  'As a gate, with a baseline:': Object.keys(nightArgs).map(kebab),
};

export const runOptions = (parser: Argv): Argv =>
  Object.entries(GROUPS).reduce((all, [title, names]) => all.group([...names], title), options(parser));

const options = (parser: Argv): Argv =>
  nightOptions(
    parser
      .option('subset', {
        type: 'string',
        requiresArg: true,
        describe: 'dataset: a file, a folder, or full, verified, lite, multilingual, multimodal',
      })
      .option('split', {
        type: 'string',
        requiresArg: true,
        describe: 'split; default: test, or the only one',
      })
      .option('revision', {
        type: 'string',
        requiresArg: true,
        describe: 'commit, branch or tag of the dataset; default: the newest one here',
      })
      .option('data-dir', {
        type: 'string',
        requiresArg: true,
        describe: 'folder with local copies of the named datasets',
      })
      .option('slice', {
        type: 'string',
        requiresArg: true,
        describe: 'Python slice of what is left after --filter: 0:5, -3:, ::2',
      })
      .option('filter', {
        type: 'string',
        requiresArg: true,
        describe: 'regular expression that the id must start with',
      })
      .option('shuffle', { type: 'boolean', describe: 'sort by id, then shuffle as Python does with --seed' })
      .option('instance', {
        alias: 'i',
        type: 'string',
        array: true,
        describe: 'only these ids (repeat, or separate with commas)',
      })
      .option('limit', { type: 'number', requiresArg: true, describe: 'the first N of what is left' })
      .option('sample', {
        type: 'number',
        requiresArg: true,
        describe: 'N by hash: a larger N is a superset',
      })
      .option('stratify', {
        type: 'string',
        requiresArg: true,
        describe: 'columns to spread the sample over: repo,difficulty',
      })
      .option('seed', {
        type: 'number',
        requiresArg: true,
        describe: 'of --shuffle and --sample; default 42',
      })
      .option('failed-in', {
        type: 'string',
        requiresArg: true,
        describe: 'only instances that RUN did not resolve',
      })
      .option('model', {
        alias: 'm',
        type: 'string',
        array: true,
        describe: 'model id, scripted:PATH, replay:RUN[/ARM] or replay:FILE; several make arms',
      })
      .option('model-class', {
        type: 'string',
        requiresArg: true,
        describe: 'openai, or the path of a module',
      })
      .option('model-latency', {
        type: 'number',
        requiresArg: true,
        describe: 'milliseconds a scripted model takes',
      })
      .option('environment-class', {
        type: 'string',
        requiresArg: true,
        describe: 'docker, local, or the path of a module',
      })
      .option('config', {
        alias: 'c',
        type: 'string',
        array: true,
        describe: 'file, or key.path=value; repeats, later wins',
      })
      .option('workers', {
        alias: 'w',
        type: 'number',
        requiresArg: true,
        describe: 'slots: instances at a time',
      })
      .option('epochs', {
        type: 'number',
        requiresArg: true,
        describe: 'independent repeats of every instance',
      })
      .option('cost-limit', {
        ...costLimitOption,
        describe: 'budget of the whole run in dollars, over restarts; none: no limit',
      })
      .option('output', outputOption)
      .option('run-id', {
        type: 'string',
        requiresArg: true,
        describe: 'name of the run; default: a new one from the time',
      })
      .option('redo-existing', {
        type: 'boolean',
        default: false,
        describe: 'run sealed trials once more; all attempts are kept',
      })
      .option('evaluate', { type: 'boolean', describe: 'grade predictions as they arrive' })
      .option('emit-empty', {
        type: 'boolean',
        describe: 'write "" into predictions for trials that were not decided',
      })
      .option('pull', {
        choices: ['never', 'missing', 'always'] as const,
        describe: 'when images are pulled',
      })
      .option('order', {
        choices: ['dataset', 'shuffle', 'longest'] as const,
        describe: 'order in which trials start',
      })
      .option('allow-config-change', {
        type: 'boolean',
        default: false,
        describe: 'go on with a changed configuration; recorded as a boundary',
      })
      .option('dry-run', {
        type: 'boolean',
        default: false,
        describe:
          'start nothing: instances, images and disk to have, cost and time to expect, what will not be seen',
      })
      .option('progress', {
        choices: PROGRESS_MODES,
        default: 'auto' as const,
        describe: 'bars on a terminal, else lines; json: one event a line on stdout',
      })
      .option('json', jsonOption)
      .example('$0 run --subset verified --slice 0:5 -m gpt-5.4 -w 4 --evaluate', 'five instances, graded')
      .example(
        '$0 run --subset lite -c swebench.yaml -c agent.step_limit=100 -m gpt-5.4',
        'with a configuration',
      )
      .example(
        '$0 run --subset data.jsonl -m a -m b --epochs 3 --dry-run',
        'the plan of two arms and three epochs',
      ),
  );
