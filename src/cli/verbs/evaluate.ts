/** `swebatch evaluate RUN | predictions | gold`, `--regrade DIR`, `--verify-gold`: verdicts, with and without containers. */
import { existsSync } from 'node:fs';
import { UserError } from '../../service/userError.ts';
import { evaluatePredictions } from '../evaluatePredictions.ts';
import { evaluateRun } from '../evaluateRun.ts';
import { type EvaluateArgs, evaluateFlags } from '../flags/evaluateFlags.ts';
import { defineVerb } from '../flags/verb.ts';
import { regrade } from '../regrade.ts';

const PREDICTIONS = /\.(json|jsonl|ndjson)$/;

async function run(args: EvaluateArgs): Promise<number> {
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

export const evaluateVerb = defineVerb({
  name: 'evaluate',
  describe: 'grade a run, a predictions file or gold; regrade saved logs; calibrate a dataset',
  flags: evaluateFlags,
  examples: [
    ['$0 evaluate last', 'grade what the last run predicted'],
    ['$0 evaluate preds.json --subset verified -w 4', 'a predictions file of any tool'],
    ['$0 evaluate --verify-gold --subset lite', 'what gold does on this machine'],
    [
      '$0 evaluate --regrade logs/run_evaluation --subset lite.parquet --no-write --json',
      "the harness's own logs",
    ],
  ],
  run,
});
