/**
 * A model behind HTTP, whatever dialect it speaks. The parts that all slots share (connections, limiter) live in the factory; a model
 * is made for each attempt.
 */

import { within } from '../../base/async/timer.ts';
import { isRecord } from '../../base/isRecord.ts';
import { tokensOrNull } from '../../base/plausible.ts';
import { sha256 } from '../../base/sha256.ts';
import { type Redact, redactor } from '../../base/text/redact.ts';
import type { Cloud, CloudAuth } from '../clouds/cloud.ts';
import type { Assembly, Dialect, RequestStyle, RequestWriter, StreamEvent } from '../dialects/dialect.ts';
import { DIALECTS } from '../dialects/dialects.ts';
import { extraHeaders, sentParameters } from '../dialects/kwargs.ts';
import { providerError } from '../dialects/providerError.ts';
import { type Clock, systemClock } from '../limits/clock.ts';
import { createLimiter } from '../limits/limiter.ts';
import { createRateShare, type RateBook, type RateShare } from '../limits/sharedRate.ts';
import {
  abortError,
  type CallRecord,
  type Message,
  type Model,
  ModelConfigError,
  type ModelFactory,
  type ModelReply,
  type ModelResponse,
  type QueryOptions,
  type Wire,
  type WireAnswer,
  type WireOptions,
  type WireRequest,
  type WireSink,
} from '../model.ts';
import type { ModelConfig } from '../modelConfig.ts';
import { addressWithReferences, literalsInAddress } from '../namedCredentials.ts';
import { namedModel } from '../names.ts';
import { overridden, programOverrides } from '../parameters/programOverrides.ts';
import { type HttpCall, type Shared, silentIsAway, untilAnswered, withEstimatedUsage } from './httpCall.ts';
import {
  type AnswerBody,
  addressUnder,
  createTransport,
  type Deadlines,
  type Exchange,
  type HttpTransport,
} from './httpTransport.ts';
import { type ModelEndpoint, sendOnce, type TryAnswer } from './httpTry.ts';
import { type ProxySettings, proxySecrets } from './proxySettings.ts';

interface HttpModelOptions {
  readonly dialect: Dialect;
  readonly style?: RequestStyle;
  readonly config: ModelConfig;
  /** The configuration with the values of its references; default: it has none. */
  readonly sent?: ModelConfig;
  readonly apiKey: string | undefined;
  /** Reads the variables of the address. */
  readonly variable?: (name: string) => string | undefined;
  /** Secrets that are taken out of every text, beside the key. */
  readonly secrets?: readonly string[];
  readonly proxy?: ProxySettings;
  readonly clock?: Clock;
  readonly rates?: (account: string) => RateBook;
  /** A cloud's credentials in place of the key, and its way to stream. */
  readonly auth?: CloudAuth | undefined;
  readonly readEvents?: Cloud['readEvents'];
}

const ms = (seconds: number): number => seconds * 1000;

const deadlinesOf = (config: ModelConfig): Deadlines => ({
  connectMs: ms(config.connect_timeout_s),
  firstByteMs: ms(config.first_byte_timeout_s),
  idleMs: ms(config.idle_timeout_s),
  totalMs: ms(config.total_timeout_s),
});

function maxOutput(config: ModelConfig): number | null {
  return tokensOrNull(config.model_kwargs.max_completion_tokens ?? config.model_kwargs.max_tokens);
}

function httpModel(shared: Shared, wire: Wire | undefined): Model {
  const { endpoint, name } = shared;
  const { config } = endpoint;
  const newWriter = () => endpoint.dialect.createWriter(endpoint.sent, endpoint.model, shared.style);
  let idle: RequestWriter | undefined = newWriter();
  return {
    name,
    ...(wire && { wire }),
    templateVars: () => ({ model_name: name, model_kwargs: sentParameters(config.model_kwargs) }),
    async query(
      messages: readonly Message[],
      options: QueryOptions = {},
    ): Promise<ModelResponse<ModelReply>> {
      const { signal } = options;
      if (signal?.aborted) throw abortError(signal);
      // The writer serves one query at a time; an agent that asks twice at once gets a second one.
      const mine = idle ?? newWriter();
      idle = undefined;
      const body = mine.write(messages, options.tools);
      const answered = messages.some(({ role }) => role === 'assistant');
      const call: HttpCall = {
        endpoint,
        requestBytes: body.length,
        maxOutput: maxOutput(config),
        send: async (stop) =>
          silentIsAway(shared, await sendOnce({ ...endpoint, first: !answered }, body, stop)),
      };
      try {
        return await untilAnswered(shared, call, options, answered);
      } finally {
        idle = mine;
      }
    },
  };
}

