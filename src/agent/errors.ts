/**
 * The agent layer of the seeds' error architecture: response union, codes, helpers, mappings, messages for people.
 * One vocabulary: the model's and the tools' codes are a part of the agent's.
 */
import type { ModelErrorCode, ProviderErrorMetadata } from '../model/model.ts';
import type { ToolErrorCode } from './tool.ts';

export const AGENT_ERROR_CODES = [
  'PROVIDER_NOT_CONFIGURED',
  'PROVIDER_NOT_SUPPORTED',
  'AUTHENTICATION_ERROR',
  'RATE_LIMITED',
  'MODEL_NOT_FOUND',
  'CONTEXT_LENGTH_EXCEEDED',
  'NETWORK_ERROR',
  'TIMEOUT',
  'INVALID_RESPONSE',
  'VALIDATION_ERROR',
  'IO_ERROR',
  'CONFIG_ERROR',
  'PERMISSION_DENIED',
  'NOT_FOUND',
  'LLM_ASSIST_REQUIRED',
  'MAX_ITERATIONS_EXCEEDED',
  'TOOL_EXECUTION_ERROR',
  'INITIALIZATION_ERROR',
  'UNKNOWN',
] as const;
export type AgentErrorCode = (typeof AGENT_ERROR_CODES)[number];

export interface AgentSuccessResponse<T> {
  success: true;
  result: T;
  message: string;
}
export interface AgentErrorResponse {
  success: false;
  error: AgentErrorCode;
  message: string;
  metadata?: ProviderErrorMetadata;
}
export type AgentResponse<T> = AgentSuccessResponse<T> | AgentErrorResponse;

export const successResponse = <T>(result: T, message: string): AgentSuccessResponse<T> => ({
  success: true,
  result,
  message,
});

export const errorResponse = (
  error: AgentErrorCode,
  message: string,
  metadata?: ProviderErrorMetadata,
): AgentErrorResponse => ({ success: false, error, message, ...(metadata ? { metadata } : {}) });

export const isAgentSuccess = <T>(response: AgentResponse<T>): response is AgentSuccessResponse<T> =>
  response.success;
export const isAgentError = (response: AgentResponse<unknown>): response is AgentErrorResponse =>
  !response.success;

/** Codes that a layer below shares with the agent keep their name; a code nobody knows is UNKNOWN. */
export const mapModelErrorCodeToAgentErrorCode = (code: ModelErrorCode): AgentErrorCode => known(code);
export const mapToolErrorCodeToAgentErrorCode = (code: ToolErrorCode): AgentErrorCode => known(code);
const known = (code: string): AgentErrorCode =>
  (AGENT_ERROR_CODES as readonly string[]).includes(code) ? (code as AgentErrorCode) : 'UNKNOWN';

const RETRYABLE: ReadonlySet<AgentErrorCode> = new Set(['RATE_LIMITED', 'NETWORK_ERROR', 'TIMEOUT']);
export const isRetryableError = (code: AgentErrorCode): boolean => RETRYABLE.has(code);

/** Plain language and a next step; details are for onDebug. */
export function getUserFriendlyMessage(error: AgentErrorCode, metadata: ProviderErrorMetadata = {}): string {
  const provider = metadata.provider ?? 'the model provider';
  const model = metadata.model ? `the model "${metadata.model}"` : 'the model';
  const wait = metadata.retryAfter === undefined ? 'Wait a little' : `Wait ${metadata.retryAfter} seconds`;
  const messages: Record<AgentErrorCode, string> = {
    PROVIDER_NOT_CONFIGURED: `The settings of the model section do not work for ${provider}. Check its address, key and parameters.`,
    PROVIDER_NOT_SUPPORTED: `${capital(provider)} is not supported. Use an endpoint that speaks the OpenAI chat API.`,
    AUTHENTICATION_ERROR: `${capital(provider)} did not accept the API key. Check the key in the variable that model.api_key_env names.`,
    RATE_LIMITED: `${capital(provider)} is limiting requests. ${wait}, or run with fewer workers.`,
    MODEL_NOT_FOUND: `${capital(provider)} does not know ${model}. Check model.model_name.`,
    CONTEXT_LENGTH_EXCEEDED: `The conversation no longer fits into ${model}. Lower the step limit or use a model with a larger context.`,
    NETWORK_ERROR: `Cannot reach ${provider}. Check the network and model.base_url.`,
    TIMEOUT: `${capital(provider)} took too long to answer. Try again, or raise the timeouts of the model section.`,
    INVALID_RESPONSE: `${capital(provider)} sent an answer that cannot be read. Try again; if it goes on, check model.base_url.`,
    VALIDATION_ERROR:
      'A command was given in a form that cannot run. Look at the trajectory for what the model sent.',
    IO_ERROR: 'Reading or writing failed. Check the disk and its free space.',
    CONFIG_ERROR: 'The configuration cannot work. Run "swebatch doctor" to see what is wrong.',
    PERMISSION_DENIED: 'Permission was denied. Check the rights of the file or of the Docker socket.',
    NOT_FOUND: 'Something that is needed was not found. Check the path or the name.',
    LLM_ASSIST_REQUIRED: 'This step needs the model, which was not asked. Run it again with a model.',
    MAX_ITERATIONS_EXCEEDED:
      'The step limit was reached before the work was submitted. Raise agent.step_limit to give it more.',
    TOOL_EXECUTION_ERROR:
      'The environment of the instance broke. The instance is tried again; see the log for the reason.',
    INITIALIZATION_ERROR: 'The agent could not be started. Run "swebatch doctor" to see what is wrong.',
    UNKNOWN: 'Something unexpected happened. Try again, and report it with the log if it goes on.',
  };
  return messages[error];
}
const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);
