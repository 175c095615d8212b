/** Reads a reply of generateContent. */

import { createHash } from 'node:crypto';
import { z } from 'zod';
import { tokenCount as count } from '../../../base/plausible.ts';
import { unicodeLine } from '../../../base/python/jsonDump.ts';
import type { Message, ToolCall } from '../../model.ts';
import { type AnswerFacts, type Assembly, NO_FACTS, type ReadResult, type ReadUsage } from '../dialect.ts';
import { providerError } from '../providerError.ts';
import { asObject, asText, firstIssue } from '../shapes.ts';

const partSchema = z.looseObject({
  text: z.string().optional(),
  thought: z.boolean().optional(),
  functionCall: z
    .looseObject({ id: z.string().optional(), name: z.string(), args: z.unknown().optional() })
    .optional(),
});
type Part = z.output<typeof partSchema>;

const candidateSchema = z.looseObject({
  content: z.looseObject({ parts: z.array(partSchema).nullish() }).nullish(),
  finishReason: z.string().nullish(),
  finishMessage: z.string().nullish(),
});

/** In the words of chat completions. */
const FINISH: Readonly<Record<string, string>> = { STOP: 'stop', MAX_TOKENS: 'length' };
const REFUSED = new Set([
  ...['SAFETY', 'RECITATION', 'BLOCKLIST', 'PROHIBITED_CONTENT', 'SPII'],
  ...['IMAGE_SAFETY', 'LANGUAGE'],
]);

const firstCandidate = (body: Record<string, unknown>): Record<string, unknown> | null =>
  asObject(Array.isArray(body.candidates) ? body.candidates[0] : null);

const callsOf = (candidate: Record<string, unknown> | null): boolean => {
  const parts = asObject(candidate?.content)?.parts;
  return Array.isArray(parts) && parts.some((part) => asObject(part)?.functionCall !== undefined);
};

export function geminiFacts(body: Record<string, unknown>): AnswerFacts {
  const candidate = firstCandidate(body);
  const reason = asText(candidate?.finishReason);
  const named = reason === null ? null : REFUSED.has(reason) ? 'content_filter' : (FINISH[reason] ?? reason);
  return {
    modelId: asText(body.modelVersion),
    responseId: asText(body.responseId),
    fingerprint: null,
    finishReason: named === 'stop' && callsOf(candidate) ? 'tool_calls' : named,
    rawUsage: body.usageMetadata ?? null,
  };
}

/** Calls mostly come without an id, and the answer must name one: the same reply gives the same ids. */
const idFor = (facts: AnswerFacts, signature: unknown, index: number): string =>
  `call_${createHash('sha256')
    .update(`${facts.responseId} ${String(signature)} ${index}`)
    .digest('hex')
    .slice(0, 28)}`;

function callOf(part: Part, index: number, facts: AnswerFacts): ToolCall {
  const { id, name, args } = part.functionCall!;
  return {
    id: id ?? idFor(facts, part.thoughtSignature ?? JSON.stringify(args), index),
    type: 'function',
    function: { name, arguments: unicodeLine(args ?? {}) },
  };
}

function blocked(body: Record<string, unknown>): string | null {
  const feedback = asObject(body.promptFeedback);
  const reason = asText(feedback?.blockReason);
  return reason === null ? null : `the prompt was blocked: ${asText(feedback?.blockReasonMessage) ?? reason}`;
}

export function readGenerated(body: unknown): ReadResult {
  const object = asObject(Array.isArray(body) ? body[0] : body);
  if (!object) return { kind: 'malformed', facts: NO_FACTS, message: 'the reply is not a JSON object' };
  const facts = geminiFacts(object);
  if (object.error !== undefined && object.error !== null) {
    const error = providerError(object);
    if (error) return { kind: 'error_object', facts, error };
  }
  const candidate = firstCandidate(object);
  if (!candidate) {
    const refused = blocked(object);
    if (refused !== null) return { kind: 'refusal', facts, message: refused };
    return { kind: 'empty', facts, message: 'the reply has no candidates' };
  }
  const parsed = candidateSchema.safeParse(candidate);
  if (!parsed.success)
    return { kind: 'malformed', facts, message: `candidates.0.${firstIssue(parsed.error)}` };
  const reason = parsed.data.finishReason ?? '';
  const why = parsed.data.finishMessage ? `: ${parsed.data.finishMessage}` : '';
  if (REFUSED.has(reason))
    return { kind: 'refusal', facts, message: `the reply was stopped (${reason})${why}` };
  const parts = parsed.data.content?.parts ?? [];
  const content = parts.flatMap((part) => (part.thought === true ? [] : [part.text ?? ''])).join('');
  const thought = parts.flatMap((part) => (part.thought === true ? [part.text ?? ''] : [])).join('');
  const calls = parts.flatMap((part, index) => (part.functionCall ? [callOf(part, index, facts)] : []));
  if (calls.length === 0 && content.trim() === '' && reason !== 'MAX_TOKENS')
    return {
      kind: 'empty',
      facts,
      message: `the reply has neither text nor tool calls${reason === 'STOP' ? '' : ` (${reason})`}${why}`,
    };
  const message = {
    role: 'assistant',
    content: content === '' ? null : content,
    ...(calls.length > 0 ? { tool_calls: calls } : {}),
    ...(thought === '' ? {} : { reasoning_content: thought }),
    native: { dialect: 'gemini', content: asObject(candidate.content)?.parts ?? [] },
  } as Message;
  return { kind: 'reply', reply: { ...facts, message, content, toolCalls: calls } };
}

