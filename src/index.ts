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