/** A key is not needed for a server of one's own (by its name or its plain http), and is for everything else. */
function keyFor(config: ModelConfig, apiKey: string | undefined, baseUrl: string): string {
  if (apiKey) return apiKey;
  if (!baseUrl.startsWith('https:') || namedModel(config).provider?.keyOptional) return 'none';
  throw new ModelConfigError(
    `no API key for ${new URL(baseUrl).host}: set $${config.api_key_env}, or name another variable with model.api_key_env`,
  );
}

/** Names of litellm and the SDK that would lead a request elsewhere or hold a key, and where each belongs. */
const MOVED: Readonly<Record<string, string>> = {
  api_base: 'set model.base_url',
  base_url: 'set model.base_url',
  api_key: 'put the key into an environment variable and name it with model.api_key_env',
  model: 'set model.model_name',
  messages: 'the agent writes the messages',
  tools: 'the agent brings its tools',
  stream: 'set model.stream',
};

function checkParameters(config: ModelConfig): void {
  for (const [name, instead] of Object.entries(MOVED)) {
    if (name in config.model_kwargs)
      throw new ModelConfigError(`model.model_kwargs.${name} is not sent: ${instead}`);
  }
}

/** Headers and fields that cannot be sent would fail at every call. No value is told: it may be a key. */
function checkExtras(kwargs: ModelConfig['model_kwargs']): void {
  for (const name of ['extra_headers', 'extra_body'])
    if (kwargs[name] !== undefined && kwargs[name] !== null && !isRecord(kwargs[name]))
      throw new ModelConfigError(`model.model_kwargs.${name} is no object: write {"name": "value"}`);
  for (const [name, value] of Object.entries(extraHeaders(kwargs)))
    try {
      new Headers([[name, value]]);
    } catch {
      throw new ModelConfigError(
        `model.model_kwargs.extra_headers: the header ${JSON.stringify(name)} has a name or a value that HTTP does not take`,
      );
    }
}

function parseBaseUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url && (url.username !== '' || url.password !== ''))
    throw new ModelConfigError(
      'model.base_url holds a user and a password, which no request takes from an address: put them into model.model_kwargs.extra_headers (Authorization)',
    );
  const [literal] = literalsInAddress(text);
  if (literal)
    throw new ModelConfigError(
      `model.base_url holds a credential ("${literal.name}"), and an address stands in every record of a run: put its value into a variable and write ${literal.name}=env:NAME there`,
    );
  if (url && (url.protocol === 'http:' || url.protocol === 'https:')) return url;
  throw new ModelConfigError(`model.base_url is not an http(s) URL: "${text}"`);
}

/** Tokens of a cloud come and go during a run. */
function redactionOf({ apiKey, secrets = [], proxy, auth }: HttpModelOptions): Redact {
  const known = [...(apiKey ? [apiKey] : []), ...secrets, ...proxySecrets(proxy)];
  return auth ? (text) => redactor([...known, ...auth.secrets()])(text) : redactor(known);
}

/** The share of one key, address and model; the key itself is not in its name. */
function rateShare(
  { rates, config, dialect }: HttpModelOptions,
  { baseUrl, model }: ModelEndpoint,
  apiKey: string,
  clock: Clock,
): RateShare | undefined {
  if (!rates) return undefined;
  return createRateShare({
    book: rates(sha256(JSON.stringify([baseUrl, model, apiKey])).slice(0, 32)),
    configured: { rpm: config.rpm ?? null, tpm: config.tpm ?? null },
    countsCached: dialect.cachedIsFree !== true,
    longestPauseMs: ms(config.retry.max_retry_after_s),
    clock,
  });
}

