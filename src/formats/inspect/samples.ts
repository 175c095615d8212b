/** A sample of Inspect as a trial: how it ended, what it cost, what was said, and its verdict. */
import { isRecord, recordOf } from '../../base/isRecord.ts';
import { timestampOrNull, tokensOrNull } from '../../base/plausible.ts';
import { plausibleNano } from '../../money.ts';
import type { ExitReason } from '../../outcome.ts';
import {
  type ForeignInstance,
  type ForeignVerdict,
  foreignInstance,
  type RecordedCall,
} from '../foreignFormat.ts';
import {
  type InspectHeader,
  type InspectSample,
  type InspectUsage,
  inspectScore,
  inspectText,
} from './log.ts';

export interface InspectLog {
  readonly path: string;
  readonly header: InspectHeader;
  /** Without messages where the sample could not be read: then `unread` says why. */
  readonly samples: readonly (InspectSample & { readonly unread?: string })[];
  readonly warnings: readonly string[];
}

type Sample = InspectLog['samples'][number];
type Score = { readonly value: number | null; readonly patch: string | null };

/** What Inspect calls its limits. They are the agent's own ends: the sample was scored all the same. */
const LIMITS: Readonly<Record<string, ExitReason>> = {
  context: 'context_window_exceeded',
  cost: 'limit_cost',
  token: 'limit_tokens',
  time: 'limit_wall_time',
  working: 'limit_wall_time',
  message: 'limit_steps',
  turn: 'limit_steps',
  operator: 'cancelled',
};

/** Errors of providers by the names of their clients' exceptions; anything else broke the environment or the scorer. */
const ENDS = new Map<string, ExitReason>(
  Object.entries<ExitReason>({
    CancelledError: 'cancelled',
    KeyboardInterrupt: 'cancelled',
    AuthenticationError: 'auth_failed',
    BadRequestError: 'model_rejected',
    RateLimitError: 'model_unavailable',
    APIConnectionError: 'model_unavailable',
    APITimeoutError: 'model_unavailable',
    APIStatusError: 'model_unavailable',
    InternalServerError: 'model_unavailable',
    ServiceUnavailableError: 'model_unavailable',
  }),
);

/** A message begins with the exception as Python writes it: "RateLimitError('...')". */
function reasonOfError(message: string): ExitReason {
  const name = /^[\w.]{1,200}/.exec(message)?.[0] ?? '';
  return ENDS.get(name.split('.').at(-1)!) ?? 'env_died';
}

function reasonOf({ error, limit }: Sample): ExitReason {
  if (error) return reasonOfError(error.message);
  return limit ? (LIMITS[limit.type] ?? 'limit_steps') : 'submitted';
}

/** The score that SWE-bench's scorer gave; else the first of those that the header names. */
export function scoreNameOf({ eval: { scorers } }: InspectHeader, { scores }: Sample): string | null {
  const names = Object.keys(scores ?? {});
  const known = names.find((name) => /^swe_?bench/i.test(name));
  return (
    known ?? (scorers ?? []).map(({ name }) => name).find((name) => names.includes(name)) ?? names[0] ?? null
  );
}

/** What the scorer writes in the place of a patch that it could not read. */
const NO_PATCH = /^Agent patch (?:could not be decoded|was too large)/;

export function sampleScore(header: InspectHeader, sample: Sample): Score {
  const name = scoreNameOf(header, sample);
  const score = name === null ? undefined : sample.scores?.[name];
  const patch = recordOf(score?.metadata).model_patch;
  const text = typeof patch === 'string' ? inspectText(patch, sample.attachments) : null;
  return {
    value: inspectScore(score?.value),
    patch: text === null || NO_PATCH.test(text) || sample.unread !== undefined ? null : text,
  };
}

/** A sample with an error is lost, whatever score stands beside it. Inspect leaves it out of its metrics unless it was told to score errors. */
export function verdictOfSample({ header }: InspectLog, sample: Sample): ForeignVerdict {
  const { value } = sampleScore(header, sample);
  const lost = sample.error ? (sample.error.message.split('\n')[0] ?? '').slice(0, 300) : null;
  const graded = { report: null, grader: 'inspect' as const };
  if (lost !== null || value === null) return { verdict: 'error', reason: lost ?? 'no_score', ...graded };
  const partial = value > 0 && value < 1;
  return {
    ...{ verdict: value >= 1 ? 'resolved' : 'unresolved', reason: null, ...graded },
    ...(partial && { reward: value }),
  };
}

