/**
 * Requests that another program has written in the provider's dialect: their bytes leave as they are, and the answer's bytes come back as
 * they are. The dialect only reads along, for the ledger and the record.
 */
import { within } from '../../base/async/timer.ts';
import type { Assembly, Dialect, StreamEvent } from '../dialects/dialect.ts';
import { providerError } from '../dialects/providerError.ts';
import { withRetries } from '../limits/withRetries.ts';
import {
  abortError,
  type CallRecord,
  type Wire,
  type WireAnswer,
  type WireOptions,
  type WireRequest,
  type WireSink,
} from '../model.ts';
import type { ModelConfig } from '../modelConfig.ts';
import { type HttpCall, type Shared, tryOnce, withEstimatedUsage } from './httpCall.ts';
import { addressUnder, type Exchange, type HttpTransport } from './httpTransport.ts';
import { type ModelEndpoint, sendOnce, type TryAnswer } from './httpTry.ts';

interface WireParts {
  readonly shared: Shared;
  readonly transport: HttpTransport;
  readonly apiKey: string;
  readonly baseUrl: string;
}

/** What a provider sends after the last event is an empty line, if anything. */
const REST_MS = 1000;

/** Counting tokens is an answer of its own form, which nobody bills. */
const countingDialect = (dialect: Dialect): Dialect => ({
  ...dialect,
  read: (body) => ({
    kind: 'reply',
    reply: {
      ...dialect.factsOf({}),
      finishReason: 'stop',
      rawUsage: null,
      message: { role: 'assistant', content: JSON.stringify(body) },
      content: '',
      toolCalls: [],
    },
  }),
});

/** Prices are found by the name: a call for another model than the arm's has that model's. */
function endpointFor(parts: WireParts, request: WireRequest): ModelEndpoint {
  const { endpoint } = parts.shared;
  const { config } = endpoint;
  if (request.model === endpoint.model) return endpoint;
  const own = config.model_name ?? '';
  const prefix = own.endsWith(`/${endpoint.model}`) ? own.slice(0, -endpoint.model.length) : '';
  return {
    ...endpoint,
    model: request.model,
    config: { ...config, model_name: `${prefix}${request.model}` },
  };
}

function addressOf(
  { apiKey, baseUrl, shared }: WireParts,
  { sent, model }: ModelEndpoint,
  request: WireRequest,
) {
  const asked: ModelConfig = { ...sent, stream: request.operation === 'stream' };
  const { path, headers } = shared.endpoint.dialect.target(asked, model, apiKey);
  const counted =
    request.operation !== 'count_tokens'
      ? path
      : path.includes(':generateContent')
        ? path.replace(':generateContent', ':countTokens')
        : `${path}/count_tokens`;
  const query = counted.includes('?') ? request.query.replace(/^\?/, '&') : request.query;
  return { url: addressUnder(baseUrl, `${counted}${query}`), headers };
}

/** What stands between the provider's answer and the sink: bytes are held back until it is sure that this try is the one. */
function holdBack(sink: WireSink | null) {
  let held: Uint8Array[] = [];
  let open = false;
  return {
    isOpen: () => open,
    take(bytes: Uint8Array) {
      if (!sink) return;
      if (open) sink.data(bytes);
      else held.push(bytes);
    },
    letGo(exchange: Exchange) {
      if (open || !sink) return;
      open = true;
      sink.head(exchange.status ?? 200, exchange.headers);
      for (const bytes of held.splice(0)) sink.data(bytes);
    },
    forget() {
      held = [];
    },
  };
}
type Held = ReturnType<typeof holdBack>;

/** The body for the reader of events, every chunk told to `held` first. A reader that leaves early does not cut the copy short. */
function tapped(
  body: ReadableStream<Uint8Array>,
  held: Held,
): { body: ReadableStream; ended: Promise<void> } {
  const source = body.getReader();
  const over = Promise.withResolvers<void>();
  const rest = async () => {
    try {
      for (let next = await source.read(); !next.done; next = await source.read()) held.take(next.value);
    } catch {
      // Its end was read: what breaks after it is nobody's loss.
    }
    over.resolve();
  };
  const copy = new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const next = await source.read();
        if (next.done) {
          over.resolve();
          controller.close();
          return;
        }
        held.take(next.value);
        controller.enqueue(next.value);
      } catch (error) {
        over.resolve();
        controller.error(error);
      }
    },
    cancel: () => void rest(),
  });
  return { body: copy, ended: over.promise };
}

/**
 * What comes before the first word (a greeting, the usage so far) is no answer yet: providers without room send it too, then an error. Calls
 * of tools without arguments have no characters and are held until the end.
 */
