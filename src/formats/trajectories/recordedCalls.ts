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
  readonly outputTokens: number | null;
  readonly reasoningTokens: number | null;
  /** The reply's own cost, null where it states none. */
  readonly costNano: number | null;
  /** Seconds since 1970; null in format 1 before 1.16. */
  readonly at: number | null;
  /** What it states and cannot be: unknown from here on. */
  readonly notes?: readonly string[];
}

const usageSchema = z.looseObject({
  prompt_tokens: z.number().optional(),
  completion_tokens: z.number().optional(),
  cost: z.number().nullable().optional(),
  prompt_tokens_details: z.looseObject({ cached_tokens: z.number().nullable().optional() }).nullish(),
  completion_tokens_details: z.looseObject({ reasoning_tokens: z.number().nullable().optional() }).nullish(),
});

const responseSchema = z.looseObject({
  id: z.string().nullish(),
  model: z.string().nullish(),
  choices: z.array(z.looseObject({ finish_reason: z.string().nullish() })).default([]),
  usage: z.unknown().optional(),
});

/** Seconds since 1970: version 1 has it on the message, version 2 beside it. */
export const timestampOf = (message: TrajectoryMessage): number | null => {
  const value = message.timestamp ?? message.extra?.timestamp;
  return timestampOrNull(value);
};

function callOf(message: TrajectoryMessage, step: number): RecordedCall {
  const response = responseSchema.safeParse(message.extra?.response).data;
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
  const prompt = tokens('prompt_tokens', usage?.prompt_tokens);
  const cached = tokens('cached_tokens', usage?.prompt_tokens_details?.cached_tokens ?? 0);
  const own = usage?.cost ?? (typeof message.extra?.cost === 'number' ? message.extra.cost : null);
  return {
    step,
    model: response?.model || null,
    responseId: response?.id || null,
    finishReason: response?.choices[0]?.finish_reason || null,
    rawUsage: raw ?? null,
    inputTokens: prompt === null || cached === null ? null : Math.max(0, prompt - cached),
    cacheReadTokens: usage === null ? null : cached,
    outputTokens: tokens('completion_tokens', usage?.completion_tokens),
    reasoningTokens: tokens('reasoning_tokens', usage?.completion_tokens_details?.reasoning_tokens),
    costNano: checked('cost', own, plausibleNano),
    at: timestampOf(message),
    ...(notes.length > 0 && { notes }),
  };
}

/** One call for each reply that was kept, also those inside format errors (version 2). */
export const recordedCalls = (messages: readonly TrajectoryMessage[]): RecordedCall[] =>
  messages.filter((m) => m.extra?.response !== undefined).map((m, i) => callOf(m, i + 1));
