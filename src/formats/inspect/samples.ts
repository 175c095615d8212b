/** A sample of Inspect as a trial: how it ended, what it cost, what was said, and its verdict. */

import { z } from 'zod';
import { isRecord, ownEntry, recordOf } from '../../base/isRecord.ts';
import { keyed } from '../../base/keyed.ts';
import { tokensOrNull } from '../../base/plausible.ts';
import { stringOf } from '../../base/text/contentText.ts';
import { plausibleNano } from '../../money.ts';
import type { ExitReason } from '../../outcome.ts';
import { readerOf } from '../foreignFile.ts';
import {
  type ForeignInstance,
  type ForeignVerdict,
  foreignInstance,
  type RecordedCall,
  reasonOfException,
  recordedCall,
  secondsOf,
} from '../foreignFormat.ts';

export interface InspectLog {
  readonly path: string;
  readonly header: InspectHeader;
  /** The samples, without messages where one could not be read: then `unread` says why. */
  readonly samples: readonly (InspectSample & { readonly unread?: string })[];
  readonly warnings: readonly string[];
}

type Sample = InspectLog['samples'][number];
type Score = { readonly value: number | null; readonly patch: string | null };

/** Inspect's limits are the agent's own ends: the sample was scored all the same. */
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

/** A message begins with the exception as Python writes it: "RateLimitError('...')". Any other than a provider's broke environment or scorer. */
function reasonOfError(message: string): ExitReason {
  const name = /^[\w.]{1,200}/.exec(message)?.[0] ?? '';
  return reasonOfException(name.split('.').at(-1)!) ?? 'env_died';
}

function reasonOf({ error, limit }: Sample): ExitReason {
  if (error) return reasonOfError(error.message);
  return limit ? (ownEntry(LIMITS, limit.type) ?? 'limit_steps') : 'submitted';
}

/** The score that SWE-bench's scorer gave; else the first of those that the header names. */
export function scoreNameOf({ eval: { scorers } }: InspectHeader, { scores }: Sample): string | null {
  const names = Object.keys(scores ?? {});
  const known = names.find((name) => /^swe_?bench/i.test(name));
  return (
    known ?? (scorers ?? []).map(({ name }) => name).find((name) => names.includes(name)) ?? names[0] ?? null
  );
}

/** The scorer's words in the place of a patch that it could not read. */
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
    verdict: value >= 1 ? 'resolved' : 'unresolved',
    reason: null,
    ...graded,
    ...(partial && { reward: value }),
  };
}

/** The usage of all calls of a model in one: what each call used stands in events that are not read. */
function callOf(model: string, usage: InspectUsage, step: number, at: number | null): RecordedCall {
  const written = tokensOrNull(usage.input_tokens_cache_write);
  return recordedCall({
    step,
    model,
    rawUsage: usage,
    inputTokens: tokensOrNull(usage.input_tokens),
    cacheReadTokens: tokensOrNull(usage.input_tokens_cache_read) ?? 0,
    ...(written !== null && { cacheWriteTokens: written }),
    outputTokens: tokensOrNull(usage.output_tokens),
    reasoningTokens: tokensOrNull(usage.reasoning_tokens),
    costNano: plausibleNano(usage.total_cost),
    at,
    notes: ['all calls of the sample in one'],
  });
}

type Attachments = Sample['attachments'];

/** The parts of a content: text in `text`, reasoning in `reasoning`. */
const partsOf = (content: unknown): readonly Readonly<Record<string, unknown>>[] =>
  typeof content === 'string' ? [{ text: content }] : Array.isArray(content) ? content.map(recordOf) : [];

const joined = (texts: readonly unknown[], attachments: Attachments): string =>
  texts.map((text) => inspectText(stringOf(text), attachments)).join('');

