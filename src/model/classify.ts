/**
 * One table from what a provider did to what it means: (exception, provider code, status, wording) → error code, kind and
 * whether a retry can help. Pure. Status and provider code decide; wording counts only where a status says too little, and
 * keywords alone only when neither status nor code is there.
 */

import type { TransportFault } from './http/httpTransport.ts';
import type { ModelErrorCode, ModelFailureKind } from './model.ts';

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
export const REJECTED = verdict('UNKNOWN', 'rejected');
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
  reset: NETWORK,
  cut: NETWORK,
  too_large: verdict('INVALID_RESPONSE', 'rejected'),
  aborted: verdict('UNKNOWN', 'unavailable'),
};

const BY_CODE: readonly (readonly [RegExp, Diagnosis])[] = [
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
function byWording(message: string, parameter: string | null): Diagnosis | null {
  if (says(message, 'quota')) return QUOTA;
  if (asksTooMuch(message)) return PARAMETER;
  if (says(message, 'context')) return CONTEXT;
  if (says(message, 'auth')) return AUTH;
  if (says(message, 'refusal')) return REFUSAL;
  if (parameter !== null) return parameter === 'model' ? NOT_FOUND : PARAMETER;
  if (says(message, 'model')) return NOT_FOUND;
  return null;
}

function byStatus(status: number, message: string, parameter: string | null): Diagnosis {
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
const impliedStatus = ({ code, type }: CallFault): number | null =>
  [code, type].some((word) => word && word.length <= LONGEST_CODE && IMPLIED.test(word.toLowerCase()))
    ? 400
    : null;

export function classify(fault: CallFault): Diagnosis {
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

/**
 * What providers say where no field says it, in their own sentences. A statement about the model (its context is full, it refused) ends
 * an instance as a result, so only a sentence that is known whole counts: a word like "context_window" is also in the name of a parameter.
 */

const LESS_THAN_NOTHING = /max_(?:completion_)?tokens must be at least 1, got -\d/;

/** Each with its origin; the numbers are whatever they are. */
const CONTEXT_WORDING: readonly RegExp[] = [
  // OpenAI, Azure, DeepSeek, vLLM, SGLang; OpenRouter says "this endpoint's".
  /maximum context length (?:is|of) \d/,
  /model's maximum context length has been exceeded/,
  /input tokens exceed the configured limit of \d/,
  // OpenAI's Responses.
  /input exceeds the context window of this model/,
  // Anthropic, also at Bedrock and Vertex AI.
  /prompt is too long: \d/,
  /input length and `?max_tokens`? exceed context limit: \d/,
  // Gemini; Vertex AI.
  /input token count (?:\(?\d{0,12}\)? ?)?exceeds the maximum number of tokens allowed/,
  /input token count is \d{1,12} but (?:the )?model only supports up to \d/,
  // xAI.
  /maximum prompt length is \d{1,12} but the request contains \d/,
  /\[input_too_large\] current message \(\d{1,12} tokens\) exceeds budget/,
  // Ollama; oMLX.
  /prompt (?:is )?too long; exceeded (?:max )?context length/,
  /input length exceeds (?:the |maximum )?context length/,
  /prompt too long: \d{1,12} tokens exceeds max context window of \d/,
  // vLLM in older and newer versions.
  /prompt \((?:total )?length \d{1,12}\) is (?:too long|longer than the maximum model length)/,
  /model's context length is only \d/,
  /prompt length \d{1,12} exceeds the max_model_len/,
  // What vLLM has left for the answer, where nobody asked for a length: less than nothing.
  LESS_THAN_NOTHING,
  // SGLang.
  /input \(\d{1,12} tokens\) is longer than the model's context length/,
  // llama.cpp.
  /request (?:\(\d{1,12} tokens\) )?exceeds the available context size/,
  // LM Studio.
  /context the overflows|initial prompt is greater than the context length/,
  /input length \d{1,12} exceeds context length \d/,
  // Mistral.
  /too large for model with \d{1,12} maximum context length/,
  // Groq and Cerebras, beside their code.
  /^please reduce the length of the messages or completion/,
  // Together, TGI.
  /`inputs` tokens \+ `max_new_tokens` must be <= \d/,
  /`inputs` must have less than \d{1,12} tokens\. given: \d/,
  // Bedrock.
  /input is too long for requested model/,
  /too many input tokens\. max input tokens: \d/,
  // Amazon Nova.
  /input tokens exceeded: number of input tokens exceeds maximum length/,
  // Fireworks.
  /prompt is too long: \d{1,12}, model maximum context length: \d/,
  // Moonshot; MiniMax; Z.ai; DashScope; Cohere; GitHub's models.
  /exceeded model token limit: \d/,
  /^invalid params, context window exceeds limit/,
  /^prompt exceeds max length$/,
  /range of input length should be \[\d/,
  /^too many tokens: (?:total number of tokens|size limit exceeded)/,
  /prompt token count of \d{1,12} exceeds the limit of \d/,
  // litellm, which gives the error of another a name of its own.
  /^(?:litellm\.badrequesterror: )?litellm\.contextwindowexceedederror:/,
];

const REFUSAL_WORDING: readonly RegExp[] = [
  // OpenAI.
  /prompt was flagged as potentially violating our usage policy/,
  /rejected (?:as a result of|by) (?:our|the) safety system/,
  /limited access to this content for safety reasons/,
  // Azure.
  /prompt triggering azure openai's content management policy/,
  /prompt triggering (?:microsoft's|the) content management policy/,
  // Anthropic.
  /output blocked by content filtering policy/,
  /appears to violate our usage policy/,
  // OpenRouter.
  /input was flagged (?:for|by) /,
  // Gemini and Vertex AI.
  /violate[sd]? google's responsible ai practices/,
  // xAI.
  /^content violates usage guidelines/,
  // DeepSeek; DashScope; Moonshot; MiniMax.
  /^content exists risk$/,
  /^(?:<\d+> )?(?:input|output) data may contain inappropriate content/,
  /^the request was rejected because it was considered high risk/,
  /^(?:input|output) new_sensitive/,
  // litellm.
  /^litellm\.contentpolicyviolationerror:/,
];

const AUTH_WORDING = [
  /api[ _-]?key (not valid|is invalid|expired)/,
  /(invalid|incorrect|missing) (api[ _-]?key|authentication|credentials)/,
];
const MODEL_WORDING = [
  /model .*(does not exist|not found|is not supported|not available|not a valid)/,
  /(not a valid|invalid|unknown|no such) model/,
  /model identifier is invalid/,
  /on-demand throughput isn.t supported/,
];
const QUOTA_WORDING = [
  /credit balance is too low/,
  /insufficient (credits|balance|funds|quota)/,
  /exceeded your current quota/,
];

/** A quota that is whole again in a moment is a rate. */
const RATE_WORDING = [/per[ _-]?(second|minute|hour)/, /\b[rt]pm\b/];

const WORDINGS = {
  context: CONTEXT_WORDING,
  refusal: REFUSAL_WORDING,
  auth: AUTH_WORDING,
  model: MODEL_WORDING,
  quota: QUOTA_WORDING,
  rate: RATE_WORDING,
  // One request larger than the account may send in a minute: no wait makes it fit.
  tooLargeForRate: [/request too large/],
} as const;

/** A body of megabytes says in its first lines what it is about. */
const CHARACTERS = 4000;

/** Gateways put the name of what they were told in front: `litellm.BadRequestError: OpenAIException - prompt is too long: …`. */
const RELAYED = /^(?:litellm\.badrequesterror: )?(?:\w{1,40}exception - |error code: \d{3} - )/;

function says(message: string, what: keyof typeof WORDINGS): boolean {
  const text = message.slice(0, CHARACTERS).toLowerCase().replaceAll('’', "'").trim();
  const inner = text.replace(RELAYED, '');
  return WORDINGS[what].some((wording) => wording.test(text) || (inner !== text && wording.test(inner)));
}

const number = (text: string | undefined): number => (text === undefined ? Number.NaN : Number(text));

/**
 * Servers speak of the context also where the answer alone is asked to be longer than all of it, or longer than the model writes: that
 * is a setting, whatever the conversation.
 */
function asksTooMuch(message: string): boolean {
  const text = message.slice(0, CHARACTERS);
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
