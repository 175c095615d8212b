/** A model whose answers are known before: scripted and replayed models share the way an answer becomes a reply and a ledger row. */

import { cutNesting } from '../../base/plausible.ts';
import { readCompletion } from '../dialects/completion.ts';
import type { ReadReply } from '../dialects/dialect.ts';
import type { Clock } from '../limits/clock.ts';
import {
  abortError,
  type CallRecord,
  type ModelReply,
  type ModelResponse,
  modelFailure,
  modelSuccess,
  type QueryOptions,
  type Usage,
} from '../model.ts';

export interface CannedAnswer {
  /** The answer in the form of a chat completions body. */
  readonly body: unknown;
  readonly usage: Usage | null;
  readonly costNano: number | null;
  readonly providerCostNano?: number | null;
  readonly priceVersion?: string | null;
  readonly notes?: readonly string[];
  /** Tries that failed before it. */
  readonly try?: number;
}

const asReply = (read: ReadReply, answer: CannedAnswer): ModelReply => ({
  message: read.message,
  content: read.content,
  toolCalls: read.toolCalls,
  finishReason: read.finishReason,
  modelId: read.modelId,
  usage: answer.usage,
  costNano: answer.costNano,
  raw: answer.body,
});

/** One call, told to the listener as a try over HTTP would be. */
export async function answerFrom(
  answer: CannedAnswer,
  name: string,
  latencyMs: number,
  options: QueryOptions,
  clock: Clock,
): Promise<ModelResponse<ModelReply>> {
  const { listener, signal } = options;
  if (signal?.aborted) throw abortError(signal);
  const startedAt = clock.wall();
  const start = clock.now();
  void listener?.began({ try: answer.try ?? 0, modelAsked: name, startedAt, estimateNano: 0 });
  listener?.phase?.('model');
  const { value: body, notes: odd } = cutNesting(answer.body);
  const read = readCompletion(body);
  const facts = read.kind === 'reply' ? read.reply : read.facts;
  const record: CallRecord = {
    try: answer.try ?? 0,
    state: 'ok',
    startedAt,
    latencyMs: 0,
    statusCode: null,
    errorCode: null,
    errorMessage: null,
    modelAsked: name,
    modelAnswered: facts.modelId,
    responseId: facts.responseId,
    fingerprint: facts.fingerprint,
    finishReason: facts.finishReason,
    rawUsage: facts.rawUsage,
    usage: answer.usage,
    priceVersion: answer.priceVersion ?? null,
    costNano: answer.costNano,
    providerCostNano: answer.providerCostNano ?? null,
    requestBytes: 0,
    notes: [...(answer.notes ?? []), ...odd],
  };
  if (latencyMs > 0) {
    try {
      await clock.sleep(latencyMs, signal);
    } catch {
      listener?.ended({ ...record, state: 'aborted', latencyMs: clock.now() - start, costNano: 0 });
      throw abortError(signal!);
    }
  }
  const latency = clock.now() - start;
  if (read.kind === 'reply') {
    listener?.ended({ ...record, latencyMs: latency });
    return modelSuccess(asReply(read.reply, answer));
  }
  const message = read.kind === 'error_object' ? read.error.message : read.message;
  listener?.ended({
    ...record,
    state: 'failed',
    latencyMs: latency,
    errorCode: 'INVALID_RESPONSE',
    errorMessage: message,
  });
  const kind = read.kind === 'empty' || read.kind === 'refusal' ? read.kind : 'rejected';
  return modelFailure('INVALID_RESPONSE', message, { model: name, kind });
}