function messageOf(
  { role, content, tool_calls, tool_call_id }: Readonly<Record<string, unknown>>,
  attachments: Attachments,
): Readonly<Record<string, unknown>> {
  const calls = (Array.isArray(tool_calls) ? tool_calls.filter(isRecord) : []).map((call) => ({
    id: String(call.id ?? ''),
    type: 'function',
    function: { name: String(call.function ?? ''), arguments: JSON.stringify(call.arguments ?? {}) },
  }));
  const parts = partsOf(content);
  const thoughts = parts.filter(({ type }) => type === 'reasoning').map(({ reasoning }) => reasoning);
  const reasoning = joined(thoughts, attachments);
  return {
    role: stringOf(role),
    content: joined(
      parts.map(({ text }) => text),
      attachments,
    ),
    ...(reasoning !== '' && { reasoning_content: reasoning }),
    ...(calls.length > 0 && { tool_calls: calls }),
    ...(typeof tool_call_id === 'string' && { tool_call_id }),
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

const count = z.number().nullish();
const usageSchema = z.looseObject({
  input_tokens: count,
  output_tokens: count,
  input_tokens_cache_read: count,
  input_tokens_cache_write: count,
  reasoning_tokens: count,
  total_cost: count,
});
type InspectUsage = z.infer<typeof usageSchema>;

const id = z.union([z.string(), z.number()]).transform(String);
const scoresSchema = keyed(
  z.looseObject({ value: z.unknown().optional(), metadata: z.unknown().optional() }),
).nullish();
const limitSchema = z.looseObject({ type: z.string() });
const timesShape = { started_at: z.string().nullish(), completed_at: z.string().nullish() };

// Not loose: events repeat every request of the sample, and nothing here reads them.
const sampleSchema = z.object({
  id,
  epoch: z.number().int().min(1).max(10_000),
  messages: z.array(z.record(z.string(), z.unknown())).default([]),
  scores: scoresSchema,
  metadata: z.unknown().optional(),
  model_usage: keyed(usageSchema).default({}),
  error: z.looseObject({ message: z.string(), traceback: z.string().default('') }).nullish(),
  limit: limitSchema.nullish(),
  attachments: keyed(z.string()).default({}),
  ...timesShape,
});
export type InspectSample = z.infer<typeof sampleSchema>;

/**
 * A sample in summaries.json: without messages, errors and limits as words, texts cut and their lines joined, so that its patch would be another
 * patch.
 */
const summarySchema = z
  .object({
    id,
    epoch: z.number().int().min(1).max(10_000),
    scores: keyed(
      z.looseObject({ value: z.unknown().optional() }).transform(({ value }) => ({ value })),
    ).nullish(),
    model_usage: keyed(usageSchema).default({}),
    error: z.string().nullish(),
    limit: z.string().nullish(),
    ...timesShape,
  })
  .transform(
    ({ error, limit, ...rest }): InspectSample => ({
      ...{ ...rest, messages: [], metadata: {}, attachments: {} },
      error: error ? { message: error, traceback: '' } : null,
      limit: limit ? { type: limit } : null,
    }),
  );

const headerSchema = z.looseObject({
  status: z.enum(['started', 'success', 'cancelled', 'error']).default('started'),
  eval: z.looseObject({
    task: z.string(),
    task_id: z.string().default(''),
    model: z.string(),
    created: z.string().default(''),
    dataset: z.looseObject({ sample_ids: z.array(id).nullish(), samples: count }).default({}),
    config: z.looseObject({ epochs: z.number().int().min(1).max(1000).nullish() }).default({}),
    packages: z.record(z.string(), z.string()).default({}),
    scorers: z.array(z.looseObject({ name: z.string() })).nullish(),
  }),
  results: z
    .looseObject({
      scores: z
        .array(
          z.looseObject({
            name: z.string(),
            reducer: z.string().nullish(),
            scored_samples: count,
            metrics: z
              .record(z.string(), z.looseObject({ name: z.string(), value: z.unknown().optional() }))
              .default({}),
          }),
        )
        .default([]),
    })
    .nullish(),
});
type InspectHeader = z.infer<typeof headerSchema>;

const isLog = (value: unknown): boolean => isRecord(value) && isRecord(value.eval) && 'task' in value.eval;

/** header.json, or _journal/start.json of a log that was never finished: that one has neither status nor results. */
export const readInspectHeader = readerOf(headerSchema, isLog, 'it is no log of Inspect');

export const readInspectSample = readerOf(
  sampleSchema,
  (value) => isRecord(value) && 'id' in value && 'epoch' in value,
  'it is no sample of a log of Inspect',
);

export const readInspectSummaries = readerOf(
  z.array(summarySchema),
  Array.isArray,
  'it is no list of samples',
);

/** A log as one file of JSON. */
export const readInspectJson = readerOf(
  headerSchema
    .extend({ samples: z.array(sampleSchema).nullish() })
    .transform(({ samples, ...header }) => ({ header, samples: samples ?? [] })),
  isLog,
  'it is no log of Inspect',
);

const WORDS: Readonly<Record<string, number>> = {
  C: 1,
  P: 0.5,
  I: 0,
  N: 0,
  yes: 1,
  true: 1,
  no: 0,
  false: 0,
};

/** A score as a number, by Inspect's own rule for its words; null for one that is no number. */
export function inspectScore(value: unknown): number | null {
  if (typeof value === 'number') return Number.isFinite(value) ? value : null;
  if (typeof value === 'boolean') return value ? 1 : 0;
  if (typeof value !== 'string') return null;
  const word = ownEntry(WORDS, value) ?? ownEntry(WORDS, value.toLowerCase());
  if (word !== undefined) return word;
  return /^-?\d{1,15}(?:\.\d{1,15})?$/.test(value) ? Number(value) : null;
}

const REFERENCE = 'attachment://';

/** A text, or what it refers to: long texts stand apart from the messages. */
export const inspectText = (text: string, attachments: Readonly<Record<string, string>>): string =>
  text.startsWith(REFERENCE) ? (attachments[text.slice(REFERENCE.length)] ?? text) : text;
