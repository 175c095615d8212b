/** A trajectory file of mini-swe-agent, formats 1 and 1.1, or of swebatch, which writes the same. Unknown keys stay. */

import { z } from 'zod';
import { isRecord } from '../../base/isRecord.ts';
import { cutNesting, stepsOrNull, timestampOrNull, tokensOrNull } from '../../base/plausible.ts';
import { instanceIdSchema } from '../../base/text/instanceId.ts';
import { plausibleNano } from '../../money.ts';
import { readerOf } from '../foreignFile.ts';
import type { RecordedCall } from '../foreignFormat.ts';

const record = z.record(z.string(), z.unknown());

/** Items of the Responses API have no role. */
const messageSchema = z.looseObject({
  role: z.string().optional(),
  content: z.unknown().optional(),
  timestamp: z.number().optional(),
  extra: record.optional(),
});
export type TrajectoryMessage = z.infer<typeof messageSchema>;

/** Nothing in it is nested deeper than the record can hold. */
const trajectorySchema = z
  .looseObject({
    info: z.looseObject({
      model_stats: z
        .looseObject({ instance_cost: z.number().nullish(), api_calls: z.number().nullish() })
        .nullish(),
      config: record.default({}),
      mini_version: z.string().nullish(),
      exit_status: z.string().nullish(),
      submission: z.string().nullish(),
      exception_str: z.string().nullish(),
    }),
    messages: z.array(messageSchema),
    // Versions before 1.4 did not name it.
    trajectory_format: z.enum(['mini-swe-agent-1', 'mini-swe-agent-1.1']).default('mini-swe-agent-1'),
    instance_id: instanceIdSchema.nullish(),
  })
  .transform(({ info, messages, trajectory_format, instance_id }) => ({
    /** Null where the file does not say it, as for a single run outside a batch. */
    instanceId: instance_id ?? null,
    format: trajectory_format,
    /** The version of mini-swe-agent. */
    version: info.mini_version ?? null,
    exitStatus: info.exit_status ?? null,
    submission: info.submission ?? null,
    exception: info.exception_str ?? null,
    costDollars: info.model_stats?.instance_cost ?? null,
    apiCalls: stepsOrNull(info.model_stats?.api_calls),
    /** agent, model and environment, as version 1 and 2 record them. */
    config: info.config,
    messages,
  }));
export type MiniTrajectory = z.infer<typeof trajectorySchema>;

export const readTrajectory = readerOf(
  trajectorySchema,
  (value) => isRecord(value) && 'info' in value && 'messages' in value,
  'it has no info and messages',
);

/** A trajectory of JSON that was read already; throws ZodError. */
export const parseTrajectory = (json: unknown): MiniTrajectory =>
  trajectorySchema.parse(cutNesting(json).value);

const details = z.looseObject({
  cached_tokens: z.number().nullable().optional(),
  cache_creation_tokens: z.number().nullable().optional(),
  reasoning_tokens: z.number().nullable().optional(),
});

/** The usage of chat completions, or of the Responses API, which has other words for the same. */
const usageSchema = z.looseObject({
  prompt_tokens: z.number().optional(),
  completion_tokens: z.number().optional(),
  input_tokens: z.number().optional(),
  output_tokens: z.number().optional(),
  cost: z.number().nullable().optional(),
  prompt_tokens_details: details.nullish(),
  completion_tokens_details: details.nullish(),
  input_tokens_details: details.nullish(),
  output_tokens_details: details.nullish(),
});

const responseSchema = z.looseObject({
  id: z.string().nullish(),
  model: z.string().nullish(),
  status: z.string().nullish(),
  choices: z.array(z.looseObject({ finish_reason: z.string().nullish() })).default([]),
  usage: z.unknown().optional(),
});

/** The response classes keep the response as the message itself. */
const responseOf = (message: TrajectoryMessage): unknown =>
  message.object === 'response' ? message : message.extra?.response;

/** Seconds since 1970: version 1 has it on the message, version 2 beside it. */
export const timestampOf = (message: TrajectoryMessage): number | null => {
  const value = message.timestamp ?? message.extra?.timestamp;
  return timestampOrNull(value);
};

function callOf(message: TrajectoryMessage, step: number): RecordedCall {
  const response = responseSchema.safeParse(responseOf(message)).data;
  const raw = response?.usage;
  const usage = usageSchema.safeParse(raw).data ?? null;
  const notes: string[] = [];
  const checked = (
    name: string,
    value: number | null | undefined,
    rule: (value: number) => number | null,
  ) => {
    if (value === null || value === undefined) return null;
    const known = rule(value);
    if (known === null) notes.push(`${name} ${value} cannot be: unknown`);
    return known;
  };
  const tokens = (name: string, value: number | null | undefined) => checked(name, value, tokensOrNull);
  const [into, out] = [
    usage?.prompt_tokens_details ?? usage?.input_tokens_details,
    usage?.completion_tokens_details ?? usage?.output_tokens_details,
  ];
  const prompt = tokens('prompt_tokens', usage?.prompt_tokens ?? usage?.input_tokens);
  const cached = tokens('cached_tokens', into?.cached_tokens ?? 0);
  // Only litellm's form of Anthropic's usage says it; its prompt counts what was written too.
  const written = tokens('cache_creation_tokens', into?.cache_creation_tokens);
  const own = usage?.cost ?? (typeof message.extra?.cost === 'number' ? message.extra.cost : null);
  return {
    step,
    model: response?.model || null,
    responseId: response?.id || null,
    finishReason: response?.choices[0]?.finish_reason || response?.status || null,
    rawUsage: raw ?? null,
    inputTokens: prompt === null || cached === null ? null : Math.max(0, prompt - cached - (written ?? 0)),
    cacheReadTokens: usage === null ? null : cached,
    ...(written !== null && { cacheWriteTokens: written }),
    outputTokens: tokens('completion_tokens', usage?.completion_tokens ?? usage?.output_tokens),
    reasoningTokens: tokens('reasoning_tokens', out?.reasoning_tokens),
    costNano: checked('cost', own, plausibleNano),
    at: timestampOf(message),
    ...(notes.length > 0 && { notes }),
  };
}

/** One call for each reply that was kept, also those inside format errors (version 2). */
export const recordedCalls = (messages: readonly TrajectoryMessage[]): RecordedCall[] =>
  messages.filter((m) => responseOf(m) !== undefined).map((m, i) => callOf(m, i + 1));
