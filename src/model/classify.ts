/**
 * One table from a provider's act to its meaning: (exception, provider code, status, wording) → error code, kind and whether a retry can
 * help. Pure. First what happened to the connection; then a code that means one thing (`insufficient_quota`); then the line of the status, or of
 * the type that stands for one (`api_error`), where the status is missing or says only that the request is bad; keywords alone only where there
 * is none of these. Of a line the first sentence that the provider itself says counts, else what the status usually means.
 */

import type { TransportFault } from './http/httpTransport.ts';
import type { ModelErrorCode, ModelFailureKind } from './model.ts';
import {
  codeMeans,
  LESS_THAN_NOTHING,
  type Meaning,
  mentions,
  says,
  saysSpent,
  statusMeant,
} from './providerErrors.ts';
import { ownWords } from './saidItself.ts';

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
  /** The conversation has had no answer yet: its agent has filled nothing. */
  readonly first?: boolean;
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
/** Nobody here knows the words, so the error is nobody's fault. */
const REJECTED = verdict('UNKNOWN', 'rejected');
const TOO_LARGE = verdict('RATE_LIMITED', 'rejected');
/** Every call sends the same parameters, so every instance would end like this one. */
const PARAMETER = verdict('PROVIDER_NOT_CONFIGURED', 'config');

/** Nobody is there who answers. */
export const AWAY = NETWORK;

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
  throttled: RATE_LIMITED,
  outage: NETWORK,
  tooLargeForRate: TOO_LARGE,
};

type Clue = (fault: CallFault) => Diagnosis | null;

const said =
  (meaning: Meaning): Clue =>
  ({ message }) =>
    says(message, meaning) ? BY_MEANING[meaning] : null;

const spent: Clue = ({ message }) => (saysSpent(message) ? QUOTA : null);
const answerTooLong: Clue = ({ message, first }) => (asksTooMuch(message, first === true) ? PARAMETER : null);
const parameter: Clue = ({ parameter: named }) =>
  named === null || named === undefined ? null : named === 'model' ? NOT_FOUND : PARAMETER;

const stands = ({ code, type }: CallFault): number | null => statusMeant(code) ?? statusMeant(type);

/** Google says "quota" of every limit, and its status that it is one of a rate. */
const quotaNotRate: Clue = (fault) =>
  stands(fault) !== 429 && says(fault.message, 'quota') && !mentions(fault.message, 'rate') ? QUOTA : null;
/** The 503 of a server that is full. */
const statedRate: Clue = (fault) => ([429, 529].includes(stands(fault) ?? 0) ? RATE_LIMITED : null);

const CONTENT =
  /\b(?:moderat|flagg|safe(?:ty|guard)|unsafe|harmful|inappropriate|sensitive|guardrail|prohibited|disallowed|toxic|nsfw|censor|content|prompts?\b|guidelines?\b|usage polic|violat|abus)|敏感|违规|违禁|审核/;
const ACCESS =
  /\b(?:access|account|allowed|api|authenti|authori[sz]|countr|credential|denied|forbidden|ip\b|keys?\b|licen[sc]e|organi[sz]ation|permi(?:ssion|tted)|plan\b|project|region|roles?\b|scopes?\b|signature|subscri|suspend|team|tenant|territor|tokens?\b|unregistered|verif|workspace)|权限|无权/;

/** A 403 is about the key where it says so, or says nothing. A 403 about the request must not stop the run: the next instance sends another one. */
function ofAccess(fault: CallFault): Diagnosis | null {
  const text = ownWords(fault.message);
  if (CONTENT.test(text)) return null;
  const keyed = stands(fault) === 403 || stands(fault) === 401;
  return keyed || ACCESS.test(text) || !/\p{L}/u.test(text) ? AUTH : null;
}

interface Line {
  readonly unless: readonly Clue[];
  readonly usually: Diagnosis;
}
const line = (usually: Diagnosis, ...unless: readonly Clue[]): Line => ({ unless, usually });

