/** One try of a call: its turn at the limiter, its money, its row in the ledger, and the step that follows its end. */

import { AWAY, type Diagnosis, RENEWED } from '../classify.ts';
import type { ReadUsage, RequestStyle } from '../dialects/dialect.ts';
import { knownModel } from '../knownModels.ts';
import type { Clock } from '../limits/clock.ts';
import type { CallEnd, Limiter, Release } from '../limits/limiter.ts';
import { rateHint, retryAfter, type Wait } from '../limits/retryAfter.ts';
import type { RateShare, Taken } from '../limits/sharedRate.ts';
import { backoffMs, type FailedTry, planRetry, type TryResult, withRetries } from '../limits/withRetries.ts';
import { abortError, type CallRecord, type ModelReply, type QueryOptions, type Usage } from '../model.ts';
import type { ModelConfig, RetryConfig } from '../modelConfig.ts';
import { type CostOfCall, costOf, estimateNano, USUAL_MAX_OUTPUT } from '../prices.ts';
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
  /** Replies of nothing since the last word. */
  silent: number;
}

/** After so many empty replies in a row, over all slots, the server counts as away, whatever it answered before. */
const SILENT = 3;

/**
 * A reply without a word and without a token was made by no model. A server that has answered nothing else, or nothing any more, is away;
 * one such reply between others stays an empty reply. 28 November 2026: a run of such replies ended as complete, 0 of 8 resolved, and not as an outage.
 */
