/** Reads a reply of the Responses API. */

import { z } from 'zod';
import type { Message, ToolCall } from '../../model.ts';
import { type AnswerFacts, type Assembly, NO_FACTS, type ReadResult } from '../dialect.ts';
import { providerError } from '../providerError.ts';
import { asObject, asText, firstIssue } from '../shapes.ts';

const partSchema = z.looseObject({
  type: z.string(),
  text: z.string().optional(),
  refusal: z.string().optional(),
});
const messageSchema = z.looseObject({ content: z.array(partSchema) });
const callSchema = z.looseObject({ call_id: z.string(), name: z.string(), arguments: z.string() });
const reasoningSchema = z.looseObject({
  summary: z.array(z.looseObject({ text: z.string().optional() })).nullish(),
});
const responseSchema = z.looseObject({
  status: z.string().nullish(),
  output: z.array(z.looseObject({ type: z.string() })),
  incomplete_details: z.looseObject({ reason: z.string().nullish() }).nullish(),
});
type Response = z.output<typeof responseSchema>;

const CUT: Readonly<Record<string, string>> = {
  max_output_tokens: 'length',
  content_filter: 'content_filter',
};

/** In the words of chat completions. */
function finishOf(body: Record<string, unknown>): string | null {
  const status = asText(body.status);
  if (status === 'completed') {
    const items = Array.isArray(body.output) ? (body.output as unknown[]) : [];
    return items.some((item) => asObject(item)?.type === 'function_call') ? 'tool_calls' : 'stop';
  }
  if (status !== 'incomplete') return status;
  const reason = asText(asObject(body.incomplete_details)?.reason) ?? 'incomplete';
  return CUT[reason] ?? reason;
}

export const responsesFacts = (body: Record<string, unknown>): AnswerFacts => ({
  modelId: asText(body.model),
  responseId: asText(body.id),
  fingerprint: null,
  finishReason: finishOf(body),
  rawUsage: body.usage ?? null,
});

interface Read {
  readonly texts: string[];
  readonly refusals: string[];
  readonly thoughts: string[];
  readonly calls: ToolCall[];
}

/** Returns what is wrong with an item of a kind that matters here. */
function readItem(item: Response['output'][number], into: Read): string | null {
  if (item.type === 'message') {
    const parsed = messageSchema.safeParse(item);
    if (!parsed.success) return firstIssue(parsed.error);
    for (const part of parsed.data.content) {
      if (part.type === 'output_text') into.texts.push(part.text ?? '');
      if (part.type === 'refusal') into.refusals.push(part.refusal ?? '');
    }
  } else if (item.type === 'function_call') {
    const parsed = callSchema.safeParse(item);
    if (!parsed.success) return firstIssue(parsed.error);
    const { call_id: id, name, arguments: written } = parsed.data;
    into.calls.push({ id, type: 'function', function: { name, arguments: written } });
  } else if (item.type === 'reasoning') {
    const parsed = reasoningSchema.safeParse(item);
    if (parsed.success) into.thoughts.push(...(parsed.data.summary ?? []).map((part) => part.text ?? ''));
  }
  return null;
}

/** A reply that failed, was cancelled or still runs does not count as an answer: the provider's error says which. */
const UNFINISHED = new Set(['failed', 'cancelled', 'in_progress', 'queued']);

export function readResponse(body: unknown): ReadResult {
  const object = asObject(body);
  if (!object) return { kind: 'malformed', facts: NO_FACTS, message: 'the reply is not a JSON object' };
  const facts = responsesFacts(object);
  const status = asText(object.status);
  const failed =
    object.error ?? (UNFINISHED.has(status ?? '') ? { message: `the response is ${status}` } : null);
  if (failed !== null && failed !== undefined) {
    const error = providerError({ error: failed });
    if (error) return { kind: 'error_object', facts, error };
  }
  const parsed = responseSchema.safeParse(object);
  if (!parsed.success) return { kind: 'malformed', facts, message: firstIssue(parsed.error) };
  const read: Read = { texts: [], refusals: [], thoughts: [], calls: [] };
  for (const [index, item] of parsed.data.output.entries()) {
    const problem = readItem(item, read);
    if (problem !== null) return { kind: 'malformed', facts, message: `output.${index}.${problem}` };
  }
  if (read.refusals.length > 0) return { kind: 'refusal', facts, message: read.refusals.join('\n') };
  if (facts.finishReason === 'content_filter')
    return { kind: 'refusal', facts, message: 'the reply was stopped by a content filter' };
  const content = read.texts.join('');
  if (read.calls.length === 0 && content.trim() === '' && facts.finishReason !== 'length')
    return { kind: 'empty', facts, message: 'the reply has neither text nor tool calls' };
  const message = {
    role: 'assistant',
    content: content === '' ? null : content,
    ...(read.calls.length > 0 ? { tool_calls: read.calls } : {}),
    ...(read.thoughts.length > 0 ? { reasoning_content: read.thoughts.join('\n') } : {}),
    native: { dialect: 'responses', content: object.output },
  } as Message;
  return { kind: 'reply', reply: { ...facts, message, content, toolCalls: read.calls } };
}

const FINAL = new Set(['response.completed', 'response.incomplete', 'response.failed']);

export function assembleResponse(): Assembly {
  let final: Record<string, unknown> | null = null;
  let begun: Record<string, unknown> = {};
  let error: unknown = null;
  let characters = 0;
  const items = new Map<number, unknown>();
  return {
    add(data) {
      const event = asObject(data);
      const type = asText(event?.type) ?? '';
      if (!event) return;
      if (FINAL.has(type)) final = asObject(event.response);
      else if (type === 'response.created' || type === 'response.in_progress')
        begun = asObject(event.response) ?? begun;
      else if (type === 'response.output_item.done') items.set(Number(event.output_index), event.item);
      else if (type.endsWith('.delta')) characters += asText(event.delta)?.length ?? 0;
      else if (type === 'error' || 'error' in event) error = event.error ?? event;
    },
    body() {
      const output = [...items.entries()].sort(([a], [b]) => a - b).map(([, item]) => item);
      const { status: _underWay, ...facts } = begun;
      // Some gateways leave the output out of the last event, since every item came before.
      const whole = final ?? { ...facts, output };
      const stated = Array.isArray(whole.output) && whole.output.length > 0 ? whole : { ...whole, output };
      return error === null ? stated : { ...stated, error };
    },
    missing: () => (final === null ? 'its last event' : null),
    characters: () => characters,
  };
}