const BY_STATUS: Readonly<Record<number, Line>> = {
  401: line(AUTH, spent),
  402: line(QUOTA),
  // OpenRouter answers 403 when its moderation stops a prompt, xAI when the money is spent.
  403: line(
    REJECTED,
    ...[spent, said('refusal'), said('context'), said('throttled'), said('auth'), said('noModel'), ofAccess],
  ),
  404: line(NOT_FOUND),
  408: line(TIMEOUT),
  409: line(NETWORK),
  410: line(NOT_FOUND),
  424: line(NETWORK, said('context'), said('badCall')),
  425: line(NETWORK),
  429: line(RATE_LIMITED, spent, quotaNotRate, said('tooLargeForRate')),
};

const BY_HUNDRED: Readonly<Record<number, Line>> = {
  // A redirect is not followed: it would carry the key to another host.
  3: line(REJECTED),
  4: line(
    REJECTED,
    ...[said('quota'), answerTooLong, said('context'), said('badCall'), said('auth'), said('refusal')],
    ...[parameter, said('noModel'), said('throttled'), said('outage')],
  ),
  // Ollama, llama.cpp and DeepInfra answer so to faults of the conversation.
  5: line(NETWORK, statedRate, answerTooLong, said('context'), said('badCall')),
};

/** An error inside a 200 that has neither a status nor a code. */
const UNSAID = line(NETWORK, spent, said('context'), said('badCall'), said('refusal'));

const lineOf = (status: number): Line =>
  BY_STATUS[status] ?? BY_HUNDRED[Math.floor(status / 100)] ?? line(NETWORK);

function read({ unless, usually }: Line, fault: CallFault): Diagnosis {
  for (const clue of unless) {
    const found = clue(fault);
    if (found) return found;
  }
  return usually;
}

/** Statuses that say no more than that the request is bad: its type may say why. */
const VAGUE: ReadonlySet<number> = new Set([400, 413, 422]);

function statusOf(fault: CallFault): number | null {
  const meant = stands(fault);
  if (!fault.status) return meant;
  return meant !== null && meant < 500 && VAGUE.has(fault.status) ? meant : fault.status;
}

export function classify(fault: CallFault): Diagnosis {
  if (fault.transport) return BY_TRANSPORT[fault.transport];
  const meaning = codeMeans(fault.code) ?? codeMeans(fault.type);
  if (meaning !== null) return (meaning === 'context' && answerTooLong(fault)) || BY_MEANING[meaning];
  const status = statusOf(fault);
  if (status) {
    const found = read(lineOf(status), fault);
    // An error object in a 200 is the network's fault unless it clearly says that no retry can help.
    return fault.broken && (found.retryable || found.kind === 'rejected') && found.code !== 'RATE_LIMITED'
      ? NETWORK
      : found;
  }
  if (fault.broken) return read(UNSAID, fault);
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
 * is a setting, whatever the conversation. So is an answer of more than half of it that leaves no room for the first request.
 */
function asksTooMuch(message: string, first: boolean): boolean {
  const text = ownWords(message);
  const limit = /exceed context limit: \d{1,12} \+ (\d{1,12}) > (\d{1,12})/.exec(text);
  const context = number(limit?.[2] ?? /context length(?: is|:| of)(?: only)? (\d{1,12})/.exec(text)?.[1]);
  const asked = number(
    limit?.[1] ??
      /tokens'? is too large: (\d{1,12})/.exec(text)?.[1] ??
      /\brequested (\d{1,12}) output tokens/.exec(text)?.[1] ??
      /\bin (?:the|your) (?:messages|prompt)[,;] (\d{1,12}) (?:in|for) the completion/.exec(text)?.[1],
  );
  if ((asked >= context || (first && asked > context / 2)) && says(message, 'context')) return true;
  if (LESS_THAN_NOTHING.test(text)) return false;
  const begins = /^['"`]?max_(?:completion_|output_|new_)?tokens\b/.test(text);
  return begins && !/\d input tokens|\bprompt\b|\bmessages\b/.test(text);
}