export function silentIsAway(
  shared: Pick<Shared, 'accepted' | 'silent' | 'endpoint'>,
  result: TryAnswer,
): TryAnswer {
  const { failure, facts, reply } = result;
  if (failure !== null && failure.verdict.kind !== 'empty') return result;
  const { usage } = shared.endpoint.dialect.readUsage(facts?.rawUsage);
  const said = reply !== null && (reply.content.trim() !== '' || reply.toolCalls.length > 0);
  // A reply that was cut off before its first word may state that it has none.
  const none = failure === null ? !said && usage === null : (usage?.output ?? 0) === 0;
  shared.silent = none ? shared.silent + 1 : 0;
  if (!none || (shared.accepted && shared.silent < SILENT)) return result;
  const how = failure?.what ?? 'a reply that was cut off before its first word';
  const what = `the server of the model answers nothing (${how}, and no token of one is stated)`;
  return { ...result, reply: null, failure: { verdict: AWAY, what, last: null, silent: true } };
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

/** The verdict on a failure, by the calls that were accepted before. */
function verdictInRun(
  shared: Pick<Shared, 'accepted'>,
  { auth }: ModelEndpoint,
  verdict: Diagnosis,
  { credentials, status }: Exchange,
): Diagnosis {
  if (verdict.kind === 'config') return shared.accepted ? { ...verdict, kind: 'rejected' } : verdict;
  if (!auth || credentials === undefined || status === null) return verdict;
  if (verdict.kind !== 'auth') auth.accepted(credentials);
  else if (auth.renew(credentials)) return RENEWED;
  return verdict;
}

/** One request of any writer. */
export interface HttpCall {
  readonly endpoint: ModelEndpoint;
  readonly requestBytes: number;
  readonly maxOutput: number | null;
  /** Nobody bills it: no money is reserved. */
  readonly free?: boolean;
  send(signal: AbortSignal | undefined): Promise<TryAnswer>;
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
  readonly queuedMs: number;
  readonly exchange: Exchange;
  readonly failure: Failure;
  readonly wait: Wait;
  readonly message: string | null;
}

function failedTry(
  shared: Pick<Shared, 'accepted'>,
  { endpoint, begun }: HttpCall,
  { exchange, failure, wait, message, queuedMs }: Failed,
): FailedTry {
  const { what, last } = failure;
  const said = verdictInRun(shared, endpoint, failure.verdict, exchange);
  const verdict = begun?.() ? { ...said, retryable: false } : said;
  return {
    ok: false,
    verdict,
    what,
    last,
    wait,
    queuedMs,
    metadata: {
      provider: endpoint.host,
      model: endpoint.model,
      kind: verdict.kind,
      ...(verdict.kind === 'rejected' && !shared.accepted ? { beforeAnyAnswer: true } : {}),
      ...(failure.silent || UNREACHABLE.has(exchange.failure?.fault ?? 'aborted')
        ? { unreachable: true }
        : {}),
      ...(exchange.status === null ? {} : { statusCode: exchange.status }),
      ...(wait.kind === 'wait' ? { retryAfter: wait.ms / 1000 } : {}),
      originalError: { message },
    },
  };
}

/** A call with all its tries. `answered`: the conversation has had an answer, which was paid for. */
export const untilAnswered = (
  shared: Pick<Shared, 'limiter' | 'rates' | 'clock' | 'accepted'>,
  call: HttpCall,
  options: Pick<QueryOptions, 'listener' | 'signal'>,
  answered: boolean,
) =>
  withRetries({
    config: call.endpoint.config.retry,
    clock: shared.clock,
    signal: options.signal,
    onBackoff: () => options.listener?.phase?.('backoff'),
    answered,
    ask: (tried) => tryOnce(shared, call, options, tried),
  });

/**
 * In this order: its turn at the limiter, its tokens of the minute, leave to spend (`listener.wanted`, where the caller keeps its budget), the
 * request, and its row in the ledger (`listener.ended`). An error of a listener ends the run: nothing is asked or paid past it.
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
  // Asked before the turn and again after the call, so that the others in the limiter hear of a pause too.
  const heedOthers = () => limiter.block(shared.rates?.pausedMs() ?? 0);
  heedOthers();
  const asks = clock.now();
  listener?.asks?.();
  const waits = () => listener?.phase?.('rate_wait');
  const release: Release = await limiter.acquire(signal, waits);
  let taken: Taken | undefined;
  let end: CallEnd = { overloaded: false, succeeded: false };
  try {
    taken = await shared.rates?.take(requestBytes, signal, waits);
    const asked = new Date(clock.wall());
    const estimate = call.free ? 0 : estimateNano(endpoint.config, requestBytes, call.maxOutput, asked);
    await wantedOr(() => taken?.end(null, true, {}), listener?.wanted?.(estimate, signal, waits));
    const startedAt = clock.wall();
    // Before its row, so that both are written together.
    listener?.phase?.('model');
    await listener?.began({ try: tried, modelAsked: endpoint.model, startedAt, estimateNano: estimate });
    const start = clock.now();
    const result = await call.send(signal);
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
      // Tokens that were counted are no answer.
      if (!call.free) shared.accepted = true;
      if (exchange.credentials !== undefined) endpoint.auth?.accepted(exchange.credentials);
      const { message, content, toolCalls, finishReason, modelId } = reply;
      const { usage, costNano } = record;
      return {
        ok: true,
        value: { message, content, toolCalls, finishReason, modelId, usage, costNano, raw: result.body },
      };
    }
    const failed = { exchange, failure: failure!, wait, message: record.errorMessage };
    return failedTry(shared, call, { ...failed, queuedMs: start - asks });
  } finally {
    heedOthers();
    release(end);
  }
}

const NO_COST: CostOfCall = {
  usage: null,
  costNano: 0,
  providerCostNano: null,
  priceVersion: null,
  notes: [],
};

/** Tokens that nobody counted, from bytes and characters: four of them make one. */
const tokensIn = (length: number): number => Math.ceil(length / 4);
const uncounted = (requestBytes: number, output: number): Usage => ({
  ...{ input: tokensIn(requestBytes), cacheRead: 0, cacheWrite: 0 },
  ...{ output, reasoning: 0 },
});

/**
 * A rough count for an answer of which we saw only the beginning: billed for sure, but never counted by anyone. The provider's count
 * of the prompt holds; of the answer it had counted the first token at most.
 */
function partialCost(
  { config, dialect }: ModelEndpoint,
  { exchange, facts, characters }: TryAnswer,
  requestBytes: number,
  at: Date,
): CostOfCall {
  const { usage: stated, cacheWrite1h } = dialect.readUsage(facts?.rawUsage);
  const output = Math.max(stated?.output ?? 0, tokensIn(characters));
  const usage = stated ? { ...stated, output } : uncounted(requestBytes, output);
  const estimated = costOf(config, null, at, { usage, cacheWrite1h, notes: [] });
  const stopped = exchange.streaming ? `after ${exchange.chunks} chunks` : 'before its end';
  const notes = [`usage and cost estimated: the answer stopped ${stopped}`];
  return { ...estimated, providerCostNano: null, notes };
}

/** The characters of an answer, and the length that was asked for. */
interface AnswerSize {
  readonly characters: number;
  readonly maxOutput: number | null;
}

/** A model that thinks shows little of it, or nothing: then what a step writes at most in practice stands for the answer. */
function outputOf(
  config: ModelConfig,
  { characters, maxOutput }: AnswerSize,
): { tokens: number; note: string } {
  const seen = tokensIn(characters);
  const usual = Math.min(maxOutput ?? USUAL_MAX_OUTPUT, USUAL_MAX_OUTPUT);
  return knownModel(config.model_name ?? '')?.reasoning === true && usual > seen
    ? { tokens: usual, note: ', with room for hidden reasoning' }
    : { tokens: seen, note: '' };
}

/** A program that asks for no usage in its stream gets none. The calls cost money all the same, so they are estimated. */
export function withEstimatedUsage(config: ModelConfig, record: CallRecord, written: AnswerSize): CallRecord {
  if (record.state !== 'ok' || record.rawUsage !== null || record.costNano !== null) return record;
  const output = outputOf(config, written);
  const read = { usage: uncounted(record.requestBytes, output.tokens), cacheWrite1h: 0, notes: [] };
  const { usage, costNano, priceVersion } = costOf(config, null, new Date(record.startedAt), read);
  const odd = record.notes.filter((note) => note !== 'usage missing');
  const notes = [`usage and cost estimated: the provider stated none${output.note}`, ...odd];
  return { ...record, usage, costNano, priceVersion, notes };
}

/** Instructions of the provider's own stand before a request; no model reads so many tokens of them, or writes so many. */
const [MOST_HIDDEN, MOST_WRITTEN] = [1_000_000, 10_000_000];

/** Counts that cannot be of this request and this reply measure nothing: docs/threat-model.md promises it. */
function measured(read: ReadUsage, { reply }: TryAnswer, requestBytes: number): ReadUsage {
  if (!read.usage) return read;
  const { input, cacheRead, cacheWrite, output } = read.usage;
  const tokens = input + cacheRead + cacheWrite;
  const said = reply !== null && (reply.content !== '' || reply.toolCalls.length > 0);
  const why =
    said && output === 0
      ? 'a reply of 0 tokens'
      : tokens > requestBytes + MOST_HIDDEN
        ? `${tokens} tokens in a request of ${requestBytes} bytes`
        : output > MOST_WRITTEN
          ? `a reply of ${output} tokens`
          : null;
  return why === null ? read : { usage: null, cacheWrite1h: 0, notes: [`usage unusable: ${why}`] };
}

/** The cost of a try. An error status is not billed; an answer that got lost may have been. */
function costOfAttempt(
  endpoint: ModelEndpoint,
  result: TryAnswer,
  requestBytes: number,
  at: Date,
): CostOfCall {
  const { config, dialect } = endpoint;
  const { exchange, facts, failure } = result;
  const stated = result.partial !== true && facts?.rawUsage !== null && facts?.rawUsage !== undefined;
  const read = () => measured(dialect.readUsage(facts?.rawUsage), result, requestBytes);
  if (!failure || stated) return costOf(config, facts?.rawUsage, at, read());
  if (config.prices === 'free' || (exchange.status !== null && exchange.status >= 300)) return NO_COST;
  if (result.characters > 0) return partialCost(endpoint, result, requestBytes, at);
  const fault = exchange.failure?.fault;
  if (fault === 'connect' || fault === 'connect_timeout') return NO_COST;
  if (result.body === null)
    return { ...NO_COST, costNano: null, notes: ['answer lost: it may have been billed'] };
  // An error object in a 200 is an error like any other; a reply that we cannot use was paid for, at a price nobody said.
  return (failure.verdict.kind === 'unavailable' && !failure.silent) || result.partial === true
    ? NO_COST
    : { ...NO_COST, costNano: null, notes: ['usage missing'] };
}

const OURS = new Set(['first_byte', 'idle', 'total', 'connect_timeout', 'aborted', 'too_large']);

/** Characters kept of a reply that cannot be read. */
const UNREADABLE = 1024 * 1024;

function callRecord(
  endpoint: ModelEndpoint,
  result: TryAnswer,
  call: {
    tried: number;
    startedAt: number;
    latencyMs: number;
    requestBytes: number;
    notes: readonly string[];
  },
): CallRecord {
  const { exchange, facts, failure } = result;
  const cost = costOfAttempt(endpoint, result, call.requestBytes, new Date(call.startedAt));
  const ours = exchange.failure !== null && OURS.has(exchange.failure.fault);
  const answered = facts?.modelId ?? null;
  return {
    try: call.tried,
    state: failure === null ? 'ok' : ours ? 'aborted' : 'failed',
    startedAt: call.startedAt,
    latencyMs: call.latencyMs,
    statusCode: exchange.status,
    errorCode: failure?.verdict.code ?? null,
    errorMessage: failure ? (failure.last ? `${failure.what}; last: "${failure.last}"` : failure.what) : null,
    modelAsked: endpoint.model,
    modelAnswered: answered,
    responseId: facts?.responseId ?? null,
    fingerprint: facts?.fingerprint ?? null,
    finishReason: facts?.finishReason ?? null,
    rawUsage: facts?.rawUsage ?? null,
    usage: cost.usage,
    priceVersion: cost.priceVersion,
    costNano: cost.costNano,
    providerCostNano: cost.providerCostNano,
    requestBytes: call.requestBytes,
    notes: [
      ...cost.notes,
      ...result.notes,
      ...call.notes,
      ...(answered !== null && answered !== endpoint.model ? [`answered by ${answered}`] : []),
    ],
    ...(result.unreadable === undefined
      ? {}
      : { unreadable: result.unreadable.slice(0, UNREADABLE).toWellFormed() }),
  };
}
