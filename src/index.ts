/** The public interface: the contracts, the default parts, the vocabulary, and the functions that start work from a program. */

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

export { type AgentConfig, agentConfigSchema } from './agent/agentConfig.ts';
export type * from './agent/contract.ts';
export * from './agent/errors.ts';
export * from './agent/loop/agent.ts';
export * from './agent/loop/exceptions.ts';
export type { ToolErrorCode } from './agent/tool.ts';
export * as Tool from './agent/tool.ts';
export type {
  PlainEnvironment as Environment,
  PlainFactory as EnvironmentFactory,
} from './environment/capabilities.ts';
export { createDockerFactory } from './environment/docker/dockerFactory.ts';
export type * from './environment/environment.ts';
export { EnvironmentError } from './environment/environment.ts';
export type { EnvironmentConfig } from './environment/environmentConfig.ts';
export { createLocalFactory } from './environment/local/localFactory.ts';
export type { LogParser } from './grading/parsers/logParser.ts';
export { mapErrorToCode } from './model/classify.ts';
export type * from './model/model.ts';
export { MODEL_ERROR_CODES } from './model/model.ts';
export type { ModelConfig, RetryConfig } from './model/modelConfig.ts';
export type { ModelModule } from './model/modelFactory.ts';
export * from './money.ts';
export * from './outcome.ts';
export { type CompareOptions, compare, compareSources } from './results/compareSources.ts';
export type {
  EvaluatePredictionsOptions,
  PredictionsEvaluation,
} from './results/evaluate/evaluatePredictions.ts';
export type { EvaluateRunOptions, Evaluation } from './results/evaluate/gradeRun.ts';
export { type ImportedResults, type ImportOptions, importResults } from './results/import/importResults.ts';
export type { ArmVerdict, FirstVerdict, NightOptions, NightVerdict } from './results/night/judgeRun.ts';
export { openResults, type RecordedRun, type Results } from './results/openResults.ts';
export type { ResumeOptions } from './run/begin.ts';
export type { RunEvent, TrialLabel } from './run/events.ts';
export { type DryRun, type PlannedRun, planRun } from './run/plan/dryRun.ts';
export type { RunOptions } from './run/plan/resolveConfig.ts';
export type { RunOutcome } from './run/run.ts';
export type { Running, Surroundings } from './run/running.ts';
export { type NextStep, UserError } from './run/userError.ts';

/** Checks everything first: what is wrong rejects before anything is made or paid. */
export const startRun = (options: RunOptions & Surroundings): Promise<Running<RunOutcome>> =>
  startWork(options, async (caller) => {
    const results = resolve(caller.cwd, options.results);
    const planned = await plan({ ...options, results }, caller);
    const { selected, name } = planned.request;
    await preflight({ ...planned.resolved, selected }, caller, !hasBegun(results, name));
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
