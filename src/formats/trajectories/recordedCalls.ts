/** The replies of the provider that a trajectory keeps (extra.response), as calls. */
import { z } from 'zod';
import { timestampOrNull, tokensOrNull } from '../../base/plausible.ts';
import { plausibleNano } from '../../money.ts';
import type { TrajectoryMessage } from './miniTrajectory.ts';

export interface RecordedCall {
  readonly step: number;
  readonly model: string | null;
  readonly responseId: string | null;
  readonly finishReason: string | null;
  /** As the provider sent it. */
  readonly rawUsage: unknown;
  readonly inputTokens: number | null;
  readonly cacheReadTokens: number | null;
  /** Where the usage says it. */
  readonly cacheWriteTokens?: number;
  readonly outputTokens: number | null;
  readonly reasoningTokens: number | null;
  /** The reply's own cost, null where it states none. */
  readonly costNano: number | null;
  /** Seconds since 1970; null in format 1 before 1.16. */
  readonly at: number | null;
  /** What it states and cannot be: unknown from here on. */
  readonly notes?: readonly string[];
}

const details = z.looseObject({
  cached_tokens: z.number().nullable().optional(),
  cache_creation_tokens: z.number().nullable().optional(),
  reasoning_tokens: z.number().nullable().optional(),
});

/** Of chat completions, or of the Responses API, which has other words for the same. */
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
