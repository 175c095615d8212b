/** One try: sends it, and reads whatever comes back as a reply or as a named failure. */

import { createParser, type EventSourceMessage } from 'eventsource-parser';
import { cutNesting } from '../../base/plausible.ts';
import { type Redact, snippet } from '../../base/text/redact.ts';
import { type CallFault, classify, credentialVerdict, type Diagnosis } from '../classify.ts';
import { type Cloud, type CloudAuth, CredentialError, refusedBecause } from '../clouds/cloud.ts';
import {
  type AnswerFacts,
  type Dialect,
  missingEnd,
  type ProviderError,
  type ReadReply,
  type StreamEvent,
} from '../dialects/dialect.ts';
import { providerError } from '../dialects/providerError.ts';
import { systemClock } from '../limits/clock.ts';
import { BAD_CALL_SAYS } from '../model.ts';
import type { ModelConfig } from '../modelConfig.ts';
import { parameterFix, rejectedParameter } from '../parameters/rejectedParameter.ts';
import { type AnswerBody, type Exchange, newExchange, type TransportError } from './httpTransport.ts';

export interface ModelEndpoint {
  readonly dialect: Dialect;
  readonly send: (body: Uint8Array, exchange: Exchange) => Promise<AnswerBody>;
  /** The configuration as a person wrote it. */
  readonly config: ModelConfig;
  /** The configuration with the values of its references: for requests alone. */
  readonly sent: ModelConfig;
  readonly host: string;
  readonly baseUrl: string;
  /** The id that goes over the wire. */
  readonly model: string;
  readonly redact: Redact;
  /** The conversation has had no answer yet. */
  readonly first?: boolean;
  /** Credentials of a cloud. */
  readonly auth?: CloudAuth | undefined;
  /** The reader of a stream that is no server-sent events. */
  readonly readEvents?: Cloud['readEvents'];
}

export interface Failure {
  readonly verdict: Diagnosis;
  readonly what: string;
  readonly last: string | null;
  /** The wait that the body asks for. */
  readonly retryMs?: number | null;
  /** A reply came, and held neither a word nor a token. */
  readonly silent?: true;
}

export interface TryAnswer {
  readonly exchange: Exchange;
  readonly facts: AnswerFacts | null;
  readonly body: unknown;
  readonly reply: ReadReply | null;
  readonly failure: Failure | null;
  /** Characters of an answer that was cut short. */
  readonly characters: number;
  /** Oddities of the body. */
  readonly notes: readonly string[];
  /** A reply that breaks the rules of its dialect, as it came. */
  readonly unreadable?: string;
  /** A stream stopped before its end: usage that it has stated by then is not all of it. */
  readonly partial?: boolean;
}

/** A body as far as ledger and trajectory can hold it; the notes say what they cannot. */
type Body = ReturnType<typeof cutNesting>;

/** Some servers put a byte order mark in front, which JSON does not know (dialects.test.ts). */
const parseJson = (text: string): Body | null => {
  try {
    return cutNesting(JSON.parse(text.startsWith('\ufeff') ? text.slice(1) : text));
  } catch {
    return null;
  }
};

function failureOf(fault: CallFault, what: (verdict: Diagnosis) => string, last: string | null): Failure {
  const verdict = classify(fault);
  return { verdict, what: what(verdict), last };
}

const transportFailure = (error: TransportError): Failure =>
  failureOf({ transport: error.fault, message: error.message }, () => error.message, null);

/** Amazon names the kind of an error in a header, with an address behind it. */
const awsCode = ({ headers }: Exchange): string | null =>
  headers['x-amzn-errortype']?.split(':')[0]?.slice(0, 80) ?? null;

