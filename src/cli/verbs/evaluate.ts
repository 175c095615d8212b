/** `swebatch evaluate RUN | predictions | gold`, `--regrade DIR`, `--verify-gold`: verdicts, with and without containers. */
import { existsSync } from 'node:fs';
import { evaluatePredictions } from '../../results/evaluate/evaluatePredictions.ts';
import { type EvaluateOptions, evaluateRun } from '../../results/evaluate/evaluateRun.ts';
import { resultsRoot } from '../../run/resultsRoot.ts';
import { UserError } from '../../run/userError.ts';
import { attendGrading, concludeEvaluation, showCalibration } from '../evaluation.ts';
import {
  datasetGiven,
  type EvaluateArgs,
  evaluateFlags,
  gradingGiven,
  idsGiven,
} from '../flags/evaluateFlags.ts';
import { defineVerb } from '../flags/verb.ts';
import { regrade } from '../regrade.ts';
import { thisProcess } from '../terminal/thisProcess.ts';

const PREDICTIONS = /\.(json|jsonl|ndjson)$/;

async function run(args: EvaluateArgs): Promise<number> {
  if (args.regrade.length > 0) return regrade(args);
  const target = args.verifyGold ? 'gold' : args.target;
  if (args.verifyGold && args.target !== undefined && args.target !== 'gold')
    throw new UserError('--verify-gold grades the gold patches of a dataset; leave the run or file out', {
      hint: 'swebatch evaluate --verify-gold --subset verified',
    });
  if (target === undefined)
    throw new UserError('name what to evaluate', {
      hint: 'a run ("last"), a predictions file (preds.json, all_preds.jsonl), "gold", or use --regrade DIR',
    });
  if (target === 'gold' || PREDICTIONS.test(target)) return predictions(args, target);
  if (existsSync(target) && args.subset.length > 0)
    throw new UserError(`${target} is not a predictions file: its name must end in .json or .jsonl`);
  const evaluation = await evaluateRun({ ...optionsOf(args), run: target }, caller());
  return concludeEvaluation(evaluation, args.json);
}

const caller = () => ({ ...thisProcess(), attend: attendGrading });

const optionsOf = (args: EvaluateArgs): EvaluateOptions => ({
  results: resultsRoot(args.output),
  grading: gradingGiven(args),
  instances: idsGiven(args),
  again: args.again || args.verifyGold,
});

async function predictions(args: EvaluateArgs, target: string): Promise<number> {
  const [subset, ...more] = args.subset;
  if (subset === undefined)
    throw new UserError(`--subset is missing: ${target} does not say which tests are expected`, {
      hint: `swebatch evaluate ${target} --subset verified`,
    });
  if (more.length > 0) throw new UserError('predictions are graded against one dataset; give --subset once');
  const evaluation = await evaluatePredictions(
    {
      ...optionsOf(args),
      predictions: target,
      dataset: datasetGiven(args, subset),
      name: args.runId,
      repeat: args.verifyGold ? args.repeat : 1,
    },
    caller(),
  );
  const code = concludeEvaluation(evaluation, args.json);
  if (args.verifyGold && !args.json) showCalibration(evaluation.calibration);
  return code;
}

export const evaluateVerb = defineVerb({
  name: 'evaluate',
  describe: 'grade a run, a predictions file or gold; regrade saved logs; calibrate a dataset',
  flags: evaluateFlags,
  examples: [
    ['$0 evaluate last', 'grade what the last run predicted'],
    ['$0 evaluate preds.json --subset verified -w 4', 'a predictions file of any tool'],
    ['$0 evaluate --verify-gold --subset lite', 'how the gold patches do on this machine'],
    [
      '$0 evaluate --regrade logs/run_evaluation --subset lite.parquet --no-write --json',
      "the harness's own logs",
    ],
  ],
  run,
});
