/** Errors of the gateway in the words of each dialect, so that the program's own client reads them and does not try again. Pure. */
import type { DialectName } from '../../model/dialects/dialects.ts';

export type Refusal = 'bad_request' | 'authentication' | 'payment' | 'not_found' | 'too_large' | 'upgrade';

interface Words {
  readonly status: number;
  readonly openai: readonly [type: string, code: string];
  readonly anthropic: string;
  readonly google: string;
}

const WORDS: Readonly<Record<Refusal, Words>> = {
  bad_request: {
    status: 400,
    openai: ['invalid_request_error', 'invalid_prompt'],
    anthropic: 'invalid_request_error',
    google: 'INVALID_ARGUMENT',
  },
  authentication: {
    status: 401,
    openai: ['invalid_request_error', 'invalid_api_key'],
    anthropic: 'authentication_error',
    google: 'UNAUTHENTICATED',
  },
  // Not 402 and not 429: clients that know neither of them as final would ask again.
  payment: {
    status: 400,
    openai: ['invalid_request_error', 'insufficient_quota'],
    anthropic: 'invalid_request_error',
    google: 'FAILED_PRECONDITION',
  },
  not_found: {
    status: 404,
    openai: ['invalid_request_error', 'model_not_found'],
    anthropic: 'not_found_error',
    google: 'NOT_FOUND',
  },
  too_large: {
    status: 413,
    openai: ['invalid_request_error', 'request_too_large'],
    anthropic: 'request_too_large',
    google: 'INVALID_ARGUMENT',
  },
  upgrade: {
    status: 426,
    openai: ['invalid_request_error', 'upgrade_refused'],
    anthropic: 'invalid_request_error',
    google: 'INVALID_ARGUMENT',
  },
};

export const statusOf = (refusal: Refusal): number => WORDS[refusal].status;

export function errorBody(dialect: DialectName, refusal: Refusal, message: string): Record<string, unknown> {
  const { status, openai, anthropic, google } = WORDS[refusal];
  if (dialect === 'messages') return { type: 'error', error: { type: anthropic, message } };
  if (dialect === 'gemini') return { error: { code: status, message, status: google } };
  return { error: { message, type: openai[0], param: null, code: openai[1] } };
}

/** The same as the last event of a stream that has begun already. */
export function errorEvent(dialect: DialectName, refusal: Refusal, message: string): string {
  const body = errorBody(dialect, refusal, message);
  if (dialect === 'messages') return `event: error\ndata: ${JSON.stringify(body)}\n\n`;
  // Google's client takes an event without candidates for an empty answer; one object alone, without `data:`, is an error to it.
  if (dialect === 'gemini') return `${JSON.stringify(body)}\n\n`;
  if (dialect !== 'responses') return `data: ${JSON.stringify(body)}\n\n`;
  const failed = {
    type: 'response.failed',
    sequence_number: 0,
    response: {
      id: 'resp_gateway',
      object: 'response',
      status: 'failed',
      error: { code: WORDS[refusal].openai[1], message },
      output: [],
    },
  };
  return `event: response.failed\ndata: ${JSON.stringify(failed)}\n\n`;
}
