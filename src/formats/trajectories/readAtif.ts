/** A trajectory in ATIF (1.0 to 1.8) as messages of a conversation. */
import { z } from 'zod';
import { isRecord } from '../../base/isRecord.ts';
import { timestampOrNull, tokensOrNull } from '../../base/plausible.ts';
import { plausibleNano } from '../../money.ts';
import { type Body, type Read, readForeign } from '../foreignJson.ts';
import type { RecordedCall } from './recordedCalls.ts';

const count = z.number().nullish();
const content = z.union([z.string(), z.array(z.looseObject({ text: z.string().nullish() }))]).nullish();
const stepSchema = z.looseObject({
  step_id: z.number().int(),
  timestamp: z.string().nullish(),
  source: z.enum(['system', 'user', 'agent']),
  message: content,
  reasoning_content: z.string().nullish(),
  tool_calls: z
    .array(z.looseObject({ tool_call_id: z.string(), function_name: z.string(), arguments: z.unknown() }))
    .nullish(),
  observation: z
    .looseObject({ results: z.array(z.looseObject({ source_call_id: z.string().nullish(), content })) })
    .nullish(),
  model_name: z.string().nullish(),
  metrics: z
    .looseObject({
      ...{ prompt_tokens: count, completion_tokens: count, cached_tokens: count, cost_usd: count },
      extra: z.looseObject({ cache_write_tokens: count, reasoning_tokens: count }).nullish(),
    })
    .nullish(),
});
const atifSchema = z.looseObject({
  schema_version: z.string(),
  agent: z
    .looseObject({ name: z.string(), version: z.string().nullish(), model_name: z.string().nullish() })
    .nullish(),
  steps: z.array(stepSchema),
});
type Step = z.infer<typeof stepSchema>;

export interface AtifConversation {
  readonly schemaVersion: string;
  /** Steps of the agent. */
  readonly steps: number;
  readonly messages: readonly Readonly<Record<string, unknown>>[];
  readonly agent: { readonly name: string; readonly version: string | null } | null;
  /** Of the agent; else that of its first step. */
  readonly model: string | null;
  readonly calls: readonly RecordedCall[];
  /** Seconds since 1970. */
  readonly startedAt: number | null;
  readonly endedAt: number | null;
}

const textOf = (given: z.infer<typeof content>): string =>
  typeof given === 'string' ? given : (given ?? []).map(({ text }) => text ?? '').join('');

const ROLES = { system: 'system', user: 'user', agent: 'assistant' } as const;

function messagesOf(step: Step): Readonly<Record<string, unknown>>[] {
  const calls = (step.tool_calls ?? []).map((call) => ({
    id: call.tool_call_id,
    type: 'function',
    function: { name: call.function_name, arguments: JSON.stringify(call.arguments ?? {}) },
  }));
  const said = {
    role: ROLES[step.source],
    content: textOf(step.message),
    ...(step.reasoning_content && { reasoning_content: step.reasoning_content }),
    ...(calls.length > 0 && { tool_calls: calls }),
  };
  const seen = (step.observation?.results ?? []).map(({ source_call_id, content: output }) => ({
    ...(source_call_id ? { role: 'tool', tool_call_id: source_call_id } : { role: 'user' }),
    content: textOf(output),
  }));
  return [said, ...seen];
}

const secondsOf = ({ timestamp }: Step): number[] => {
  const at = timestampOrNull(Date.parse(timestamp ?? '') / 1000);
  return at === null ? [] : [at];
};

/** Its prompt counts what came from the cache and what was written to it. */
function callOf(step: Step, number: number): RecordedCall[] {
  const { metrics } = step;
  if (!metrics) return [];
  const prompt = tokensOrNull(metrics.prompt_tokens);
  const cached = tokensOrNull(metrics.cached_tokens) ?? 0;
  const written = tokensOrNull(metrics.extra?.cache_write_tokens);
  return [
    {
      ...{ step: number, model: step.model_name ?? null, responseId: null, finishReason: null },
      rawUsage: metrics,
      inputTokens: prompt === null ? null : Math.max(0, prompt - cached - (written ?? 0)),
      cacheReadTokens: cached,
      ...(written !== null && { cacheWriteTokens: written }),
      outputTokens: tokensOrNull(metrics.completion_tokens),
      reasoningTokens: tokensOrNull(metrics.extra?.reasoning_tokens),
      costNano: plausibleNano(metrics.cost_usd),
      at: secondsOf(step)[0] ?? null,
    },
  ];
}

export function readAtif(text: Body): Read<AtifConversation> {
  const read = readForeign(
    text,
    atifSchema,
    (value) =>
      isRecord(value) && typeof value.schema_version === 'string' && value.schema_version.startsWith('ATIF'),
    'it states no schema_version of ATIF',
  );
  if (!read.ok) return read;
  const { schema_version, steps, agent } = read.value;
  const byAgent = steps.filter(({ source }) => source === 'agent');
  const times = steps.flatMap(secondsOf);
  return {
    ok: true,
    value: {
      schemaVersion: schema_version,
      steps: byAgent.length,
      messages: steps.flatMap(messagesOf),
      agent: agent ? { name: agent.name, version: agent.version ?? null } : null,
      model: agent?.model_name ?? byAgent.find(({ model_name }) => model_name)?.model_name ?? null,
      calls: byAgent.flatMap((step, at) => callOf(step, at + 1)),
      startedAt: times.length > 0 ? times.reduce((a, b) => Math.min(a, b)) : null,
      endedAt: times.length > 0 ? times.reduce((a, b) => Math.max(a, b)) : null,
    },
  };
}
