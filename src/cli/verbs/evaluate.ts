/** `swebatch evaluate RUN | predictions | gold`, `--regrade DIR`, `--verify-gold`: verdicts, with and without containers. */
import { existsSync } from 'node:fs';
import type { Argv } from 'yargs';
import { UserError } from '../../service/userError.ts';
import { evaluatePredictions } from '../evaluatePredictions.ts';
import { evaluateRun } from '../evaluateRun.ts';
import { evaluateArgsSchema } from '../flags/evaluateArgs.ts';
import { checkArgs } from '../flags/runArgs.ts';
import { jsonOption, outputOption, type Verb } from '../flags/verb.ts';
import { regrade } from '../regrade.ts';

const PREDICTIONS = /\.(json|jsonl|ndjson)$/;

async function run(argv: Readonly<Record<string, unknown>>): Promise<number> {
  const args = checkArgs(evaluateArgsSchema, argv);
  if (args.regrade.length > 0) return regrade(args);
  const target = args.verifyGold ? 'gold' : args.target;
  if (args.verifyGold && args.target !== undefined && args.target !== 'gold')
    throw new UserError('--verify-gold grades the gold patches of a dataset; leave the run or file out', {
      hint: 'swebatch evaluate --verify-gold --subset verified',
    });
  if (target === undefined)
    throw new UserError('what is to be evaluated?', {
      hint: 'name a run ("last"), a predictions file (preds.json, all_preds.jsonl), "gold", or use --regrade DIR',
    });
  if (target === 'gold' || PREDICTIONS.test(target)) return evaluatePredictions(args, target);
  if (existsSync(target) && args.subset.length > 0)
    throw new UserError(`${target} is no predictions file: its name must end in .json or .jsonl`);
  return evaluateRun(args, target);
}

export const evaluateVerb: Verb = {
  command: 'evaluate [target]',
  describe: 'grade a run, a predictions file or gold; regrade saved logs; calibrate a dataset',
  builder: (parser: Argv) =>
    parser
      .positional('target', {
        type: 'string',
        describe: 'run (name, unique prefix, "last"), preds.json, all_preds.jsonl, or "gold"',
      })
      .option('output', outputOption)
      .option('subset', {
        alias: 'd',
        type: 'string',
        requiresArg: true,
        describe: 'dataset of the predictions or logs; may repeat with --regrade',
      })
      .option('split', { type: 'string', requiresArg: true, describe: 'split of the dataset' })
      .option('data-dir', {
        type: 'string',
        requiresArg: true,
        describe: 'folder with local copies of datasets',
      })
      .option('instance', {
        alias: 'i',
        type: 'string',
        requiresArg: true,
        describe: 'only these ids (repeat, or separate with commas)',
      })
      .option('workers', {
        alias: ['w', 'max_workers'],
        type: 'number',
        requiresArg: true,
        describe: 'evaluations at a time',
      })
      .option('timeout', {
        alias: 't',
        type: 'number',
        requiresArg: true,
        describe: 'seconds for the tests [1800]',
      })
      .option('memory', { type: 'string', requiresArg: true, describe: 'memory limit of a container [none]' })
      .option('network', {
        choices: ['default', 'none'] as const,
        describe: "default is the harness's own; none is recorded with the verdict",
      })
      .option('cap-add', {
        type: 'string',
        requiresArg: true,
        describe: 'capability of the containers; SYS_ADMIN is what the harness adds for browser tests',
      })
      .option('dialect', {
        choices: ['v5', 'v4.1'] as const,
        describe: 'rules of the harness to grade by [v5]',
      })
      .option('parser', {
        type: 'string',
        requiresArg: true,
        describe: 'ID=MODULE: a log parser of your own (exports parseLog)',
      })
      .option('run-id', {
        alias: 'id',
        type: 'string',
        requiresArg: true,
        describe: 'name of the run that predictions become',
      })
      .option('again', { type: 'boolean', default: false, describe: 'also what has a verdict already' })
      .option('regrade', {
        type: 'string',
        requiresArg: true,
        describe: 'verdicts from the logs in this folder, without containers',
      })
      .option('write', {
        type: 'boolean',
        default: true,
        describe: 'with --regrade: replace report.json in each folder (--no-write: only show)',
      })
      .option('verify-gold', {
        type: 'boolean',
        default: false,
        describe: 'grade the gold patches and remember which of them pass on this machine',
      })
      .option('repeat', {
        type: 'number',
        requiresArg: true,
        describe: 'with --verify-gold: evaluations of each instance, to find flaky ones [1]',
      })
      .option('json', jsonOption)
      .example('$0 evaluate last', 'grade what the last run predicted')
      .example('$0 evaluate preds.json --subset verified -w 4', 'a predictions file of any tool')
      .example('$0 evaluate --verify-gold --subset lite', 'what gold does on this machine')
      .example(
        '$0 evaluate --regrade logs/run_evaluation --subset lite.parquet --no-write --json',
        "the harness's own logs",
      ),
  run,
};