function watching(assembly: Assembly, onWords: () => void): Assembly {
  return {
    ...assembly,
    add(data, event) {
      assembly.add(data, event);
      if (assembly.characters() > 0 && !isError({ data, event: event ?? null })) onWords();
    },
  };
}

const isError = ({ data, event }: StreamEvent): boolean =>
  event === 'error' ||
  (typeof data === 'object' && data !== null && 'error' in data && providerError(data) !== null);

/** One try, told to the sink from its first word on. */
async function forwardOnce(
  parts: WireParts,
  base: ModelEndpoint,
  request: WireRequest,
  held: Held,
  signal: AbortSignal | undefined,
): Promise<TryAnswer> {
  const { url, headers } = addressOf(parts, base, request);
  let exchange: Exchange | undefined;
  let ended = Promise.resolve();
  const dialect: Dialect = {
    ...(request.operation === 'count_tokens' ? countingDialect(base.dialect) : base.dialect),
    assemble: () => watching(base.dialect.assemble(), () => exchange && held.letGo(exchange)),
  };
  const send: ModelEndpoint['send'] = async (body, current) => {
    exchange = current;
    const all = { ...headers, ...request.headers, 'content-type': 'application/json' };
    const response = await parts.transport.fetch(url, {
      method: 'POST',
      headers: all,
      body,
      exchange: current,
    } as RequestInit);
    if (!current.streaming || !response.body) return response;
    const tap = tapped(response.body, held);
    ended = tap.ended;
    return new Response(tap.body, { status: response.status });
  };
  held.forget();
  const result = await sendOnce({ ...base, dialect, send }, request.body, signal);
  if (held.isOpen()) await within(ended, REST_MS);
  else if (exchange && passes(result)) {
    if (!exchange.streaming) held.take(Buffer.from(exchange.text));
    held.letGo(exchange);
  }
  return result;
}

/** What the program itself has to read, and can do something about. */
const ITS_OWN = new Set<string>(['refusal', 'empty', 'bad_call', 'context', 'rejected', 'config']);

/** Also a refusal and an empty answer are the program's to read, and what a stream that came to its end says of the request. */
function passes({ failure, exchange, body }: TryAnswer): boolean {
  if (failure === null) return true;
  const { kind } = failure.verdict;
  if ((exchange.status ?? 0) >= 300 || !ITS_OWN.has(kind)) return false;
  return kind === 'refusal' || kind === 'empty' || (exchange.streaming && body !== null);
}

const settled =
  (request: WireRequest, endpoint: ModelEndpoint, last: () => TryAnswer | undefined) =>
  (record: CallRecord): CallRecord => {
    if (request.operation === 'count_tokens')
      return { ...record, finishReason: null, usage: null, costNano: 0, priceVersion: null, notes: [] };
    const result = last();
    const characters = result?.characters || (result?.exchange.text.length ?? 0);
    return withEstimatedUsage(endpoint.config, record, { characters, maxOutput: request.maxOutput });
  };

async function forward(
  parts: WireParts,
  request: WireRequest,
  sink: WireSink | null,
  { signal, listener, answered = false }: WireOptions,
): Promise<WireAnswer> {
  if (signal?.aborted) throw abortError(signal);
  const { shared } = parts;
  const endpoint = endpointFor(parts, request);
  const held = holdBack(sink);
  let last: TryAnswer | undefined;
  const call: HttpCall = {
    endpoint,
    requestBytes: request.body.length,
    maxOutput: request.maxOutput,
    free: request.operation === 'count_tokens',
    send: async (stop) => (last = await forwardOnce(parts, endpoint, request, held, stop)),
    begun: held.isOpen,
    settle: settled(request, endpoint, () => last),
  };
  const response = await withRetries({
    config: endpoint.config.retry,
    clock: shared.clock,
    signal,
    onBackoff: () => listener?.phase?.('backoff'),
    answered,
    ask: (tried) =>
      tryOnce(shared, call, { ...(signal && { signal }), ...(listener && { listener }) }, tried),
  });
  const exchange = last?.exchange;
  const refused =
    !held.isOpen() && exchange?.status && exchange.status >= 400
      ? { status: exchange.status, headers: exchange.headers, text: exchange.text }
      : null;
  return { response, refused };
}

export const createWire = (parts: WireParts): Wire => ({
  dialect: parts.shared.endpoint.dialect.name,
  model: parts.shared.endpoint.model,
  send: (request, sink, options = {}) => forward(parts, request, sink, options),
});
