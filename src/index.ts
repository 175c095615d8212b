/** What others build on: the contracts, the default parts, the vocabulary. */

export { type AgentConfig, agentConfigSchema } from './agent/agentConfig.ts';
export type * from './agent/contract.ts';
export * from './agent/errors.ts';
export * from './agent/loop/agent.ts';
export * from './agent/loop/exceptions.ts';
export type { ToolErrorCode } from './agent/tool.ts';
export * as Tool from './agent/tool.ts';
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
export type { RunEvent, TrialLabel } from './runner/events.ts';
export { evaluate, judgeNight, resumeRun, startRun } from './service/calls.ts';
export { type CompareOptions, compare, compareSources } from './service/compare/compareSources.ts';
export type {
  EvaluatePredictionsOptions,
  PredictionsEvaluation,
} from './service/evaluate/evaluatePredictions.ts';
export type { EvaluateRunOptions } from './service/evaluate/evaluateRun.ts';
export type { Evaluation } from './service/evaluate/gradeRun.ts';
export { type ImportedResults, type ImportOptions, importResults } from './service/import/importResults.ts';
export type { ArmVerdict, FirstVerdict, NightOptions, NightVerdict } from './service/night/judgeRun.ts';
export { type DryRun, type PlannedRun, planRun } from './service/plan/dryRun.ts';
export { openResults, type RecordedRun, type Results } from './service/read/openResults.ts';
export type { Running, Surroundings } from './service/running.ts';
export type { RunOutcome } from './service/start/executeRun.ts';
export type { ResumeOptions } from './service/start/goOnWithRun.ts';
export type { RunOptions } from './service/start/runOptions.ts';
export { type NextStep, UserError } from './service/userError.ts';