export function createHttpFactory(options: HttpModelOptions): ModelFactory {
  const { config, dialect, sent = config } = options;
  const name = config.model_name;
  if (!name) throw new ModelConfigError('no model given: use --model NAME or set model.model_name');
  checkParameters(config);
  checkExtras(sent.model_kwargs);
  const baseUrl = namedModel(config).address;
  if (baseUrl === null) throw new ModelConfigError(`model "${name}" needs an address: set model.base_url`);
  const url = parseBaseUrl(baseUrl);
  const asked = addressWithReferences(baseUrl, options.variable ?? (() => undefined));
  const { auth } = options;
  const apiKey = auth ? '' : keyFor(config, options.apiKey, baseUrl);
  const clock = options.clock ?? systemClock;
  const transport = createTransport(deadlinesOf(config), options.proxy);
  const model = namedModel(config).sentAs;
  const endpoint: ModelEndpoint = {
    dialect,
    send: createSender(options, sent, apiKey, asked.address, transport),
    config,
    sent,
    host: url.host,
    baseUrl: `${url.protocol}//${url.host}${url.pathname}`,
    model,
    redact: redactionOf({ ...options, secrets: [...(options.secrets ?? []), ...asked.secrets] }),
    auth,
    readEvents: options.readEvents,
  };
  const limiter = createLimiter(config.max_concurrent, clock);
  const rates = rateShare(options, endpoint, apiKey, clock);
  const shared: Shared = {
    style: options.style ?? 'own',
    endpoint,
    limiter,
    clock,
    name,
    accepted: false,
    silent: 0,
    ...(rates && { rates }),
  };
  // Another program's request has the provider's own form and signature, not those of a cloud.
  const wire = auth ? undefined : createWire(shared, transport, apiKey, asked.address);
  return {
    name,
    free: config.prices === 'free',
    create: () => httpModel(shared, wire),
    load: () => ({ ...limiter.state(), ...rates?.limits() }),
    close: () => transport.close(),
  };
}

/** `baseUrl`: with the values of its references. A cloud's credentials go with each request. */
function createSender(
  { dialect, auth }: HttpModelOptions,
  sent: ModelConfig,
  apiKey: string,
  baseUrl: string,
  transport: HttpTransport,
): ModelEndpoint['send'] {
  const target = dialect.target(sent, namedModel(sent).sentAs, apiKey);
  const { path } = target;
  const headers = { ...target.headers, 'content-type': 'application/json' };
  // OpenAI's client would put a key of its own beside the credentials of a cloud.
  if (DIALECTS[dialect.name].openAi && !auth) {
    let asked: ReturnType<typeof openAiRequest> | undefined;
    return async (body, exchange) => {
      asked ??= openAiRequest({ apiKey, baseUrl, path, headers });
      const { url, headers: all } = await asked;
      return transport.fetch(url, { method: 'POST', headers: all, body, exchange } as RequestInit);
    };
  }
  const url = addressUnder(baseUrl, path);
  return async (body, exchange) => {
    const authorized = await auth?.authorize({ url: new URL(url), headers, body });
    if (authorized) exchange.credentials = authorized.generation;
    const all = { ...headers, ...authorized?.headers };
    return transport.fetch(url, { method: 'POST', headers: all, body, exchange } as RequestInit);
  };
}

/** A limit of the client's that never ends a request; a header of each request has it in seconds. */
const NEVER_MS = 2_147_483_000;

/** The address and the headers of OpenAI's client, the same for every request of a model: to make them anew takes as long as to send it. */
async function openAiRequest({
  apiKey,
  baseUrl,
  path,
  headers,
}: {
  readonly apiKey: string;
  readonly baseUrl: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
}): Promise<{ readonly url: string; readonly headers: Headers }> {
  const { OpenAI } = await import('openai');
  const client = new OpenAI({
    apiKey,
    baseURL: baseUrl,
    maxRetries: 0,
    // Set, so that nothing comes from the environment behind the config's back.
    organization: null,
    project: null,
    logLevel: 'off',
  });
  // The body is serialised by us, and the client passes bytes through as they are.
  const body = new Uint8Array(1);
  const { req, url } = await client.buildRequest({ method: 'post', path, headers, body, timeout: NEVER_MS });
  return { url, headers: req.headers };
}

// Requests that another program has written in the provider's dialect: their bytes leave as they are, and the answer's bytes come back as they are.
// The dialect only reads along, for the ledger and the record.

/** Sends the bytes of a request to where its provider takes them. */
type Post = (
  request: WireRequest,
  to: ModelEndpoint,
  body: Uint8Array,
  exchange: Exchange,
) => Promise<AnswerBody>;

