/** One HTTP attempt: sends it through the openai client, and reads whatever comes back as a reply or as a named failure. */
import type { OpenAI } from 'openai';
import { Stream } from 'openai/streaming';
import { classify, type Fault, type Verdict } from '../classify.ts';
import type { ModelConfig } from '../config.ts';
import {
  type AnswerFacts,
  factsOf,
  type ProviderError,
  providerError,
  type ReadReply,
  readCompletion,
} from '../dialects/chat/reply.ts';
import { assembleStream } from '../dialects/chat/stream.ts';
import { extraHeaders } from '../dialects/chat/wire.ts';
import { type Redact, snippet } from './keyShapes.ts';
import { type Exchange, newExchange, type TransportError } from './transport.ts';

export interface Endpoint {
  readonly client: OpenAI;
  readonly config: ModelConfig;
  readonly host: string;
  readonly baseUrl: string;
  /** The id that goes over the wire. */
  readonly model: string;
  readonly redact: Redact;
}

interface Failure {
  readonly verdict: Verdict;
  readonly what: string;
  readonly last: string | null;
}

export interface AttemptResult {
  readonly exchange: Exchange;
  readonly facts: AnswerFacts | null;
  readonly body: unknown;
  readonly reply: ReadReply | null;
  readonly failure: Failure | null;
  /** Characters of a streamed answer that was cut short. */
  readonly characters: number;
}

/** Longer than any deadline of ours: the SDK's own must never fire first. */
const NEVER_MS = 2_147_483_000;

const parseJson = (text: string): { readonly value: unknown } | null => {
  try {
    return { value: JSON.parse(text) };
  } catch {
    return null;
  }
};

async function send(endpoint: Endpoint, body: Uint8Array, exchange: Exchange): Promise<Response> {
  // The body is serialised already: the SDK passes bytes through as they are.
  return endpoint.client
    .post('/chat/completions', {
      body,
      headers: { ...extraHeaders(endpoint.config.model_kwargs), 'content-type': 'application/json' },
      fetchOptions: { exchange } as never,
      timeout: NEVER_MS,
    })
    .asResponse();
}

/** A status of the request's own making, told in a way that says what to do. */
function statusText(endpoint: Endpoint, verdict: Verdict, status: number, message: string): string {
  const { model, host, config, baseUrl } = endpoint;
  switch (verdict.kind) {
    case 'auth':
      // No word of the provider's here: they repeat the key.
      return `authentication failed (${status}) for model ${model} at host ${host} — check $${config.api_key_env}`;
    case 'not_found':
      return `model not found (${status}): ${baseUrl} does not serve "${model}" — check model_name and base_url; it said: "${message}"`;
    case 'quota':
      return `no quota left (${status}) for model ${model} at host ${host} — check the account's plan and billing; it said: "${message}"`;
    case 'context':
      return `context window exceeded (${status}): ${message}`;
    case 'refusal':
      return `the provider refused the request (${status}): ${message}`;
    case 'rejected':
      return `request rejected (${status}) by ${host}: ${message}`;
    default:
      if (verdict.code === 'RATE_LIMITED') return `rate limited (${status})`;
      return status >= 500 ? `server error (${status})` : `request failed (${status})`;
  }
}

function failureOf(fault: Fault, what: (verdict: Verdict) => string, last: string | null): Failure {
  const verdict = classify(fault);
  return { verdict, what: what(verdict), last };
}

const transportFailure = (error: TransportError): Failure =>
  failureOf({ transport: error.fault, message: error.message }, () => error.message, null);

/** Of an answer that is no success: the error inside its body, or the body itself when it has none. */
function statusFailure(endpoint: Endpoint, exchange: Exchange): Failure {
  const status = exchange.status ?? 0;
  const parsed = parseJson(exchange.text);
  const error = parsed ? providerError(parsed.value) : null;
  const location = exchange.headers.location;
  const told = location
    ? `it redirects to ${location}, set base_url to where the API is`
    : (error?.message ?? exchange.text);
  const message = snippet(told, endpoint.redact);
  const last = snippet(exchange.text, endpoint.redact) || null;
  const fault: Fault = {
    status,
    code: error?.code ?? null,
    type: error?.type ?? null,
    message: error?.message ?? exchange.text,
  };
  return failureOf(
    fault,
    (verdict) =>
      !parsed && exchange.text !== '' && verdict.retryable && verdict.code !== 'RATE_LIMITED'
        ? `non-JSON ${status}`
        : statusText(endpoint, verdict, status, message),
    last,
  );
}

