/** The content of a recording file, checked when it is read, because it may come from another machine. */
import { z } from 'zod';
import { durationOrNull, tokenCount } from '../../base/plausible.ts';
import { MODEL_ERROR_CODES } from '../../model/model.ts';
import { nanoOrNull } from '../../money.ts';

export const RECORDING_FORMAT = 'swebatch-recording-1';

const nullable = <T extends z.ZodType>(schema: T) => schema.nullish().transform((value) => value ?? null);
const text = nullable(z.string());
const nano = nullable(z.number()).transform((value) => (value === null ? null : nanoOrNull(value)));
// Absurd counts become unknown, as in the reply of a server.
const usage = nullable(
  z.object({
    input: tokenCount,
    cacheRead: tokenCount,
    cacheWrite: tokenCount,
    output: tokenCount,
    reasoning: tokenCount,
  }),
).catch(null);
const errorCode = z.enum(MODEL_ERROR_CODES);
const message = z.looseObject({
  role: z.enum(['system', 'user', 'assistant', 'tool', 'exit']),
  content: z.union([z.string(), z.null(), z.array(z.unknown())]).default(null),
});

const call = z.object({
  try: z.number().int(),
  state: z.enum(['ok', 'failed', 'aborted']),
  startedAt: z.number(),
  latencyMs: z.number().transform((ms) => durationOrNull(ms) ?? 0),
  statusCode: nullable(z.number().int()),
  errorCode: nullable(errorCode),
  errorMessage: text,
  modelAsked: z.string(),
  modelAnswered: text,
  responseId: text,
  fingerprint: text,
  finishReason: text,
  rawUsage: z.unknown(),
  usage,
  priceVersion: text,
  costNano: nano,
  providerCostNano: nano,
  requestBytes: z.number(),
  notes: z.array(z.string()),
});

const told = {
  failedTries: z.array(call).default([]),
  observed: z.array(message).default([]),
  begins: z.boolean().optional(),
};

const replySchema = z.union([
  z.object({
    ...told,
    failure: z.looseObject({
      success: z.literal(false),
      error: errorCode,
      message: z.string(),
      metadata: z.looseObject({ kind: z.string().optional() }).optional(),
    }),
  }),
  z.object({
    ...told,
    message,
    finishReason: text,
    modelId: text,
    responseId: text,
    rawUsage: z.unknown(),
    usage,
    costNano: nano,
    providerCostNano: nano,
    priceVersion: text,
  }),
]);

export const repliesSchema = z.array(replySchema);

export const indexSchema = z.object({
  format: z.literal(RECORDING_FORMAT),
  program: z.string(),
  run: z.string(),
  config_hash: z.string(),
  dataset_hash: z.string(),
  arms: z.array(z.object({ name: z.string(), model: z.string() })).min(1),
  /** Texts that occur more than once. */
  texts: z.array(z.string()),
  trials: z.array(
    z.object({
      arm: z.string(),
      instance_id: z.string(),
      epoch: z.number().int(),
      attempt: z.number().int().min(0).default(0),
      at: z.number().int().min(0),
      bytes: z.number().int().min(1),
    }),
  ),
});
export type RecordingIndex = z.infer<typeof indexSchema>;