type Fields = Record<string, unknown>;

/** Text grows from event to event; a part with a call or a signature is whole. */
const grows = (part: Fields): boolean =>
  typeof part.text === 'string' && Object.keys(part).every((key) => key === 'text' || key === 'thought');

interface Grown {
  readonly part: Fields;
  readonly pieces: string[];
}

export function assembleGenerated(): Assembly {
  let head: Fields = {};
  let candidate: Fields = {};
  let error: unknown = null;
  let characters = 0;
  const parts: Grown[] = [];

  const addPart = (value: unknown) => {
    const part = asObject(value);
    if (!part) return;
    const text = asText(part.text) ?? '';
    characters += text.length;
    const last = parts.at(-1);
    const joins = last && grows(last.part) && grows(part) && last.part.thought === part.thought;
    if (joins) last.pieces.push(text);
    else parts.push({ part, pieces: [text] });
  };

  return {
    add(data) {
      const event = asObject(Array.isArray(data) ? data[0] : data);
      if (!event) return;
      if (event.error !== undefined && event.error !== null) error = event.error;
      const { candidates, error: _apart, ...rest } = event;
      head = { ...head, ...rest };
      const found = asObject(Array.isArray(candidates) ? candidates[0] : null);
      if (!found) return;
      const { content, ...facts } = found;
      candidate = { ...candidate, ...facts };
      const more = asObject(content)?.parts;
      if (Array.isArray(more)) for (const part of more) addPart(part);
    },
    body() {
      const whole = parts.map(({ part, pieces }) =>
        typeof part.text === 'string' ? { ...part, text: pieces.join('') } : part,
      );
      const begun = Object.keys(candidate).length > 0 || whole.length > 0;
      return {
        ...head,
        ...(begun ? { candidates: [{ ...candidate, content: { role: 'model', parts: whole } }] } : {}),
        ...(error === null ? {} : { error }),
      };
    },
    missing: () => {
      const blocked = asText(asObject(head.promptFeedback)?.blockReason);
      return asText(candidate.finishReason) === null && blocked === null ? 'a finish reason' : null;
    },
    characters: () => characters,
  };
}

const schema = z.looseObject({
  promptTokenCount: count.nullish(),
  toolUsePromptTokenCount: count.nullish(),
  cachedContentTokenCount: count.nullish(),
  candidatesTokenCount: count.nullish(),
  thoughtsTokenCount: count.nullish(),
});

const unusable = (why: string): ReadUsage => ({ usage: null, cacheWrite1h: 0, notes: [why] });

/** `raw` is whatever stood under `usageMetadata`. Never throws. */
export function readUsageMetadata(raw: unknown): ReadUsage {
  if (raw === null || raw === undefined) return unusable('usage missing');
  const parsed = schema.safeParse(raw);
  if (!parsed.success) return unusable(`usage unusable: ${firstIssue(parsed.error)}`);
  const {
    promptTokenCount: prompt,
    cachedContentTokenCount: cached,
    thoughtsTokenCount: thoughts,
  } = parsed.data;
  if (prompt === null || prompt === undefined) return unusable('usage missing: no token counts in it');
  const cacheRead = cached ?? 0;
  const input = prompt + (parsed.data.toolUsePromptTokenCount ?? 0) - cacheRead;
  if (input < 0) return unusable(`usage unusable: ${cacheRead} read from a cache of ${prompt} in`);
  const reasoning = thoughts ?? 0;
  const output = (parsed.data.candidatesTokenCount ?? 0) + reasoning;
  return { usage: { input, cacheRead, cacheWrite: 0, output, reasoning }, cacheWrite1h: 0, notes: [] };
}
