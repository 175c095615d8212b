/** Calls as rows of the money ledger, and back. */
import type { Redactor } from '../../base/text/redact.ts';
import type { CallListener, CallRecord, ModelErrorCode, Usage } from '../../model/model.ts';
import { onDisk } from '../../store/onDisk.ts';
import type { Store } from '../../store/open.ts';
import {
  beginCall,
  type CallBegan,
  type CallEnded,
  type EndedCallRow,
  endCall,
  loseCall,
} from '../../store/records/modelCalls.ts';
import { written } from '../../store/writing.ts';
import { crashPoint } from '../control/crash.ts';

/** The rows of one call, one for each of its tries. */
export function ledgerRows(
  { store, redactor }: { readonly store: Store; readonly redactor: Redactor },
  call: Pick<CallBegan, 'attempt_id' | 'step' | 'label' | 'call'>,
): { readonly to: CallListener; readonly lost: (tried: number) => void } {
  const ids = new Map<number, number>();
  return {
    to: {
      began({ try: tried, startedAt, modelAsked, estimateNano }) {
        const id = beginCall(store, {
          ...call,
          try: tried,
          started_at: new Date(startedAt).toISOString(),
          model_asked: modelAsked,
          estimate_nano: estimateNano,
        });
        ids.set(tried, id);
        // A free call need not wait for the disk.
        const safe = estimateNano === 0 ? written(store) : onDisk(store);
        return safe.then(() => crashPoint('call_began'));
      },
      ended: (ended) => void endCall(store, ids.get(ended.try)!, endedRow(ended, redactor)),
    },
    lost: (tried) => void loseCall(store, ids.get(tried)!),
  };
}

export const callOf = (row: EndedCallRow): CallRecord => ({
  try: row.try,
  state: row.state,
  startedAt: Date.parse(row.started_at),
  latencyMs: row.latency_ms ?? 0,
  statusCode: row.status_code,
  errorCode: row.error_code as ModelErrorCode | null,
  errorMessage: row.error_message,
  modelAsked: row.model_asked,
  modelAnswered: row.model_answered,
  responseId: row.response_id,
  fingerprint: row.fingerprint,
  finishReason: row.finish_reason,
  rawUsage: row.usage === null ? null : (JSON.parse(row.usage) as unknown),
  usage: usageOf(row),
  priceVersion: row.price_version,
  costNano: row.cost_nano,
  providerCostNano: row.provider_cost_nano,
  requestBytes: row.request_bytes ?? 0,
  notes: JSON.parse(row.notes) as string[],
  ...(row.unreadable === null ? {} : { unreadable: row.unreadable }),
});

function usageOf(row: EndedCallRow): Usage | null {
  if (row.input_tokens === null && row.output_tokens === null) return null;
  return {
    input: row.input_tokens ?? 0,
    cacheRead: row.cache_read_tokens ?? 0,
    cacheWrite: row.cache_write_tokens ?? 0,
    output: row.output_tokens ?? 0,
    reasoning: row.reasoning_tokens ?? 0,
  };
}

/** Any text of a server may quote the key, so all are redacted. */
function endedRow(call: CallRecord, redactor: Redactor): CallEnded {
  const clean = (text: string | null): string | null => (text === null ? null : redactor.text(text));
  const { rawUsage, usage } = call;
  return {
    state: call.state,
    latency_ms: Math.round(call.latencyMs),
    status_code: call.statusCode,
    error_code: call.errorCode,
    error_message: clean(call.errorMessage),
    model_answered: clean(call.modelAnswered),
    response_id: clean(call.responseId),
    fingerprint: clean(call.fingerprint),
    finish_reason: clean(call.finishReason),
    usage: rawUsage === null || rawUsage === undefined ? null : redactor.json(JSON.stringify(rawUsage)),
    input_tokens: usage?.input ?? null,
    cache_read_tokens: usage?.cacheRead ?? null,
    cache_write_tokens: usage?.cacheWrite ?? null,
    output_tokens: usage?.output ?? null,
    reasoning_tokens: usage?.reasoning ?? null,
    price_version: call.priceVersion,
    cost_nano: call.costNano,
    provider_cost_nano: call.providerCostNano,
    request_bytes: call.requestBytes,
    notes: redactor.json(JSON.stringify(call.notes)),
    unreadable: clean(call.unreadable ?? null),
  };
}
