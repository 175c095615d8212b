/** `evaluate`: verdicts from a program, for a run or for predictions of any tool. */
import { resolve } from 'node:path';
import { type Running, type Surroundings, startWork } from '../running.ts';
import { type EvaluatePredictionsOptions, evaluatePredictions } from './evaluatePredictions.ts';
import { type EvaluateRunOptions, evaluateRun } from './evaluateRun.ts';
import type { Evaluation } from './gradeRun.ts';

export const evaluate = (
  options: (EvaluateRunOptions | EvaluatePredictionsOptions) & Surroundings,
): Promise<Running<Evaluation>> =>
  startWork(options, (caller) => {
    const results = resolve(caller.cwd, options.results);
    return 'run' in options
      ? evaluateRun({ ...options, results }, caller)
      : evaluatePredictions({ ...options, results }, caller);
  });
