/** Logs of Inspect: the header, samples and their summaries, as .eval files and .json logs have them. Unknown fields are left alone. */
import { z } from 'zod';
import { isRecord } from '../../base/isRecord.ts';
import { type RawBody, type Read, readForeign } from '../foreignJson.ts';

const count = z.number().nullish();
const usageSchema = z.looseObject({
  input_tokens: count,
  output_tokens: count,
  input_tokens_cache_read: count,
  input_tokens_cache_write: count,
  reasoning_tokens: count,
  total_cost: count,
});
export type InspectUsage = z.infer<typeof usageSchema>;

const id = z.union([z.string(), z.number()]).transform(String);
const scoresSchema = z
  .record(z.string(), z.looseObject({ value: z.unknown().optional(), metadata: z.unknown().optional() }))
  .nullish();
const limitSchema = z.looseObject({ type: z.string() });
const timesShape = { started_at: z.string().nullish(), completed_at: z.string().nullish() };

// Not loose: events repeat every request of the sample, and nothing here reads them.
const sampleSchema = z.object({
  ...{ id, epoch: z.number().int().min(1).max(10_000) },
  messages: z.array(z.record(z.string(), z.unknown())).default([]),
  scores: scoresSchema,
  metadata: z.unknown().optional(),
  model_usage: z.record(z.string(), usageSchema).default({}),
  error: z.looseObject({ message: z.string(), traceback: z.string().default('') }).nullish(),
  limit: limitSchema.nullish(),
  attachments: z.record(z.string(), z.string()).default({}),
  ...timesShape,
});
export type InspectSample = z.infer<typeof sampleSchema>;

/** What stands in summaries.json for each sample: without messages, and errors and limits as words. */
const summarySchema = z.object({
  ...{ id, epoch: z.number().int().min(1).max(10_000) },
  scores: scoresSchema,
  model_usage: z.record(z.string(), usageSchema).default({}),
  error: z.string().nullish(),
  limit: z.string().nullish(),
  ...timesShape,
});

const headerSchema = z.looseObject({
  status: z.enum(['started', 'success', 'cancelled', 'error']).default('started'),
  eval: z.looseObject({
    ...{
      task: z.string(),
      task_id: z.string().default(''),
      model: z.string(),
      created: z.string().default(''),
    },
    dataset: z.looseObject({ sample_ids: z.array(id).nullish(), samples: count }).default({}),
    config: z.looseObject({ epochs: z.number().int().min(1).max(10_000).nullish() }).default({}),
    packages: z.record(z.string(), z.string()).default({}),
    scorers: z.array(z.looseObject({ name: z.string() })).nullish(),
  }),
  results: z
    .looseObject({
      scores: z
        .array(
          z.looseObject({
            ...{ name: z.string(), reducer: z.string().nullish(), scored_samples: count },
            metrics: z
              .record(z.string(), z.looseObject({ name: z.string(), value: z.unknown().optional() }))
              .default({}),
          }),
        )
        .default([]),
    })
    .nullish(),
});
export type InspectHeader = z.infer<typeof headerSchema>;

const isLog = (value: unknown): boolean => isRecord(value) && isRecord(value.eval) && 'task' in value.eval;

/** header.json, or _journal/start.json of a log that was never finished: that one has neither status nor results. */
export const readInspectHeader = (text: RawBody): Read<InspectHeader> =>
  readForeign(text, headerSchema, isLog, 'it is no log of Inspect');

export const readInspectSample = (text: RawBody): Read<InspectSample> =>
  readForeign(
    text,
    sampleSchema,
    (value) => isRecord(value) && 'id' in value && 'epoch' in value,
    'it is no sample of a log of Inspect',
  );

export function readInspectSummaries(text: RawBody): Read<readonly InspectSample[]> {
  const read = readForeign(text, z.array(summarySchema), Array.isArray, 'it is no list of samples');
  if (!read.ok) return read;
  return {
    ok: true,
    value: read.value.map(({ error, limit, scores, ...rest }) => ({
      ...rest,
      // Its texts are cut and their lines joined: a patch of it would be another patch.
      scores:
        scores &&
        Object.fromEntries(
          Object.entries(scores).map(([name, { value }]) => [name, { value, metadata: null }]),
        ),
      ...{ messages: [], metadata: {}, attachments: {} },
      error: error ? { message: error, traceback: '' } : null,
      limit: limit ? { type: limit } : null,
    })),
  };
}

export interface InspectJsonLog {
  readonly header: InspectHeader;
  readonly samples: readonly InspectSample[];
}

/** A log as one file of JSON. */
export function readInspectJson(text: RawBody): Read<InspectJsonLog> {
  const whole = headerSchema.extend({ samples: z.array(sampleSchema).nullish() });
  const read = readForeign(text, whole, isLog, 'it is no log of Inspect');
  if (!read.ok) return read;
  const { samples, ...header } = read.value;
  return { ok: true, value: { header, samples: samples ?? [] } };
}

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
  const word = WORDS[value] ?? WORDS[value.toLowerCase()];
  if (word !== undefined) return word;
  return /^-?\d{1,15}(?:\.\d{1,15})?$/.test(value) ? Number(value) : null;
}

const REFERENCE = 'attachment://';

/** A text, or what it refers to: long texts stand apart from the messages. */
export const inspectText = (text: string, attachments: Readonly<Record<string, string>>): string =>
  text.startsWith(REFERENCE) ? (attachments[text.slice(REFERENCE.length)] ?? text) : text;
