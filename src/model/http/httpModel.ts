/**
 * A model behind HTTP, whatever dialect it speaks. What all slots share (connections, limiter) lives in the factory; a model is made
 * for each attempt.
 */

import { redactor } from '../../base/text/keyShapes.ts';
import { REJECTED } from '../classify.ts';
import type { Dialect, RequestStyle, RequestWriter } from '../dialects/dialect.ts';
import { sentParameters } from '../dialects/kwargs.ts';
import { abortError, ModelConfigError } from '../failure.ts';
import { recordOf } from '../ledger.ts';
import { type Clock, systemClock } from '../limits/clock.ts';
import { type CallEnd, createLimiter, type Limiter, type Release } from '../limits/limiter.ts';
import { rateHint, retryAfter, type Wait } from '../limits/retryAfter.ts';
import { backoffMs, planRetry, type TryResult, withRetries } from '../limits/withRetries.ts';
import type { Message, Model, ModelFactory, ModelReply, ModelResponse, QueryOptions } from '../model.ts';
import type { ModelConfig } from '../modelConfig.ts';
import { baseUrlOf, sentModel } from '../names.ts';
import { estimateNano } from '../prices.ts';
import { type AttemptResult, attemptOnce, type Endpoint, type Failure } from './attempt.ts';
import type { Deadlines, Exchange } from './exchange.ts';
import { createTransport } from './httpTransport.ts';
import { type ProxySettings, proxySecrets } from './proxySettings.ts';
import { createSender } from './send.ts';

export interface HttpModelOptions {
  readonly dialect: Dialect;
  readonly style?: RequestStyle;
  readonly config: ModelConfig;
  readonly apiKey: string | undefined;
  /** Taken out of every text beside the key. */
  readonly secrets?: readonly string[];
  readonly proxy?: ProxySettings;
  readonly clock?: Clock;
}

const ms = (seconds: number): number => seconds * 1000;

const deadlinesOf = (config: ModelConfig): Deadlines => ({
  connectMs: ms(config.connect_timeout_s),
  firstByteMs: ms(config.first_byte_timeout_s),
  idleMs: ms(config.idle_timeout_s),
  totalMs: ms(config.total_timeout_s),
});

function maxOutput(config: ModelConfig): number | null {
  const limit = config.model_kwargs.max_completion_tokens ?? config.model_kwargs.max_tokens;
  return typeof limit === 'number' ? limit : null;
}

interface Shared {
  readonly style: RequestStyle;
  readonly endpoint: Endpoint;
  readonly limiter: Limiter;
  readonly clock: Clock;
  readonly name: string;
  /** A call has succeeded: the parameters are taken, whatever a later refusal names. */
  accepted: boolean;
}

/** 503 and 529 say "too much" as 429 does. */
const OVERLOADED = new Set([429, 503, 529]);

function endOf(shared: Shared, result: AttemptResult, wait: Wait, tried: number): CallEnd {
  const { exchange, failure } = result;
  const { clock } = shared;
  const { retry } = shared.endpoint.config;
  const limited = failure?.verdict.code === 'RATE_LIMITED' && failure.verdict.retryable;
  const overloaded =
    limited || (failure !== null && OVERLOADED.has(exchange.status ?? 0) && failure.verdict.retryable);
  const succeeded = failure === null;
  const hint =
    exchange.status === null ? null : rateHint(exchange.headers, clock.wall(), ms(retry.max_retry_after_s));
  if (!overloaded || !failure) return { overloaded, succeeded, hint };
  const plan = planRetry(retry, { verdict: failure.verdict, wait }, tried, clock.random);
  // A server that wants a day's silence ends each call by itself; it does not make the others wait a day first.
  if (plan.kind === 'too_long') return { overloaded, succeeded, hint: null };
  const asked = wait.kind === 'wait' ? wait.ms : backoffMs(retry, tried + 1, clock.random);
  return { overloaded, succeeded, hint, waitMs: plan.kind === 'retry' ? plan.delayMs : asked };
}

const NO_WAIT: Wait = { kind: 'none' };

/** A header says it best; Google says it in the body. */
function askedWait({ retryMs }: Failure, { headers }: Exchange, wallNow: number): Wait {
  const stated = retryAfter(headers, wallNow);
  return stated.kind === 'none' && retryMs ? { kind: 'wait', ms: retryMs } : stated;
}

