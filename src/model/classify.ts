/**
 * One table from what a provider did to what it means: (exception, provider code, status, wording) → error code, kind and
 * whether a retry can help. Pure. Status and provider code decide; wording counts only where a status says too little, and
 * keywords alone only when neither status nor code is there.
 */

import type { TransportFault } from './http/exchange.ts';
import type { ModelErrorCode, ModelFailureKind } from './model.ts';
import { asksTooMuch, says } from './wordings.ts';

export interface Fault {
  readonly status?: number | null;
  readonly code?: string | null;
  readonly type?: string | null;
  readonly message: string;
  readonly transport?: TransportFault;
  /** The body was not what the status promised: HTML, cut, or an error object in a 200. */
  readonly broken?: boolean;
  /** The parameter that a refusal names. */
  readonly parameter?: string | null;
}

export interface Verdict {
  readonly code: ModelErrorCode;
  readonly kind: ModelFailureKind;
  readonly retryable: boolean;
}

const verdict = (code: ModelErrorCode, kind: ModelFailureKind, retryable = false): Verdict => ({
  code,
  kind,
  retryable,
});

const RATE_LIMITED = verdict('RATE_LIMITED', 'unavailable', true);
const NETWORK = verdict('NETWORK_ERROR', 'unavailable', true);
const TIMEOUT = verdict('TIMEOUT', 'unavailable', true);
const AUTH = verdict('AUTHENTICATION_ERROR', 'auth');
const NOT_FOUND = verdict('MODEL_NOT_FOUND', 'not_found');
const CONTEXT = verdict('CONTEXT_LENGTH_EXCEEDED', 'context');
const REFUSAL = verdict('INVALID_RESPONSE', 'refusal');
/** No code of the seed says "no money left"; it is a limit of the account, and waiting does not help. */
const QUOTA = verdict('RATE_LIMITED', 'quota');
export const REJECTED = verdict('UNKNOWN', 'rejected');
/** Every call sends the same parameters, so every instance would end like this one. */
const PARAMETER = verdict('PROVIDER_NOT_CONFIGURED', 'config');

/** No credentials could be had: for ever, or for now. */
export const credentialVerdict = (passing: boolean): Verdict => (passing ? NETWORK : AUTH);
/** Refused, and others are there: worth another try. */
export const RENEWED = verdict('AUTHENTICATION_ERROR', 'auth', true);

/** Deadlines that we set are timeouts; everything else that happens to a connection is the network. */
const BY_TRANSPORT: Readonly<Record<TransportFault, Verdict>> = {
  connect_timeout: TIMEOUT,
  first_byte: TIMEOUT,
  idle: TIMEOUT,
  total: TIMEOUT,
  connect: NETWORK,
  reset: NETWORK,
  cut: NETWORK,
  too_large: verdict('INVALID_RESPONSE', 'rejected'),
  aborted: verdict('UNKNOWN', 'unavailable'),
};

const BY_CODE: readonly (readonly [RegExp, Verdict])[] = [
  [
    /^(insufficient_quota|billing_hard_limit_reached|billing_not_active|insufficient_(credits|balance)|payment_required|credit_balance_too_low|servicequotaexceededexception)$/,
    QUOTA,
  ],
  [
    /^(context_length_exceeded|context_window_exceeded|exceed_context_size_error|request_too_large|model_max_prompt_tokens_exceeded|contextwindowexceedederror)$/,
    CONTEXT,
  ],
  [
    /^(content_policy_violation|content_policy|content_filter|invalid_prompt|responsibleaipolicyviolation|moderation_blocked|safety|refusal)$/,
    REFUSAL,
  ],
  [
    /^(invalid_api_key|authentication_error|unauthenticated|permission_denied|permission_error|account_deactivated|invalid_authentication)$/,
    AUTH,
  ],
  [
    /^(model_not_found|model_not_available|deploymentnotfound|not_found_error|modelnotfound|unknown_model)$/,
    NOT_FOUND,
  ],
  [
    /^(rate_limit_exceeded|rate_limit_error|too_many_requests|resource_exhausted|overloaded_error|engine_overloaded)$/,
    RATE_LIMITED,
  ],
  [
    /^(server_error|internal_error|internal_server_error|api_error|service_unavailable|unavailable|bad_gateway|timeout_error|modelerrorexception|modelnotreadyexception)$/,
    NETWORK,
  ],
];

/** No code in the table is half as long. */
const LONGEST_CODE = 100;

/** Of a request that the server read and did not like. */
function byWording(message: string, parameter: string | null): Verdict | null {
  if (says(message, 'quota')) return QUOTA;
  if (asksTooMuch(message)) return PARAMETER;
  if (says(message, 'context')) return CONTEXT;
  if (says(message, 'auth')) return AUTH;
  if (says(message, 'refusal')) return REFUSAL;
  if (parameter !== null) return parameter === 'model' ? NOT_FOUND : PARAMETER;
  if (says(message, 'model')) return NOT_FOUND;
  return null;
}

