/** What others build on: the contracts, the default parts, the vocabulary. */

export { type AgentConfig, agentConfigSchema } from './agent/agentConfig.ts';
export type * from './agent/contract.ts';
export * from './agent/errors.ts';
export * from './agent/loop/agent.ts';
export * from './agent/loop/exceptions.ts';
export type { ToolErrorCode } from './agent/tool.ts';
export * as Tool from './agent/tool.ts';
export { evaluate, judgeNight, resumeRun, startRun } from './calls.ts';
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
