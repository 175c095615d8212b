/**
 * The agent's control flow, as the seeds have it: recoverable conditions carry the messages that tell the model about them,
 * terminating ones say how the attempt ended, and become its result. The class name is the exit status.
 */
import type {
  Message,
  ModelErrorCode,
  ModelErrorResponse,
  ProviderErrorMetadata,
} from '../../model/model.ts';
import type { AgentCallbacks, AgentContext, AgentResult } from '../contract.ts';
import { errorResponse, mapModelErrorCodeToAgentErrorCode } from '../errors.ts';

/** The agent can go on: `messages` are appended to the history. */
export class NonTerminatingException extends Error {
  override readonly name: string = 'NonTerminatingException';
  readonly messages: readonly Message[];
  constructor(messages: readonly Message[]) {
    super(messages.map((m) => String(m.content ?? '')).join('\n'));
    this.messages = messages;
  }
}

/** The reply holds no action in the expected format. */
export class FormatError extends NonTerminatingException {
  override readonly name = 'FormatError';
}

/** A command ran into its time limit and was killed. */
export class ExecutionTimeoutError extends NonTerminatingException {
  override readonly name = 'ExecutionTimeoutError';
}

/** The reply holds nothing at all: it is asked for again, and nothing is added to the history. */
export class EmptyReply extends NonTerminatingException {
  override readonly name = 'EmptyReply';
  constructor() {
    super([]);
  }
}

/** The attempt is over. `message` is the content of the last message of the trajectory. */
export class TerminatingException extends Error {
  override readonly name: string = 'TerminatingException';
}

/** The agent declared its work finished. */
export class Submitted extends TerminatingException {
  override readonly name = 'Submitted';
  readonly submission: string;
  readonly bytes: Uint8Array;
  constructor(submission: string, bytes: Uint8Array) {
    super(submission);
    this.submission = submission;
    this.bytes = bytes;
  }
}

export type Limit =
  | 'steps'
  | 'cost'
  | 'tokens'
  | 'wall_time'
  | 'format_errors'
  | 'empty_responses'
  | 'command_timeouts';

/** A limit of the configuration was reached. */
export class LimitsExceeded extends TerminatingException {
  override readonly name: string = 'LimitsExceeded';
  readonly limit: Limit;
  constructor(limit: Limit, message = '') {
    super(message);
    this.limit = limit;
  }
}
export class TimeExceeded extends LimitsExceeded {
  override readonly name = 'TimeExceeded';
  constructor(message = '') {
    super('wall_time', message);
  }
}
export class RepeatedFormatError extends LimitsExceeded {
  override readonly name = 'RepeatedFormatError';
  constructor(message = '') {
    super('format_errors', message);
  }
}
export class EmptyResponsesExceeded extends LimitsExceeded {
  override readonly name = 'EmptyResponsesExceeded';
  constructor(message: string) {
    super('empty_responses', message);
  }
}
export class CommandTimeoutsExceeded extends LimitsExceeded {
  override readonly name = 'CommandTimeoutsExceeded';
  constructor(message: string) {
    super('command_timeouts', message);
  }
}

/** The model could not answer; the model layer has done its retries. */
export class ModelFailed extends TerminatingException {
  override readonly name = 'ModelFailed';
  readonly code: ModelErrorCode;
  readonly metadata: ProviderErrorMetadata | undefined;
  constructor(response: ModelErrorResponse) {
    super(response.message);
    this.code = response.error;
    this.metadata = response.metadata;
  }
}

export function resultOf(
  end: TerminatingException,
  messages: readonly Message[],
  meter: Pick<AgentResult, 'steps' | 'costNano'>,
): AgentResult {
  return {
    exitStatus: end.name,
    submission: end instanceof Submitted ? end.submission : '',
    ...(end instanceof Submitted ? { submissionBytes: end.bytes } : {}),
    ...(end instanceof LimitsExceeded ? { limit: end.limit } : {}),
    ...(end instanceof ModelFailed ? { error: errorOf(end) } : {}),
    messages,
    steps: meter.steps,
    costNano: meter.costNano,
  };
}

const errorOf = ({ code, message, metadata }: ModelFailed) => ({
  code,
  message,
  ...(metadata ? { metadata } : {}),
});

/** A submission and most limits are not errors. */
export function announce(end: TerminatingException, ctx: AgentContext, callbacks: AgentCallbacks): void {
  if (end instanceof ModelFailed) {
    const code = mapModelErrorCodeToAgentErrorCode(end.code);
    callbacks.onError?.(ctx, errorResponse(code, end.message, end.metadata));
    callbacks.onDebug?.('the model failed', errorOf(end));
  } else if (end instanceof LimitsExceeded && end.limit === 'steps')
    callbacks.onError?.(ctx, errorResponse('MAX_ITERATIONS_EXCEEDED', end.message));
}
