/** The functions that start work from a program: runs, gradings and verdicts, with events. */
import { resolve } from 'node:path';
import {
  type EvaluatePredictionsOptions,
  evaluatePredictions,
} from './results/evaluate/evaluatePredictions.ts';
import type { Evaluation } from './results/evaluate/gradeRun.ts';
import { type EvaluateRunOptions, evaluateRun } from './results/evaluate/gradeRun.ts';
import { requireBaseline } from './results/night/gateRun.ts';
import { judgeRun, type NightOptions, type NightVerdict } from './results/night/judgeRun.ts';
import { beginRun, goOnWithRun, type ResumeOptions } from './run/begin.ts';
import { preflight } from './run/plan/preflight.ts';
import type { RunOptions } from './run/plan/resolveConfig.ts';
import { plan } from './run/plan.ts';
import { hasBegun, makeAndOpen, openForWriting } from './run/resultsRoot.ts';
import type { RunOutcome } from './run/run.ts';
import { type Running, type Surroundings, startWork } from './run/running.ts';

/** Checks everything first: what is wrong rejects before anything is made or paid. */
export const startRun = (options: RunOptions & Surroundings): Promise<Running<RunOutcome>> =>
  startWork(options, async (caller) => {
    const results = resolve(caller.cwd, options.results);
    const planned = await plan({ ...options, results }, caller);
    await preflight(planned.resolved, caller, !hasBegun(results, planned.request.name));
    using store = makeAndOpen(results);
    return await beginRun(store, planned, caller);
  });

/** Goes on with a run from its record alone. */
export const resumeRun = (options: ResumeOptions & Surroundings): Promise<Running<RunOutcome>> =>
  startWork(options, async (caller) => {
    const results = resolve(caller.cwd, options.results);
    using store = openForWriting(results);
    return await goOnWithRun(store, { ...options, results }, caller);
  });

/** Verdicts for a run, or for predictions of any tool. */
export const evaluate = (
  options: (EvaluateRunOptions | EvaluatePredictionsOptions) & Surroundings,
): Promise<Running<Evaluation>> =>
  startWork(options, (caller) => {
    const results = resolve(caller.cwd, options.results);
    return 'run' in options
      ? evaluateRun({ ...options, results }, caller)
      : evaluatePredictions({ ...options, results }, caller);
  });

/** The gate of a graded run. */
export const judgeNight = (options: NightOptions & Surroundings): Promise<Running<NightVerdict>> =>
  startWork(options, async (caller, begun) => {
    const results = resolve(caller.cwd, options.results);
    using store = openForWriting(results);
    requireBaseline(store, options.baseline, { name: options.run });
    begun();
    return await judgeRun(store, { ...options, results }, caller);
  });
