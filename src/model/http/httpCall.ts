/** One try of a call: its turn at the limiter, its money, its row in the ledger, and what is to follow from how it ended. */
import { type Diagnosis, REJECTED, RENEWED } from '../classify.ts';
import type { RequestStyle } from '../dialects/dialect.ts';
import { abortError } from '../failure.ts';
import { callRecord } from '../ledger.ts';
import type { Clock } from '../limits/clock.ts';
import type { CallEnd, Limiter, Release } from '../limits/limiter.ts';
import { rateHint, retryAfter, type Wait } from '../limits/retryAfter.ts';
import type { RateShare, Taken } from '../limits/sharedRate.ts';
import { backoffMs, type FailedTry, planRetry, type TryResult } from '../limits/withRetries.ts';
import type { CallRecord, ModelReply, QueryOptions } from '../model.ts';
import type { RetryConfig } from '../modelConfig.ts';
import { estimateNano } from '../prices.ts';
import type { Exchange, TransportFault } from './httpTransport.ts';
import type { Failure, ModelEndpoint, TryAnswer } from './httpTry.ts';

const ms = (seconds: number): number => seconds * 1000;

export interface Shared {
  readonly style: RequestStyle;
  readonly endpoint: ModelEndpoint;
  readonly limiter: Limiter;
  /** Limits a minute that other processes share. */
  readonly rates?: RateShare;
  readonly clock: Clock;
  readonly name: string;
  /** A call has succeeded: the parameters are taken, whatever a later refusal names. */
  accepted: boolean;
}

/** 503 and 529 say "too much" as 429 does. */
const OVERLOADED = new Set([429, 503, 529]);

function endOf(clock: Clock, retry: RetryConfig, result: TryAnswer, wait: Wait, tried: number): CallEnd {
  const { exchange, failure } = result;
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

const UNREACHABLE: ReadonlySet<TransportFault> = new Set(['connect', 'connect_timeout']);

const NO_WAIT: Wait = { kind: 'none' };

/** A header says it best; Google says it in the body. */
function askedWait({ retryMs }: Failure, { headers }: Exchange, wallNow: number): Wait {
  const stated = retryAfter(headers, wallNow);
  return stated.kind === 'none' && retryMs ? { kind: 'wait', ms: retryMs } : stated;
}

/** What a failure means once it is known what was accepted before. */
function judged(
  shared: Pick<Shared, 'accepted'>,
  { auth }: ModelEndpoint,
  verdict: Diagnosis,
  { credentials, status }: Exchange,
): Diagnosis {
  if (verdict.kind === 'config') return shared.accepted ? REJECTED : verdict;
  if (!auth || credentials === undefined || status === null) return verdict;
  if (verdict.kind !== 'auth') auth.accepted(credentials);
  else if (auth.renew(credentials)) return RENEWED;
  return verdict;
}

/** One request, whoever wrote it. */
export interface HttpCall {
  readonly endpoint: ModelEndpoint;
  readonly requestBytes: number;
  readonly maxOutput: number | null;
  /** Nobody bills it: no money is reserved. */
  readonly free?: boolean;
  attempt(signal: AbortSignal | undefined): Promise<TryAnswer>;
  /** Bytes of the answer have left for somebody who cannot take them back: the call is not made again. */
  begun?(): boolean;
  /** The ledger's row as this kind of call wants it. */
  settle?(record: CallRecord): CallRecord;
}

/** A call that is not made, for want of money or since its attempt is over, takes no tokens of the minute. */
async function wantedOr(giveBack: () => void, wanted: Promise<void> | undefined): Promise<void> {
  try {
    await wanted;
  } catch (error) {
    giveBack();
    throw error;
  }
}

interface Failed {
  readonly exchange: Exchange;
  readonly failure: Failure;
  readonly wait: Wait;
  readonly message: string | null;
}

function failedTry(
  shared: Pick<Shared, 'accepted'>,
  { endpoint, begun }: HttpCall,
  { exchange, failure, wait, message }: Failed,
): FailedTry {
  const { what, last } = failure;
  const said = judged(shared, endpoint, failure.verdict, exchange);
  const verdict = begun?.() ? { ...said, retryable: false } : said;
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
      ...(verdict.kind === 'rejected' && !shared.accepted ? { beforeAnyAnswer: true } : {}),
      ...(UNREACHABLE.has(exchange.failure?.fault ?? 'aborted') ? { unreachable: true } : {}),
      ...(exchange.status === null ? {} : { statusCode: exchange.status }),
      ...(wait.kind === 'wait' ? { retryAfter: wait.ms / 1000 } : {}),
      originalError: { message },
    },
  };
}

/**
 * In this order: its turn at the limiter, its tokens of the minute, leave to spend (`listener.wanted`, where the caller keeps its budget), the
 * request, and its row in the ledger (`listener.ended`). What a listener throws ends the run: nothing is asked or paid past it.
 */
export async function tryOnce(
  shared: Pick<Shared, 'limiter' | 'rates' | 'clock' | 'accepted'>,
  call: HttpCall,
  options: Pick<QueryOptions, 'listener' | 'signal'>,
  tried: number,
): Promise<TryResult<ModelReply>> {
  const { limiter, clock } = shared;
  const { endpoint, requestBytes } = call;
  const { listener, signal } = options;
  // Before its turn and again with its end, so that those who wait in the limiter hear of it too.
  const heedOthers = () => limiter.block(shared.rates?.pausedMs() ?? 0);
  heedOthers();
  const release: Release = await limiter.acquire(signal, () => listener?.phase?.('rate_wait'));
  let taken: Taken | undefined;
  let end: CallEnd = { overloaded: false, succeeded: false };
  try {
    taken = await shared.rates?.take(requestBytes, signal, () => listener?.phase?.('rate_wait'));
    const asked = new Date(clock.wall());
    const estimate = call.free ? 0 : estimateNano(endpoint.config, requestBytes, call.maxOutput, asked);
    await wantedOr(() => taken?.end(null, true, {}), listener?.wanted?.(estimate, signal));
    const startedAt = clock.wall();
    const start = clock.now();
    listener?.began({ try: tried, modelAsked: endpoint.model, startedAt, estimateNano: estimate });
    listener?.phase?.('model');
    const result = await call.attempt(signal);
    const { exchange, failure, reply } = result;
    const wait = failure ? askedWait(failure, exchange, clock.wall()) : NO_WAIT;
    end = endOf(clock, endpoint.config.retry, result, wait, tried);
    if (end.waitMs !== undefined && wait.kind === 'wait') shared.rates?.pause(end.waitMs);
    const notes =
      wait.kind === 'unreadable' ? [`Retry-After "${wait.value}" not understood: usual back-off`] : [];
    const latencyMs = clock.now() - start;
    const row = callRecord(endpoint, result, { tried, startedAt, latencyMs, requestBytes, notes });
    const record = call.settle?.(row) ?? row;
    taken?.end(record.usage, end.overloaded, exchange.headers);
    listener?.ended(record);
    if (signal?.aborted) throw abortError(signal);
    if (!failure && reply) {
      shared.accepted = true;
      if (exchange.credentials !== undefined) endpoint.auth?.accepted(exchange.credentials);
      const { message, content, toolCalls, finishReason, modelId } = reply;
      const { usage, costNano } = record;
      return {
        ok: true,
        value: { message, content, toolCalls, finishReason, modelId, usage, costNano, raw: result.body },
      };
    }
    return failedTry(shared, call, { exchange, failure: failure!, wait, message: record.errorMessage });
  } finally {
    heedOthers();
    release(end);
  }
}
