/** The flags of `evaluate`, and the options that they make. */
import { z } from 'zod';
import type { GradingConfig } from '../../grading/gradingConfig.ts';
import type { DatasetChoice } from '../../results/evaluate/gradingRules.ts';
import { UserError } from '../../run/userError.ts';
import { integer } from './checks.ts';
import { json, output } from './commonFlags.ts';
import { type Args, flags } from './flags.ts';

/** Takes one value each time, and may repeat. */
const texts = z
  .union([z.string(), z.array(z.string())])
  .optional()
  .transform((value) => (value === undefined ? [] : [value].flat()));

export const evaluateFlags = flags({
  target: {
    type: 'string',
    place: 'optional',
    describe: 'run (name, unique prefix, "last"), preds.json, all_preds.jsonl, or "gold"',
  },
  output,
  subset: {
    alias: 'd',
    type: 'string',
    check: texts,
    describe: 'dataset of the predictions or logs; may repeat with --regrade',
  },
  split: { type: 'string', describe: 'split of the dataset' },
  dataDir: { type: 'string', describe: 'folder with local copies of datasets' },
  instance: {
    alias: 'i',
    type: 'string',
    check: texts,
    describe: 'only these ids (repeat, or separate with commas)',
  },
  workers: {
    alias: ['w', 'max_workers'],
    type: 'number',
    check: integer(1),
    describe: 'evaluations at a time',
  },
  timeout: {
    alias: 't',
    type: 'number',
    check: z.number().min(0).optional(),
    describe: 'seconds for the tests [1800]',
  },
  memory: { type: 'string', describe: 'memory limit of a container [none]' },
  network: {
    choices: ['default', 'none'],
    bare: true,
    describe: "default is the harness's own; none is recorded with the verdict",
  },
  capAdd: {
    type: 'string',
    check: texts,
    describe: 'capability of the containers; SYS_ADMIN is what the harness adds for browser tests',
  },
  dialect: { choices: ['v5', 'v4.1'], bare: true, describe: 'rules of the harness to grade by [v5]' },
  parser: {
    type: 'string',
    check: texts,
    describe: 'ID=MODULE: a log parser of your own (exports parseLog)',
  },
  runId: { alias: 'id', type: 'string', describe: 'name of the run that predictions become' },
  again: { type: 'boolean', default: false, describe: 're-grade instances that already have a verdict' },
  regrade: {
    type: 'string',
    check: texts,
    describe: 'grade from the logs in this folder, without containers',
  },
  write: {
    type: 'boolean',
    default: true,
    describe: 'with --regrade: replace report.json in each folder (--no-write: only show)',
  },
  verifyGold: {
    type: 'boolean',
    default: false,
    describe: 'grade the gold patches and remember which of them pass on this machine',
  },
  repeat: {
    type: 'number',
    check: integer(1),
    describe: 'with --verify-gold: evaluations of each instance, to find flaky ones [1]',
  },
  json,
});
export type EvaluateArgs = Args<typeof evaluateFlags>;

/** Only what was given; everything else stays as the run was planned, or at its default. */
export function gradingGiven(args: EvaluateArgs): Partial<GradingConfig> {
  const own = args.parser.map((entry): [string, string] => {
    const at = entry.indexOf('=');
    if (at < 1) throw new UserError(`--parser ${entry}: write ID=MODULE, e.g. --parser mine=./my-parser.ts`);
    return [entry.slice(0, at), entry.slice(at + 1)];
  });
  return {
    ...(args.workers !== undefined && { workers: args.workers }),
    ...(args.timeout !== undefined && { timeout: args.timeout }),
    ...(args.memory !== undefined && { memory: args.memory }),
    ...(args.network !== undefined && { network: args.network }),
    ...(args.capAdd.length > 0 && { cap_add: args.capAdd }),
    ...(args.dialect !== undefined && { dialect: args.dialect }),
    parsers: Object.fromEntries(own),
  };
}

export const idsGiven = (args: EvaluateArgs): string[] =>
  args.instance.flatMap((entry) => entry.split(',')).filter(Boolean);

export const datasetGiven = (args: EvaluateArgs, subset: string): DatasetChoice => ({
  subset,
  split: args.split,
  dataDir: args.dataDir,
});
