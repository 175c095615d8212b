/**
 * Reads JSON columns without ever throwing: a viewer must open whatever an older or foreign writer left in the database (observed:
 * tests/viewer/server.test.ts).
 */

import { z } from 'zod';
import { isRecord, recordOf } from '../../base/isRecord.ts';

export function lenientJson(text: string | null | undefined): unknown {
  if (text === null || text === undefined || text === '') return undefined;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

const flagSchema = z.object({
  rule: z.string().catch('flag'),
  step: z.number().nullable().catch(null),
  evidence: z.unknown(),
});

const textOf = (value: unknown): string =>
  typeof value === 'string' ? value : value === undefined ? '' : JSON.stringify(value);

export function readFlags(text: string | null): { rule: string; step: number | null; evidence: string }[] {
  const list = lenientJson(text);
  if (!Array.isArray(list)) return [];
  return list.map((item) => {
    const flag = flagSchema.safeParse(item);
    if (!flag.success) return { rule: String(item), step: null, evidence: '' };
    return { ...flag.data, evidence: textOf(flag.data.evidence) };
  });
}

/** Numbers by name, as pairs. */
export const readNumbers = (text: string | null): [string, number][] =>
  Object.entries(recordOf(lenientJson(text))).filter(
    (entry): entry is [string, number] => typeof entry[1] === 'number',
  );

export function readTexts(text: string | null): string[] {
  const list = lenientJson(text);
  return Array.isArray(list) ? list.map(textOf) : [];
}

const evidenceSchema = z.union([
  z.object({
    exit_code: z.number().nullable(),
    output_end: z.string().catch(''),
    oom_killed: z.literal(true).optional().catch(undefined),
  }),
  z.object({ killed: z.literal(true) }),
]);

/** How a program ended, as seen from outside of it; without an exit code it was killed. Null for every other evidence. */
export function readEvidence(text: string | null) {
  const read = evidenceSchema.safeParse(lenientJson(text));
  if (!read.success) return null;
  const { data } = read;
  return 'killed' in data
    ? { exitCode: null, outputEnd: '', oomKilled: false }
    : { exitCode: data.exit_code, outputEnd: data.output_end, oomKilled: data.oom_killed === true };
}

export const readBytes = (bytes: Buffer | null): string | null =>
  bytes === null ? null : bytes.toString('utf8');

const toolCallSchema = z.object({
  function: z.object({ name: z.string().catch(''), arguments: z.unknown() }),
});

/** Shown where a provider sends thought that only it can read. */
const HIDDEN_THOUGHT = '(thought that only the provider can read)';

const listAt = (fields: ReadonlyMap<string, unknown>, name: string): unknown[] => {
  const value = fields.get(name);
  return Array.isArray(value) ? value : [];
};
const ofType = (items: readonly unknown[], type: string): Readonly<Record<string, unknown>>[] =>
  items.map(recordOf).filter((item) => item.type === type);

/** Items of the Responses API: those that go back, or those of an imported message, which is the response itself. */
function responseItems(fields: ReadonlyMap<string, unknown>): unknown[] {
  const native = recordOf(fields.get('native'));
  if (native.dialect === 'responses' && Array.isArray(native.content)) return native.content;
  return fields.get('object') === 'response' ? listAt(fields, 'output') : [];
}

function reasoningOf(fields: ReadonlyMap<string, unknown>): string | null {
  const said = fields.get('reasoning_content') ?? fields.get('reasoning');
  if (typeof said === 'string' && said !== '') return said;
  const thoughts = ofType(responseItems(fields), 'reasoning');
  const summaries = thoughts.flatMap(({ summary }) => (Array.isArray(summary) ? summary : []));
  const summary = summaries.map((part) => String(recordOf(part).text ?? '')).join('\n');
  if (summary !== '') return summary;
  const hidden = thoughts.length + ofType(listAt(fields, 'thinking_blocks'), 'redacted_thinking').length;
  return hidden > 0 ? HIDDEN_THOUGHT : null;
}

/** The parts of a provider's message that are read beside its text. */
export function readMessage(data: string) {
  const fields = new Map(Object.entries(recordOf(lenientJson(data))));
  const items = fields.has('tool_calls') ? [] : ofType(responseItems(fields), 'function_call');
  const { task_step: taskStep } = recordOf(fields.get('extra'));
  return {
    /** Of a task of several steps. */
    ...(typeof taskStep === 'string' && { taskStep }),
    reasoning: reasoningOf(fields),
    /** Commands asked for through tool calls, as far as they can be read. */
    toolCalls: [
      ...listAt(fields, 'tool_calls').map((call) => {
        const parsed = toolCallSchema.safeParse(call);
        if (!parsed.success) return { name: '?', text: JSON.stringify(call) };
        return { name: parsed.data.function.name, text: commandOf(parsed.data.function.arguments) };
      }),
      ...items.map((item) => ({ name: String(item.name ?? '?'), text: commandOf(item.arguments) })),
    ],
  };
}

function commandOf(args: unknown): string {
  const value = typeof args === 'string' ? (lenientJson(args) ?? args) : args;
  if (typeof value === 'string') return value;
  if (isRecord(value) && Object.hasOwn(value, 'command') && typeof value.command === 'string')
    return value.command;
  return JSON.stringify(value) ?? '';
}