function byStatus(status: number, message: string, parameter: string | null): Verdict {
  if (status === 401) return AUTH;
  if (status === 402) return QUOTA;
  // OpenRouter answers 403 when its moderation stops a prompt.
  if (status === 403) return says(message, 'refusal') ? REFUSAL : AUTH;
  if (status === 404) return NOT_FOUND;
  if (status === 408) return TIMEOUT;
  if (status === 409 || status === 425) return NETWORK;
  if (status === 429) {
    if (says(message, 'quota') && !says(message, 'rate')) return QUOTA;
    return says(message, 'tooLargeForRate') ? REJECTED : RATE_LIMITED;
  }
  // Ollama, llama.cpp and gateways answer so to a prompt that is too long.
  if (status >= 500) return says(message, 'context') ? CONTEXT : NETWORK;
  if (status >= 400) return byWording(message, parameter) ?? REJECTED;
  // A redirect is not followed: it would carry the key to another host.
  return status >= 300 ? REJECTED : NETWORK;
}

/** Inside a 200 the type of an error is all that says what its status would have been. */
const IMPLIED = /^(invalid_request(_error)?|invalid_argument|badrequesterror)$/;
const impliedStatus = ({ code, type }: Fault): number | null =>
  [code, type].some((word) => word && word.length <= LONGEST_CODE && IMPLIED.test(word.toLowerCase()))
    ? 400
    : null;

export function classify(fault: Fault): Verdict {
  if (fault.transport) return BY_TRANSPORT[fault.transport];
  for (const word of [fault.code, fault.type]) {
    const row =
      word && word.length <= LONGEST_CODE
        ? BY_CODE.find(([pattern]) => pattern.test(word.toLowerCase()))
        : undefined;
    if (!row) continue;
    // OpenAI and Groq give a single request that is larger than the limit of a minute the code of a rate limit.
    if (row[1] === RATE_LIMITED && says(fault.message, 'tooLargeForRate')) return REJECTED;
    if (row[1] === NETWORK && says(fault.message, 'context')) return CONTEXT;
    return row[1];
  }
  const status = fault.status ?? (fault.broken ? impliedStatus(fault) : null);
  if (status) {
    const found = byStatus(status, fault.message, fault.parameter ?? null);
    // An error object in a 200 is the network's fault unless it clearly says that no retry can help.
    return fault.broken && (found.retryable || found.kind === 'rejected') && found.code !== 'RATE_LIMITED'
      ? NETWORK
      : found;
  }
  if (fault.broken) return NETWORK;
  if (says(fault.message, 'context')) return CONTEXT;
  const code = mapErrorToCode(fault);
  return BY_KEYWORD[code] ?? REJECTED;
}

const BY_KEYWORD: Partial<Record<ModelErrorCode, Verdict>> = {
  AUTHENTICATION_ERROR: AUTH,
  RATE_LIMITED,
  TIMEOUT,
  NETWORK_ERROR: NETWORK,
  MODEL_NOT_FOUND: NOT_FOUND,
  PROVIDER_NOT_CONFIGURED: verdict('PROVIDER_NOT_CONFIGURED', 'config'),
  PROVIDER_NOT_SUPPORTED: verdict('PROVIDER_NOT_SUPPORTED', 'config'),
  INVALID_RESPONSE: verdict('INVALID_RESPONSE', 'rejected'),
};

/** In the seed's order; the first row that matches wins. */
const KEYWORDS: readonly (readonly [ModelErrorCode, readonly string[]])[] = [
  ['AUTHENTICATION_ERROR', ['api key', 'unauthorized', 'authentication', 'forbidden']],
  ['RATE_LIMITED', ['rate limit', '429', 'too many requests', 'overloaded']],
  ['TIMEOUT', ['timeout', 'timed out', 'etimedout', 'deadline exceeded']],
  ['NETWORK_ERROR', ['network', 'econnrefused', 'econnreset', 'enotfound', 'eai_again', 'epipe', 'socket']],
  ['NETWORK_ERROR', ['fetch failed', 'connection error', 'terminated', 'bad gateway', 'service unavailable']],
  ['CONTEXT_LENGTH_EXCEEDED', ['context length', 'context window', 'prompt is too long', 'maximum context']],
  ['MODEL_NOT_FOUND', ['model not found', 'does not exist', 'no such model']],
  ['PROVIDER_NOT_CONFIGURED', ['not configured', 'missing credentials']],
  ['PROVIDER_NOT_SUPPORTED', ['not supported', 'unknown provider']],
  ['INVALID_RESPONSE', ['invalid response', 'unexpected token', 'malformed', 'json']],
];

/** A message of megabytes is no message: what it is about stands at its beginning. */
const LONGEST_MESSAGE = 100_000;

/** The seed's keyword classification, for errors that carry nothing but a message. */
export function mapErrorToCode(error: unknown): ModelErrorCode {
  const message = (error as { message?: unknown } | null | undefined)?.message;
  const given = typeof error === 'string' ? error : typeof message === 'string' ? message : '';
  const text = given.slice(0, LONGEST_MESSAGE).toLowerCase();
  const row = KEYWORDS.find(([, words]) => words.some((word) => text.includes(word)));
  return row?.[0] ?? 'UNKNOWN';
}

/** The seed's table: these three and no others. */
export const RETRYABLE_CODES: ReadonlySet<ModelErrorCode> = new Set([
  'RATE_LIMITED',
  'NETWORK_ERROR',
  'TIMEOUT',
]);