/** After the last event a provider sends an empty line, if anything. */
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
function endpointFor(endpoint: ModelEndpoint, request: WireRequest): ModelEndpoint {
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

function wireTarget({ dialect, sent, model }: ModelEndpoint, request: WireRequest, apiKey: string) {
  const asked: ModelConfig = { ...sent, stream: request.operation === 'stream' };
  const { path, headers } = dialect.target(asked, model, apiKey);
  const counted =
    request.operation !== 'count_tokens'
      ? path
      : path.includes(':generateContent')
        ? path.replace(':generateContent', ':countTokens')
        : `${path}/count_tokens`;
  const query = counted.includes('?') ? request.query.replace(/^\?/, '&') : request.query;
  return { path: `${counted}${query}`, headers };
}

/** A lock between the provider's answer and the sink: bytes are held back until it is sure that this try is the one. */
function holdBack(sink: WireSink | null) {
  let held: Uint8Array[] = [];
  let open = false;
  return {
    isOpen: () => open,
    take(bytes: Uint8Array): void {
      if (open) sink?.data(bytes);
      else if (sink) held.push(bytes);
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
      // The reader has the end of the answer: nobody needs the rest.
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
 * Events before the first word (a greeting, the usage so far) are no answer yet: providers without room send them too, then an error
 * (streamOpenings.test.ts). Calls of tools without arguments have no characters and are held until the end.
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
  post: Post,
  base: ModelEndpoint,
  request: WireRequest,
  held: Held,
  signal: AbortSignal | undefined,
  hear: (result: TryAnswer) => TryAnswer,
): Promise<TryAnswer> {
  let exchange: Exchange | undefined;
  let ended = Promise.resolve();
  const dialect: Dialect = {
    ...(request.operation === 'count_tokens' ? countingDialect(base.dialect) : base.dialect),
    assemble: () => watching(base.dialect.assemble(), () => exchange && held.letGo(exchange)),
  };
  const send: ModelEndpoint['send'] = async (body, current) => {
    exchange = current;
    const response = await post(request, base, body, current);
    if (!current.streaming || !response.body) return response;
    const tap = tapped(response.body, held);
    ended = tap.ended;
    return { body: tap.body };
  };
  held.forget();
  const result = hear(await sendOnce({ ...base, dialect, send }, request.body, signal));
  if (held.isOpen()) await within(ended, REST_MS);
  else if (exchange && passes(result)) {
    if (!exchange.streaming) held.take(Buffer.from(exchange.text));
    held.letGo(exchange);
  }
  return result;
}

/** Failures that the program itself has to read, and can do something about. */
const ITS_OWN = new Set<string>(['refusal', 'empty', 'bad_call', 'context', 'rejected', 'config']);

/** The program also reads a refusal, an empty answer, and the error of a stream that came to its end. */
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
  shared: Shared,
  post: Post,
  overrides: ReturnType<typeof programOverrides>,
  asked: WireRequest,
  sink: WireSink | null,
  options: WireOptions,
): Promise<WireAnswer> {
  const { signal, answered = false } = options;
  if (signal?.aborted) throw abortError(signal);
  const endpoint = { ...endpointFor(shared.endpoint, asked), first: !answered };
  const counts = asked.operation === 'count_tokens';
  const request = counts ? asked : { ...asked, body: overridden(asked.body, overrides) };
  const longest = (!counts && maxOutput(shared.endpoint.config)) || request.maxOutput;
  const held = holdBack(sink);
  let last: TryAnswer | undefined;
  const hear = (result: TryAnswer) => (counts ? result : silentIsAway(shared, result));
  const call: HttpCall = {
    endpoint,
    requestBytes: request.body.length,
    maxOutput: longest,
    free: request.operation === 'count_tokens',
    send: async (stop) => (last = await forwardOnce(post, endpoint, request, held, stop, hear)),
    begun: held.isOpen,
    settle: (record) => {
      const row = settled({ ...request, maxOutput: longest }, endpoint, () => last)(record);
      const set = counts ? [] : Object.keys(overrides);
      const note = `set by model_kwargs over the program's own: ${set.join(', ')}`;
      return set.length === 0 ? row : { ...row, notes: [...row.notes, note] };
    },
  };
  const response = await untilAnswered(shared, call, options, answered);
  const exchange = last?.exchange;
  const refused =
    !held.isOpen() && exchange?.status && exchange.status >= 400
      ? { status: exchange.status, headers: exchange.headers, text: exchange.text }
      : null;
  return { response, refused };
}

function createWire(shared: Shared, transport: HttpTransport, apiKey: string, baseUrl: string): Wire {
  const { dialect, model, sent } = shared.endpoint;
  const post: Post = (request, to, body, exchange) => {
    const { path, headers } = wireTarget(to, request, apiKey);
    const all = { ...headers, ...request.headers, 'content-type': 'application/json' };
    return transport.fetch(addressUnder(baseUrl, path), {
      method: 'POST',
      headers: all,
      body,
      exchange,
    } as RequestInit);
  };
  const overrides = programOverrides(dialect, sent);
  return {
    dialect: dialect.name,
    model,
    send: (request, sink, options = {}) => forward(shared, post, overrides, request, sink, options),
  };
}
