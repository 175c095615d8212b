/** The ledger row of one HTTP attempt: what came back, what it cost, and what is odd about it. */

import type { ModelEndpoint, TryAnswer } from './http/httpTry.ts';
import { knownModel } from './knownModels.ts';
import type { CallRecord } from './model.ts';
import type { ModelConfig } from './modelConfig.ts';
import { type CostOfCall, costOf, USUAL_MAX_OUTPUT } from './prices.ts';

const NO_COST: CostOfCall = {
  usage: null,
  costNano: 0,
  providerCostNano: null,
  priceVersion: null,
  notes: [],
};

/**
 * A rough count for an answer of which we saw only the beginning: billed for sure, but never counted by anyone. What the provider stated
 * of the prompt counts; of the answer it had stated the first token at most.
 */
function partialCost(
  { config, dialect }: ModelEndpoint,
  result: TryAnswer,
  requestBytes: number,
  at: Date,
): CostOfCall {
  const { usage: stated, cacheWrite1h } = dialect.readUsage(result.facts?.rawUsage);
  const output = Math.max(stated?.output ?? 0, Math.ceil(result.characters / 4));
  const prompt = stated ?? { input: Math.ceil(requestBytes / 4), cacheRead: 0, cacheWrite: 0, reasoning: 0 };
  const estimated = costOf(config, null, at, { usage: { ...prompt, output }, cacheWrite1h, notes: [] });
  return {
    ...estimated,
    providerCostNano: null,
    notes: [`usage and cost estimated: the answer stopped after ${result.exchange.chunks} chunks`],
  };
}

/** What is written of an answer, and what was said of its length. */
interface Written {
  readonly characters: number;
  readonly maxOutput: number | null;
}

/** A model that thinks shows little of it, or nothing: then what a step writes at most in practice stands for the answer. */
function outputOf(config: ModelConfig, { characters, maxOutput }: Written): { tokens: number; note: string } {
  const seen = Math.ceil(characters / 4);
  const usual = Math.min(maxOutput ?? USUAL_MAX_OUTPUT, USUAL_MAX_OUTPUT);
  return knownModel(config.model_name ?? '')?.reasoning === true && usual > seen
    ? { tokens: usual, note: ', with room for hidden reasoning' }
    : { tokens: seen, note: '' };
}

/** A program that asks for no usage in its stream gets none. Its calls cost money all the same, so they are estimated. */
export function withEstimatedUsage(config: ModelConfig, record: CallRecord, written: Written): CallRecord {
  if (record.state !== 'ok' || record.rawUsage !== null || record.costNano !== null) return record;
  const output = outputOf(config, written);
  const counted = {
    input: Math.ceil(record.requestBytes / 4),
    cacheRead: 0,
    cacheWrite: 0,
    output: output.tokens,
    reasoning: 0,
  };
  const read = { usage: counted, cacheWrite1h: 0, notes: [] };
  const { usage, costNano, priceVersion } = costOf(config, null, new Date(record.startedAt), read);
  const odd = record.notes.filter((note) => note !== 'usage missing');
  const notes = [`usage and cost estimated: the provider stated none${output.note}`, ...odd];
  return { ...record, usage, costNano, priceVersion, notes };
}

/** What the attempt cost. An error status is not billed; an answer that got lost may have been. */
function costOfAttempt(
  endpoint: ModelEndpoint,
  result: TryAnswer,
  requestBytes: number,
  at: Date,
): CostOfCall {
  const { config, dialect } = endpoint;
  const { exchange, facts, failure } = result;
  const stated = result.partial !== true && facts?.rawUsage !== null && facts?.rawUsage !== undefined;
  if (!failure || stated) return costOf(config, facts?.rawUsage, at, dialect.readUsage(facts?.rawUsage));
  if (config.prices === 'free' || (exchange.status !== null && exchange.status >= 300)) return NO_COST;
  if (exchange.streaming && result.characters > 0) return partialCost(endpoint, result, requestBytes, at);
  const fault = exchange.failure?.fault;
  if (fault === 'connect' || fault === 'connect_timeout') return NO_COST;
  if (result.body === null)
    return { ...NO_COST, costNano: null, notes: ['answer lost: it may have been billed'] };
  // An error object in a 200 is an error like any other; a reply that we cannot use was paid for, at a price nobody said.
  return failure.verdict.kind === 'unavailable' || result.partial === true
    ? NO_COST
    : { ...NO_COST, costNano: null, notes: ['usage missing'] };
}

const OURS = new Set(['first_byte', 'idle', 'total', 'connect_timeout', 'aborted', 'too_large']);

/** Characters kept of a reply that cannot be read. */
const UNREADABLE = 1024 * 1024;

export function callRecord(
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