/** The error inside the body of a failed answer, or the body itself when it holds none. */
function statusFailure(endpoint: ModelEndpoint, exchange: Exchange): Failure {
  const status = exchange.status ?? 0;
  const parsed = parseJson(exchange.text);
  const stated = parsed ? providerError(parsed.value) : null;
  const error = stated && { ...stated, code: stated.code ?? awsCode(exchange) };
  const location = exchange.headers.location;
  const told = location
    ? `it redirects to ${location}, set base_url to where the API is`
    : (error?.message ?? exchange.text);
  const message = snippet(told, endpoint.redact);
  const because = endpoint.auth
    ? refusedBecause(`${awsCode(exchange)} ${exchange.text}`, exchange.headers.date, systemClock.wall())
    : null;
  const last = snippet(exchange.text, endpoint.redact) || null;
  const parameter = error ? rejectedParameter(error, endpoint.config.model_kwargs) : null;
  const fault: CallFault = {
    status,
    code: error?.code ?? null,
    type: error?.type ?? null,
    message: error?.message ?? exchange.text,
    parameter,
    first: endpoint.first === true,
  };
  // A page is written by something on the way: its 413 speaks of bytes, not of tokens, and its 403 not of the key.
  const gateway = (status === 413 || status === 403) && /^\s*</.test(exchange.text);
  const failure = failureOf(
    gateway ? { broken: true, message: 'a page of a gateway' } : fault,
    (verdict) =>
      !parsed && exchange.text !== '' && verdict.retryable && verdict.code !== 'RATE_LIMITED'
        ? `non-JSON ${status}`
        : statusText(endpoint, verdict, { status, message, parameter, because }),
    last,
  );
  return { ...failure, retryMs: error?.retryMs ?? null };
}

function errorObjectFailure(endpoint: ModelEndpoint, exchange: Exchange, error: ProviderError): Failure {
  const status = exchange.status ?? 200;
  const parameter = rejectedParameter(error, endpoint.config.model_kwargs);
  const fault: CallFault = {
    status: error.status,
    code: error.code,
    type: error.type,
    message: error.message,
    broken: true,
    parameter,
    first: endpoint.first === true,
  };
  const message = snippet(error.message, endpoint.redact);
  const inside = `error object in ${status}`;
  const failure = failureOf(
    fault,
    (verdict) =>
      verdict.retryable
        ? inside
        : `${inside}: ${statusText(endpoint, verdict, { status: error.status ?? status, message, parameter })}`,
    message,
  );
  return { ...failure, retryMs: error.retryMs };
}

