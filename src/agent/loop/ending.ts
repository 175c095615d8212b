/** Turns the exception that ended an attempt into its result, and into the messages for people. */
import type { Message } from '../../model/model.ts';
import type { AgentCallbacks, AgentContext, AgentResult } from '../contract.ts';
import { errorResponse, mapModelErrorCodeToAgentErrorCode } from '../errors.ts';
import { LimitsExceeded, ModelFailed, Submitted, type TerminatingException } from './exceptions.ts';
import type { Meter } from './meter.ts';

export function resultOf(end: TerminatingException, messages: readonly Message[], meter: Meter): AgentResult {
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