const secondsOf = (date: string | null | undefined): number | null => {
  const at = Date.parse(date ?? '');
  return Number.isNaN(at) ? null : timestampOrNull(at / 1000);
};

/** The usage of all calls of a model in one: what each call used stands in events that are not read. */
function callOf(model: string, usage: InspectUsage, step: number, at: number | null): RecordedCall {
  const written = tokensOrNull(usage.input_tokens_cache_write);
  return {
    ...{ step, model, responseId: null, finishReason: null, rawUsage: usage },
    inputTokens: tokensOrNull(usage.input_tokens),
    cacheReadTokens: tokensOrNull(usage.input_tokens_cache_read) ?? 0,
    ...(written !== null && { cacheWriteTokens: written }),
    outputTokens: tokensOrNull(usage.output_tokens),
    reasoningTokens: tokensOrNull(usage.reasoning_tokens),
    costNano: plausibleNano(usage.total_cost),
    ...{ at, notes: ['all calls of the sample in one'] },
  };
}

function textOf(content: unknown, attachments: Sample['attachments']): string {
  if (typeof content === 'string') return inspectText(content, attachments);
  const parts = Array.isArray(content) ? content.filter(isRecord) : [];
  return parts.map(({ text }) => (typeof text === 'string' ? inspectText(text, attachments) : '')).join('');
}

function reasoningOf(content: unknown, attachments: Sample['attachments']): string {
  const parts = Array.isArray(content) ? content.filter(isRecord) : [];
  return parts
    .map(({ type, reasoning }) =>
      type === 'reasoning' && typeof reasoning === 'string' ? inspectText(reasoning, attachments) : '',
    )
    .join('');
}

function messageOf(
  given: Readonly<Record<string, unknown>>,
  attachments: Sample['attachments'],
): Readonly<Record<string, unknown>> {
  const calls = (Array.isArray(given.tool_calls) ? given.tool_calls.filter(isRecord) : []).map((call) => ({
    id: String(call.id ?? ''),
    type: 'function',
    function: { name: String(call.function ?? ''), arguments: JSON.stringify(call.arguments ?? {}) },
  }));
  const reasoning = reasoningOf(given.content, attachments);
  return {
    role: typeof given.role === 'string' ? given.role : '',
    content: textOf(given.content, attachments),
    ...(reasoning !== '' && { reasoning_content: reasoning }),
    ...(calls.length > 0 && { tool_calls: calls }),
    ...(typeof given.tool_call_id === 'string' && { tool_call_id: given.tool_call_id }),
  };
}

export function instanceOfSample({ header, path }: InspectLog, sample: Sample): ForeignInstance {
  const startedAt = secondsOf(sample.started_at);
  const usage = Object.entries(sample.model_usage);
  const calls = usage.map(([model, used], i) => callOf(model, used, i + 1, startedAt));
  const costs = calls.map(({ costNano }) => costNano);
  const messages = sample.messages.map((message) => messageOf(message, sample.attachments));
  const { patch } = sampleScore(header, sample);
  return foreignInstance({
    instanceId: sample.id,
    model: header.eval.model,
    format: 'inspect',
    version: header.eval.packages.inspect_ai ?? null,
    exitStatus: sample.error ? 'error' : (sample.limit?.type ?? null),
    exitReason: reasonOf(sample),
    errorMessage: sample.error?.message ?? null,
    submission: patch,
    modelPatch: patch,
    steps: messages.filter(({ role }) => role === 'assistant').length,
    costNano: costs.some((cost) => cost === null)
      ? null
      : costs.reduce<number>((sum, cost) => sum + cost!, 0),
    messages,
    calls,
    startedAt,
    endedAt: secondsOf(sample.completed_at),
    file: path,
    notes: sample.unread === undefined ? [] : [`its sample was not read: ${sample.unread}`],
  });
}