/** A success that cannot be read as JSON: cut off by someone on the way, or something else altogether. */
function unreadableFailure(endpoint: ModelEndpoint, exchange: Exchange): Failure {
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

/** A malformed reply is asked for again as after a fault of the network: most such replies come from a server that is about to fail or to recover. */
function malformedFailure(fault: CallFault, what: string, last: string | null): Failure {
  const { verdict } = failureOf(fault, () => what, last);
  const code = verdict.code === 'NETWORK_ERROR' ? 'INVALID_RESPONSE' : verdict.code;
  return { verdict: { ...verdict, code }, what, last };
}

function readBody(endpoint: ModelEndpoint, exchange: Exchange, whole: Body, characters: number): TryAnswer {
  const { value: body, notes } = whole;
  const read = endpoint.dialect.read(body);
  const facts = read.kind === 'reply' ? read.reply : read.facts;
  const base = { exchange, facts, body, reply: null, characters, notes };
  const missing = read.kind === 'error_object' || read.kind === 'malformed' ? null : missingEnd(facts);
  if (missing !== null) {
    const said = read.kind === 'reply' ? JSON.stringify(read.reply.message).length : 0;
    return { ...base, characters: said, failure: truncated(`the reply came without ${missing}`) };
  }
  if (read.kind === 'reply') return { ...base, reply: read.reply, failure: null };
  if (read.kind === 'error_object')
    return { ...base, failure: errorObjectFailure(endpoint, exchange, read.error) };
  const message = snippet(read.message, endpoint.redact);
  if (read.kind === 'malformed') {
    // A stream leaves only the body that was put together.
    const came = exchange.text || JSON.stringify(body);
    return {
      ...base,
      unreadable: came,
      failure: malformedFailure(
        { broken: true, message },
        `malformed reply: ${message}`,
        snippet(came.slice(0, 1000), endpoint.redact) || null,
      ),
    };
  }
  const what = read.kind === 'empty' ? `empty response: ${message}` : `the model refused: ${message}`;
  return {
    ...base,
    failure: { verdict: { code: 'INVALID_RESPONSE', kind: read.kind, retryable: false }, what, last: null },
  };
}

const noBody = (exchange: Exchange, failure: Failure): TryAnswer => ({
  exchange,
  facts: null,
  body: null,
  reply: null,
  failure,
  characters: 0,
  notes: [],
});

const truncated = (what: string): Failure =>
  failureOf({ broken: true, message: what }, () => `truncated body: ${what}`, null);

async function readStream(
  endpoint: ModelEndpoint,
  exchange: Exchange,
  response: AnswerBody,
): Promise<TryAnswer> {
  const { dialect } = endpoint;
  const assembly = dialect.assemble();
  const lost = (failure: Failure): TryAnswer => ({
    ...noBody(exchange, failure),
    facts: dialect.factsOf(cutNesting(assembly.body()).value as Record<string, unknown>),
    characters: assembly.characters(),
    partial: true,
  });
  let plain: string | null = null;
  try {
    const bytes = response.body ?? new ReadableStream<Uint8Array>();
    const events = endpoint.readEvents?.(bytes) ?? readEvents(bytes, (text) => (plain = text));
    for await (const event of events) {
      exchange.chunks += 1;
      assembly.add(event.data, event.event);
    }
  } catch (thrown) {
    if (exchange.failure) return lost(transportFailure(exchange.failure));
    const message = snippet(String((thrown as Error).message), endpoint.redact);
    return lost(truncated(`a stream chunk cannot be read (${message})`));
  }
  if (plain !== null) return readWhole(endpoint, { ...exchange, text: plain });
  const body = cutNesting(assembly.body());
  const read = dialect.read(body.value);
  const missing = missingEnd(dialect.factsOf(body.value as Record<string, unknown>));
  if (missing !== null && read.kind !== 'error_object')
    return lost(truncated(`the stream ended after ${exchange.chunks} chunks without ${missing}`));
  return {
    ...readBody(endpoint, exchange, body, assembly.characters()),
    ...(missing === null ? {} : { partial: true }),
  };
}

function readWhole(endpoint: ModelEndpoint, exchange: Exchange): TryAnswer {
  const parsed = parseJson(exchange.text);
  if (!parsed) return noBody(exchange, unreadableFailure(endpoint, exchange));
  return readBody(endpoint, exchange, parsed, 0);
}

/** Never throws, but for a defect: what the network does is a failure in the result. */
export async function sendOnce(
  endpoint: ModelEndpoint,
  body: Uint8Array,
  signal: AbortSignal | undefined,
): Promise<TryAnswer> {
  const exchange = newExchange(signal);
  let response: AnswerBody;
  try {
    response = await endpoint.send(body, exchange);
  } catch (thrown) {
    if (exchange.failure) return noBody(exchange, transportFailure(exchange.failure));
    if (exchange.status !== null && exchange.status >= 300)
      return noBody(exchange, statusFailure(endpoint, exchange));
    const message = snippet(String((thrown as Error).message), endpoint.redact);
    if (thrown instanceof CredentialError)
      return noBody(exchange, { verdict: credentialVerdict(thrown.passing), what: message, last: null });
    return noBody(
      exchange,
      failureOf({ message }, () => `request failed: ${message}`, null),
    );
  }
  if (exchange.status !== null && exchange.status >= 300)
    return noBody(exchange, statusFailure(endpoint, exchange));
  return exchange.streaming ? readStream(endpoint, exchange, response) : readWhole(endpoint, exchange);
}

interface StatedError {
  readonly status: number;
  /** The provider's words, shortened and without secrets. */
  readonly message: string;
  /** The parameter that a refusal names. */
  readonly parameter: string | null;
  /** The reason why a cloud did not take its credentials, where it says so. */
  readonly because?: string | null;
}

function authText(
  { model, host, config, auth }: ModelEndpoint,
  { status, message, because }: StatedError,
): string {
  const place = `for model ${model} at host ${host}`;
  if (because) return `authentication failed (${status}) ${place} — ${because}`;
  const key = auth ? `the credentials from ${auth.source}` : `the key in $${config.api_key_env}`;
  if (status === 403)
    return `access denied (403) ${place} — check that ${key} may use it from here; it said: "${message}"`;
  // No word of the provider's here: they repeat the key.
  return `authentication failed (${status}) ${place} — check ${auth ? auth.source : `$${config.api_key_env}`}`;
}

function statusText(endpoint: ModelEndpoint, verdict: Diagnosis, told: StatedError): string {
  const { model, host, config, baseUrl, auth } = endpoint;
  const { status, message, parameter } = told;
  switch (verdict.kind) {
    case 'config':
      return `${parameter ?? 'a parameter'} rejected (${status}) by ${host} for model ${model} — ${parameterFix(parameter ?? 'max_tokens', config.model_kwargs)}; it said: "${message}"`;
    case 'auth':
      return authText(endpoint, told);
    case 'not_found':
      return `model not found (${status}): ${baseUrl} does not serve "${model}" — check model_name and base_url; it said: "${message}"`;
    case 'quota':
      return `no quota left (${status}) for model ${model} at host ${host}, on the account of ${auth ? auth.source : `$${config.api_key_env}`} — check its plan and billing, then resume the run; it said: "${message}"`;
    case 'bad_call':
      return `${BAD_CALL_SAYS} (${status}): ${message}`;
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

/** A line of a stream that is not JSON: the stream was cut inside it, or something on the way wrote into it. */
class UnreadableEvent extends Error {
  override readonly name = 'UnreadableEvent';
}

/** OpenAI's word for the end; the other dialects end with an event of their own. */
const DONE = '[DONE]';

function parse({ event, data }: EventSourceMessage): StreamEvent {
  try {
    return { event: event ?? null, data: JSON.parse(data) };
  } catch (error) {
    throw new UnreadableEvent((error as Error).message);
  }
}

/**
 * The events of a body, as they come. A body that is not an event stream at all (plain JSON under this content type: cutReplies.test.ts)
 * gives no event; `other` hears what it was. Rejects with UnreadableEvent, and with whatever the body rejects with.
 */
export async function* readEvents(
  body: AsyncIterable<Uint8Array>,
  other: (text: string) => void,
): AsyncGenerator<StreamEvent> {
  // A mark that stands inside a text belongs to it; Node's decoder would take it away at the beginning of a chunk.
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  const ready: EventSourceMessage[] = [];
  const parser = createParser({ onEvent: (event) => ready.push(event) });
  let plain: string | null = '';
  for await (const bytes of body) {
    const text = decoder.decode(bytes, { stream: true });
    if (plain !== null) {
      plain += text;
      const first = plain.trimStart()[0];
      if (first === undefined) continue;
      if (first === '{' || first === '[') continue;
      parser.feed(plain);
      plain = null;
    } else parser.feed(text);
    for (const event of ready.splice(0)) {
      if (event.data.startsWith(DONE)) return;
      yield parse(event);
    }
  }
  if (plain) {
    other(plain + decoder.decode());
    return;
  }
  // The last event counts also without the empty line that should end it (lastEvent.test.ts); one that broke off in its middle never came.
  parser.feed(`${decoder.decode()}\n\n`);
  for (const event of ready) {
    if (event.data.startsWith(DONE)) return;
    const last = wholeOrNull(event);
    if (last) yield last;
  }
}

function wholeOrNull(event: EventSourceMessage): StreamEvent | null {
  try {
    return parse(event);
  } catch (error) {
    if (error instanceof UnreadableEvent) return null;
    throw error;
  }
}