async function tryOnce(
  shared: Shared,
  body: Uint8Array,
  options: QueryOptions,
  tried: number,
): Promise<TryResult<ModelReply>> {
  const { endpoint, limiter, clock } = shared;
  const { listener, signal } = options;
  const release: Release = await limiter.acquire(signal, () => listener?.phase?.('rate_wait'));
  let end: CallEnd = { overloaded: false, succeeded: false };
  try {
    const asked = new Date(clock.wall());
    const estimate = estimateNano(endpoint.config, body.length, maxOutput(endpoint.config), asked);
    await listener?.wanted?.(estimate, signal);
    const startedAt = clock.wall();
    const start = clock.now();
    listener?.began({ try: tried, modelAsked: endpoint.model, startedAt, estimateNano: estimate });
    listener?.phase?.('model');
    const result = await attemptOnce(endpoint, body, signal);
    const { exchange, failure, reply } = result;
    const wait = failure ? askedWait(failure, exchange, clock.wall()) : NO_WAIT;
    end = endOf(shared, result, wait, tried);
    const notes =
      wait.kind === 'unreadable' ? [`Retry-After "${wait.value}" not understood: usual back-off`] : [];
    const record = recordOf(endpoint, result, {
      tried,
      startedAt,
      latencyMs: clock.now() - start,
      requestBytes: body.length,
      notes,
    });
    listener?.ended(record);
    if (signal?.aborted) throw abortError(signal);
    if (!failure && reply) {
      shared.accepted = true;
      const { message, content, toolCalls, finishReason, modelId } = reply;
      const { usage, costNano } = record;
      return {
        ok: true,
        value: { message, content, toolCalls, finishReason, modelId, usage, costNano, raw: result.body },
      };
    }
    const { what, last } = failure!;
    const verdict = failure!.verdict.kind === 'config' && shared.accepted ? REJECTED : failure!.verdict;
    return {
      ok: false,
      verdict,
      what,
      last,
      wait,
      metadata: {
        provider: endpoint.host,
        model: endpoint.model,
        kind: verdict.kind,
        ...(exchange.status === null ? {} : { statusCode: exchange.status }),
        ...(wait.kind === 'wait' ? { retryAfter: wait.ms / 1000 } : {}),
        originalError: { message: record.errorMessage },
      },
    };
  } finally {
    release(end);
  }
}

function httpModel(shared: Shared): Model {
  const { endpoint, clock, name } = shared;
  const { config } = endpoint;
  const newWriter = () => endpoint.dialect.createWriter(config, endpoint.model, shared.style);
  let idle: RequestWriter | undefined = newWriter();
  return {
    name,
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
      try {
        return await withRetries({
          config: config.retry,
          clock,
          signal,
          onBackoff: () => options.listener?.phase?.('backoff'),
          attempt: (tried) => tryOnce(shared, body, options, tried),
        });
      } finally {
        idle = mine;
      }
    },
  };
}

/** A key is not needed for a server on one's own machine or network, and is for everything that speaks TLS. */
function keyFor(config: ModelConfig, apiKey: string | undefined, baseUrl: string): string {
  if (apiKey) return apiKey;
  if (!baseUrl.startsWith('https:')) return 'none';
  throw new ModelConfigError(
    'PROVIDER_NOT_CONFIGURED',
    `no API key for ${new URL(baseUrl).host}: set $${config.api_key_env}, or name another variable with model.api_key_env`,
  );
}

/** Of litellm and the SDK, where they would lead a request elsewhere or hold a key: said where it belongs. */
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
      throw new ModelConfigError(
        'PROVIDER_NOT_CONFIGURED',
        `model.model_kwargs.${name} is not sent: ${instead}`,
      );
  }
}

function parseBaseUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url && (url.protocol === 'http:' || url.protocol === 'https:')) return url;
  throw new ModelConfigError('PROVIDER_NOT_CONFIGURED', `model.base_url is not an http(s) URL: "${text}"`);
}

export function createHttpFactory(options: HttpModelOptions): ModelFactory {
  const { config, dialect } = options;
  const name = config.model_name;
  if (!name)
    throw new ModelConfigError(
      'PROVIDER_NOT_CONFIGURED',
      'no model given: use --model NAME or set model.model_name',
    );
  checkParameters(config);
  const baseUrl = baseUrlOf(config);
  if (baseUrl === null)
    throw new ModelConfigError(
      'PROVIDER_NOT_CONFIGURED',
      `model "${name}" needs an address: set model.base_url`,
    );
  const url = parseBaseUrl(baseUrl);
  const apiKey = keyFor(config, options.apiKey, baseUrl);
  const clock = options.clock ?? systemClock;
  const transport = createTransport(deadlinesOf(config), options.proxy);
  const model = sentModel(config);
  const endpoint: Endpoint = {
    dialect,
    send: createSender({ dialect, config, model, apiKey, baseUrl, transport }),
    config,
    host: url.host,
    baseUrl: `${url.protocol}//${url.host}${url.pathname}`,
    model,
    redact: redactor([
      ...(options.apiKey ? [options.apiKey] : []),
      ...(options.secrets ?? []),
      ...proxySecrets(options.proxy),
    ]),
  };
  const limiter = createLimiter(config.max_concurrent, clock);
  const shared: Shared = { style: options.style ?? 'own', endpoint, limiter, clock, name, accepted: false };
  return {
    name,
    free: config.prices === 'free',
    create: () => httpModel(shared),
    load: () => limiter.state(),
    close: () => transport.close(),
  };
}
