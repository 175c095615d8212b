/**
 * One table from what a provider did to what it means: (exception, provider code, status, wording) → error code, kind and
 * whether a retry can help. Pure. Status and provider code decide; wording counts only where a status says too little, and
 * keywords alone only when neither status nor code is there.
 */

import type { TransportFault } from './http/httpTransport.ts';
import type { ModelErrorCode, ModelFailureKind } from './model.ts';
import { codeMeans, LESS_THAN_NOTHING, type Meaning, says, saysItself, saysSpent } from './providerErrors.ts';

export interface CallFault {
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

export interface Diagnosis {
  readonly code: ModelErrorCode;
  readonly kind: ModelFailureKind;
  readonly retryable: boolean;
}

const verdict = (code: ModelErrorCode, kind: ModelFailureKind, retryable = false): Diagnosis => ({
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
/** Nobody here knows what it says, so it is nobody's fault. */
const REJECTED = verdict('UNKNOWN', 'rejected');
const TOO_LARGE = verdict('RATE_LIMITED', 'rejected');
/** Every call sends the same parameters, so every instance would end like this one. */
const PARAMETER = verdict('PROVIDER_NOT_CONFIGURED', 'config');

/** No credentials could be had: for ever, or for now. */
export const credentialVerdict = (passing: boolean): Diagnosis => (passing ? NETWORK : AUTH);
/** Refused, and others are there: worth another try. */
export const RENEWED = verdict('AUTHENTICATION_ERROR', 'auth', true);

/** Deadlines that we set are timeouts; everything else that happens to a connection is the network. */
const BY_TRANSPORT: Readonly<Record<TransportFault, Diagnosis>> = {
  connect_timeout: TIMEOUT,
  first_byte: TIMEOUT,
  idle: TIMEOUT,
  total: TIMEOUT,
  connect: NETWORK,
  broken: NETWORK,
  reset: NETWORK,
  cut: NETWORK,
  too_large: verdict('INVALID_RESPONSE', 'rejected'),
  aborted: verdict('UNKNOWN', 'unavailable'),
};

/** A tool was called so that the server could not read it: the model's doing, and the agent can tell it. */
const BAD_CALL = verdict('INVALID_RESPONSE', 'bad_call');

const BY_MEANING: Readonly<Record<Meaning, Diagnosis>> = {
  context: CONTEXT,
  refusal: REFUSAL,
  badCall: BAD_CALL,
  quota: QUOTA,
  auth: AUTH,
  noModel: NOT_FOUND,
  rate: RATE_LIMITED,
  outage: NETWORK,
  tooLargeForRate: TOO_LARGE,
};

/** Of a request that the server read and did not like. */
function byWording(message: string, parameter: string | null): Diagnosis | null {
  if (says(message, 'quota')) return QUOTA;
  if (asksTooMuch(message)) return PARAMETER;
  if (says(message, 'context')) return CONTEXT;
  if (says(message, 'badCall')) return BAD_CALL;
  if (says(message, 'auth')) return AUTH;
  if (says(message, 'refusal')) return REFUSAL;
  if (parameter !== null) return parameter === 'model' ? NOT_FOUND : PARAMETER;
  if (says(message, 'noModel')) return NOT_FOUND;
  return null;
}

/** Ollama, llama.cpp and DeepInfra answer with a 5xx to what is wrong with the conversation. A 5xx that quotes such a sentence is an outage. */
function ofServer(message: string): Diagnosis | null {
  if (saysItself(message, 'context')) return CONTEXT;
  return saysItself(message, 'badCall') ? BAD_CALL : null;
}

function byStatus(status: number, message: string, parameter: string | null): Diagnosis {
  if (status === 401) return AUTH;
  if (status === 402) return QUOTA;
  // OpenRouter answers 403 when its moderation stops a prompt, xAI when the money is spent.
  if (status === 403) return saysSpent(message) ? QUOTA : says(message, 'refusal') ? REFUSAL : AUTH;
  if (status === 404) return NOT_FOUND;
  if (status === 408) return TIMEOUT;
  if (status === 409 || status === 425) return NETWORK;
  if (status === 429) {
    if (saysSpent(message) || (says(message, 'quota') && !says(message, 'rate'))) return QUOTA;
    return says(message, 'tooLargeForRate') ? TOO_LARGE : RATE_LIMITED;
  }
  if (status >= 500) return ofServer(message) ?? NETWORK;
  if (status >= 400) return byWording(message, parameter) ?? REJECTED;
  // A redirect is not followed: it would carry the key to another host.
  return status >= 300 ? REJECTED : NETWORK;
}

/** Inside a 200 the type of an error is all that says what its status would have been. */
const IMPLIED = /^(invalid_request(_error)?|invalid_argument|badrequesterror)$/;
const impliedStatus = ({ code, type }: CallFault): number | null =>
  [code, type].some((word) => word && word.length <= 100 && IMPLIED.test(word.toLowerCase())) ? 400 : null;

export function classify(fault: CallFault): Diagnosis {
  if (fault.transport) return BY_TRANSPORT[fault.transport];
  const meaning = codeMeans(fault.code) ?? codeMeans(fault.type);
  // OpenAI and Groq give a single request that is larger than the limit of a minute the code of a rate limit.
  if (meaning === 'rate' && says(fault.message, 'tooLargeForRate')) return TOO_LARGE;
  if (meaning === 'rate' && saysSpent(fault.message)) return QUOTA;
  if (meaning !== null) return (meaning === 'outage' && ofServer(fault.message)) || BY_MEANING[meaning];
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

const BY_KEYWORD: Partial<Record<ModelErrorCode, Diagnosis>> = {
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

const number = (text: string | undefined): number => (text === undefined ? Number.NaN : Number(text));

/**
 * Servers speak of the context also where the answer alone is asked to be longer than all of it, or longer than the model writes: that
 * is a setting, whatever the conversation.
 */
function asksTooMuch(message: string): boolean {
  const text = message.slice(0, 4000);
  const context = number(/context length(?: is|:| of) (\d{1,12})/.exec(text)?.[1]);
  const asked = number(
    /tokens'? is too large: (\d{1,12})/.exec(text)?.[1] ??
      /\bin (?:the|your) (?:messages|prompt)[,;] (\d{1,12}) (?:in|for) the completion/.exec(text)?.[1],
  );
  if (asked >= context) return true;
  if (LESS_THAN_NOTHING.test(text)) return false;
  const begins = /^['"`]?max_(?:completion_|output_|new_)?tokens\b/.test(text);
  return begins && !/\d input tokens|\bprompt\b|\bmessages\b/.test(text);
}
