/** A trajectory in ATIF (1.0 to 1.8) as messages of a conversation. */
import { z } from 'zod';
import { isRecord } from '../../base/isRecord.ts';
import { type Body, type Read, readForeign } from '../foreignJson.ts';

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
});
const atifSchema = z.looseObject({ schema_version: z.string(), steps: z.array(stepSchema) });
type Step = z.infer<typeof stepSchema>;

export interface AtifConversation {
  readonly schemaVersion: string;
  /** Steps of the agent. */
  readonly steps: number;
  readonly messages: readonly Readonly<Record<string, unknown>>[];
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

export function readAtif(text: Body): Read<AtifConversation> {
  const read = readForeign(
    text,
    atifSchema,
    (value) =>
      isRecord(value) && typeof value.schema_version === 'string' && value.schema_version.startsWith('ATIF'),
    'it states no schema_version of ATIF',
  );
  if (!read.ok) return read;
  const { schema_version, steps } = read.value;
  return {
    ok: true,
    value: {
      schemaVersion: schema_version,
      steps: steps.filter(({ source }) => source === 'agent').length,
      messages: steps.flatMap(messagesOf),
    },
  };
}