function errorObjectFailure(endpoint: Endpoint, exchange: Exchange, error: ProviderError): Failure {
  const status = exchange.status ?? 200;
  const fault: Fault = {
    status: error.status,
    code: error.code,
    type: error.type,
    message: error.message,
    broken: true,
  };
  const message = snippet(error.message, endpoint.redact);
  const inside = `error object in ${status}`;
  return failureOf(
    fault,
    (verdict) =>
      verdict.retryable
        ? inside
        : `${inside}: ${statusText(endpoint, verdict, error.status ?? status, message)}`,
    message,
  );
}

/** A success that cannot be read as JSON: cut off by someone on the way, or something else altogether. */
function unreadableFailure(endpoint: Endpoint, exchange: Exchange): Failure {
  const { text, status } = exchange;
  const looksCut = text === '' || /^\s*[[{]/.test(text) || exchange.headers['content-type']?.includes('json');
  const what = looksCut
    ? `truncated body: the JSON ends after ${text.length} characters`
    : `non-JSON ${status}`;
  return failureOf(
    { broken: true, message: what },
    () => what,
    snippet(text.slice(0, 1000), endpoint.redact) || null,
  );
}

function readBody(endpoint: Endpoint, exchange: Exchange, body: unknown, characters: number): AttemptResult {
  const read = readCompletion(body);
  if (read.kind === 'reply')
    return { exchange, facts: read.reply, body, reply: read.reply, failure: null, characters };
  const base = { exchange, facts: read.facts, body, reply: null, characters };
  if (read.kind === 'error_object')
    return { ...base, failure: errorObjectFailure(endpoint, exchange, read.error) };
  const message = snippet(read.message, endpoint.redact);
  if (read.kind === 'malformed') {
    const what = `malformed reply: ${message}`;
    return {
      ...base,
      failure: failureOf(
        { broken: true, message },
        () => what,
        snippet(exchange.text.slice(0, 1000), endpoint.redact) || null,
      ),
    };
  }
  const what = read.kind === 'empty' ? `empty response: ${message}` : `the model refused: ${message}`;
  return {
    ...base,
    failure: { verdict: { code: 'INVALID_RESPONSE', kind: read.kind, retryable: false }, what, last: null },
  };
}

async function readStream(
  endpoint: Endpoint,
  exchange: Exchange,
  response: Response,
): Promise<AttemptResult> {
  const assembly = assembleStream();
  const lost = (failure: Failure): AttemptResult => ({
    exchange,
    facts: factsOf(assembly.body()),
    body: null,
    reply: null,
    failure,
    characters: assembly.characters(),
  });
  try {
    for await (const chunk of Stream.fromSSEResponse<unknown>(response, new AbortController())) {
      exchange.chunks += 1;
      assembly.add(chunk);
    }
  } catch (thrown) {
    if (exchange.failure) return lost(transportFailure(exchange.failure));
    const inside = (thrown as { error?: unknown }).error;
    const error = inside ? providerError({ error: inside }) : null;
    if (error) return lost(errorObjectFailure(endpoint, exchange, error));
    const what = `truncated body: a stream chunk cannot be read (${snippet(String((thrown as Error).message), endpoint.redact)})`;
    return lost(failureOf({ broken: true, message: what }, () => what, null));
  }
  const body = assembly.body();
  const result = readBody(endpoint, exchange, body, assembly.characters());
  // The end of a stream looks like any other pause: only a finish reason says that the reply is whole.
  if (result.reply && result.reply.finishReason === null) {
    const what = `truncated body: the stream ended after ${exchange.chunks} chunks without a finish reason`;
    return {
      ...result,
      reply: null,
      failure: failureOf({ broken: true, message: what }, () => what, null),
    };
  }
  return result;
}

/** Never throws, but for a defect: what the network does is a failure in the result. */
export async function attemptOnce(
  endpoint: Endpoint,
  body: Uint8Array,
  signal: AbortSignal | undefined,
): Promise<AttemptResult> {
  const exchange = newExchange(signal);
  const failed = (failure: Failure): AttemptResult => ({
    exchange,
    facts: null,
    body: null,
    reply: null,
    failure,
    characters: 0,
  });
  let response: Response;
  try {
    response = await send(endpoint, body, exchange);
  } catch (thrown) {
    if (exchange.failure) return failed(transportFailure(exchange.failure));
    if (exchange.status !== null && exchange.status >= 300) return failed(statusFailure(endpoint, exchange));
    const message = snippet(String((thrown as Error).message), endpoint.redact);
    return failed(failureOf({ message }, () => `request failed: ${message}`, null));
  }
  if (exchange.streaming) return readStream(endpoint, exchange, response);
  const parsed = parseJson(exchange.text);
  if (!parsed) return failed(unreadableFailure(endpoint, exchange));
  return readBody(endpoint, exchange, parsed.value, 0);
}
