/** Reads a chat completion, whatever a server calls one: validated by zod before anything uses it (servers answer 200 with anything). */

import { z } from 'zod';
import { tokenCount as count } from '../../base/plausible.ts';
import { contentText } from '../../base/text/contentText.ts';
import type { Message, ToolCall } from '../model.ts';
import {
  type AnswerFacts,
  type Assembly,
  NO_FACTS,
  type ReadResult,
  type ReadUsage,
  TOO_LONG,
} from './dialect.ts';
import { finishOf, TOO_LONG_END } from './finish.ts';
import { providerError } from './providerError.ts';
import { asObject, asText, firstIssue } from './shapes.ts';

const text = z.string().nullish().catch(null);

const toolCallSchema = z.looseObject({
  id: text,
  function: z.looseObject({ name: z.string(), arguments: z.unknown().optional() }),
});

const choiceSchema = z.looseObject({
  message: z.looseObject({
    content: z.union([z.string(), z.array(z.unknown())]).nullish(),
    tool_calls: z.array(toolCallSchema).nullish(),
    refusal: text,
  }),
  finish_reason: text,
});

const completionSchema = z.looseObject({
  id: text,
  model: text,
  system_fingerprint: text,
  choices: z.array(choiceSchema),
});

/**
 * Some servers leave ids out or send arguments as an object; the answer to the call must carry the same id, so both are set here once
 * (reply.test.ts).
 */
function normaliseCall(
  call: z.infer<typeof toolCallSchema>,
  index: number,
  responseId: string | null,
): ToolCall {
  const args = call.function.arguments;
  return {
    ...call,
    id: call.id || `call_${responseId ?? 'local'}_${index}`,
    type: 'function',
    function: {
      ...call.function,
      arguments: typeof args === 'string' ? args : args === undefined ? '' : JSON.stringify(args),
    },
  };
}

export function chatFacts(body: Record<string, unknown>): AnswerFacts {
  const first = asObject(Array.isArray(body.choices) ? body.choices[0] : null);
  return {
    modelId: asText(body.model),
    responseId: asText(body.id),
    fingerprint: asText(body.system_fingerprint),
    finishReason: finishOf(asText(first?.finish_reason)),
    rawUsage: body.usage ?? null,
  };
}

/** A choice that ended with an error and does not say which: no part of it may be executed. */
const CUT_BY_ERROR = { message: 'the reply ended with finish_reason "error"' };

export function readCompletion(body: unknown): ReadResult {
  const object = asObject(body);
  if (!object) return { kind: 'malformed', facts: NO_FACTS, message: 'the reply is not a JSON object' };
  const facts = chatFacts(object);
  const first = asObject(Array.isArray(object.choices) ? object.choices[0] : null);
  // OpenRouter reports an upstream failure inside the choice, also beside the part of a message that came before it.
  const failed = object.error ?? first?.error ?? (facts.finishReason === 'error' ? CUT_BY_ERROR : undefined);
  if (failed !== undefined && failed !== null) {
    const error = providerError({ error: failed });
    if (error) return { kind: 'error_object', facts, error };
  }
  // MiniMax's way to say it in a 200; of a success the number is 0.
  const refused = asObject(object.base_resp)?.status_code ? providerError(object) : null;
  if (refused) return { kind: 'error_object', facts, error: refused };
  if (facts.finishReason === TOO_LONG_END) return { kind: 'error_object', facts, error: TOO_LONG };
  const parsed = completionSchema.safeParse(object);
  if (!parsed.success) {
    const error = object.object === 'error' || object.type === 'error' ? providerError(object) : null;
    if (error) return { kind: 'error_object', facts, error };
    return { kind: 'malformed', facts, message: firstIssue(parsed.error) };
  }
  const choice = parsed.data.choices[0];
  if (!choice) return { kind: 'empty', facts, message: 'the reply has no choices' };
  const { message } = choice;
  if (message.refusal) return { kind: 'refusal', facts, message: message.refusal };
  if (facts.finishReason === 'content_filter')
    return { kind: 'refusal', facts, message: 'the reply was stopped by a content filter' };
  const content = contentText(message.content);
  const toolCalls = (message.tool_calls ?? []).map((call, index) =>
    normaliseCall(call, index, facts.responseId),
  );
  // A reply cut by its length limit is for the agent to explain to the model, also when nothing was said yet.
  if (toolCalls.length === 0 && content.trim() === '' && facts.finishReason !== 'length')
    return { kind: 'empty', facts, message: 'the reply has neither text nor tool calls' };
  // From the body and not from zod's copy, which has another order of keys: the message goes back to its provider.
  const sent = {
    ...asObject(first?.message),
    role: 'assistant',
    content: message.content ?? null,
    ...(message.tool_calls ? { tool_calls: toolCalls } : {}),
  } as Message;
  return { kind: 'reply', reply: { ...facts, message: sent, content, toolCalls } };
}

const deltaCall = z.looseObject({
  index: z.number().int().min(0).nullish(),
  id: z.string().nullish(),
  function: z.looseObject({ name: z.string().nullish(), arguments: z.string().nullish() }).nullish(),
});

const chunkSchema = z.looseObject({
  choices: z
    .array(
      z.looseObject({
        delta: z.looseObject({ tool_calls: z.array(deltaCall).nullish() }).nullish(),
        finish_reason: z.string().nullish(),
      }),
    )
    .nullish(),
});

type Fields = Record<string, unknown>;

interface PartialCall {
  readonly index: number | null;
  id: string | null;
  name: string;
  arguments: string;
  /** Other fields: thought signatures (`extra_content`). */
  readonly rest: Fields;
  readonly inFunction: Fields;
}

function isWhole(text: string): boolean {
  try {
    return text.trimEnd().endsWith('}') && asObject(JSON.parse(text)) !== null;
  } catch {
    return false;
  }
}

/** Servers number calls alike, or not at all, and some repeat a name, or make up an id, with every piece: a call that is whole tells them apart. */
function beginsAnother(last: PartialCall, { id, function: called }: z.output<typeof deltaCall>): boolean {
  const other = isOther(last, id);
  if (!called?.name || (id && !other)) return false;
  if (isWhole(last.arguments)) return other || !!called.arguments?.trim();
  return other && called.name !== last.name;
}

const isOther = (call: PartialCall, id: string | null | undefined): boolean =>
  !!id && call.id !== null && id !== call.id;

/** The call that a piece belongs to, one of `many` in its chunk, which are of several calls where their ids differ. */
function callFor(
  calls: PartialCall[],
  delta: z.output<typeof deltaCall>,
  position: number,
  many: boolean,
): PartialCall {
  const { id } = delta;
  const index = delta.index ?? null;
  const numbered = calls.filter(
    (call) => (index === null || call.index === index) && !(many && isOther(call, id)),
  );
  const last =
    numbered.findLast((call) => !!id && call.id === id) ??
    (index === null && many ? calls[position] : numbered.at(-1));
  if (last && !beginsAnother(last, delta)) return last;
  const call: PartialCall = { index, id: null, name: '', arguments: '', rest: {}, inFunction: {} };
  calls.push(call);
  return call;
}

/** Items of `reasoning_details` come in pieces too: those of one index and kind are one item, and these texts of it grow. */
const GROW_IN_DETAILS = new Set(['text', 'summary', 'data']);

function addDetails(known: unknown[], more: readonly unknown[]): void {
  for (const value of more) {
    const item = asObject(value);
    const last = item && asObject(known.at(-1));
    if (!item || last?.type !== item.type || last?.index !== item.index || item.index === undefined) {
      known.push(item ? { ...item } : value);
      continue;
    }
    for (const [name, piece] of Object.entries(item))
      if (GROW_IN_DETAILS.has(name) && typeof piece === 'string')
        last![name] = `${last![name] ?? ''}${piece}`;
      else if (piece !== null) last![name] = piece;
  }
}

/** Fields that no table knows: texts grow, lists get longer, and of anything else the newest counts. */
function addUnknown(into: Fields, more: Fields, known: ReadonlySet<string>): void {
  for (const [name, value] of Object.entries(more)) {
    if (known.has(name) || value === null || value === undefined) continue;
    const before = into[name];
    if (typeof value === 'string' && typeof before === 'string') into[name] = before + value;
    else if (Array.isArray(value)) {
      const list = Array.isArray(before) ? (before as unknown[]) : [];
      addDetails(list, value);
      into[name] = list;
    } else if (asObject(value) && asObject(before)) into[name] = { ...asObject(before), ...asObject(value) };
    else into[name] = value;
  }
}

/** Texts that grow piece by piece; reasoning has a different name at each provider. */
const TEXT_FIELDS = ['content', 'refusal', 'reasoning_content', 'reasoning'] as const;
const IN_DELTA: ReadonlySet<string> = new Set([...TEXT_FIELDS, 'role', 'tool_calls', 'function_call']);
const IN_CALL: ReadonlySet<string> = new Set(['index', 'id', 'type', 'function']);
const IN_FUNCTION: ReadonlySet<string> = new Set(['name', 'arguments']);

export function assembleStream(): Assembly {
  const head: Fields = {};
  const texts = new Map<string, string>();
  const calls: PartialCall[] = [];
  const others: Fields = {};
  const problems: unknown[] = [];
  let finish: string | null = null;
  let usage: unknown = null;
  let sawChoice = false;
  let characters = 0;

  function addCall(delta: z.output<typeof deltaCall>, position: number, many: boolean): void {
    const call = callFor(calls, delta, position, many);
    if (delta.id) call.id = delta.id;
    // The name comes whole; servers that repeat it in every chunk must not have it doubled.
    if (delta.function?.name && call.name === '') call.name = delta.function.name;
    call.arguments += delta.function?.arguments ?? '';
    characters += delta.function?.arguments?.length ?? 0;
    addUnknown(call.rest, delta, IN_CALL);
    if (delta.function) addUnknown(call.inFunction, delta.function, IN_FUNCTION);
  }

  return {
    add(chunk) {
      const parsed = chunkSchema.safeParse(chunk);
      if (!parsed.success) {
        problems.push(chunk);
        return;
      }
      const { choices, usage: stated, ...rest } = parsed.data;
      if (rest.error !== undefined && rest.error !== null) head.error = rest.error;
      for (const name of ['id', 'model', 'created', 'system_fingerprint']) head[name] ??= rest[name];
      if (stated !== undefined && stated !== null) usage = stated;
      const choice = choices?.[0];
      if (!choice) return;
      sawChoice = true;
      finish = choice.finish_reason || finish;
      for (const name of TEXT_FIELDS) {
        const piece = choice.delta?.[name];
        if (typeof piece !== 'string') continue;
        texts.set(name, (texts.get(name) ?? '') + piece);
        characters += piece.length;
      }
      if (choice.delta) addUnknown(others, choice.delta, IN_DELTA);
      const pieces = choice.delta?.tool_calls ?? [];
      for (const [position, delta] of pieces.entries()) addCall(delta, position, pieces.length > 1);
    },
    body() {
      const toolCalls = calls
        .toSorted((a, b) => (a.index ?? 0) - (b.index ?? 0))
        .map(({ id, name, arguments: written, rest, inFunction }) => ({
          id,
          type: 'function',
          function: { name, arguments: written, ...inFunction },
          ...rest,
        }));
      const message = {
        role: 'assistant',
        content: texts.get('content') || null,
        ...Object.fromEntries([...texts].filter(([name]) => name !== 'content')),
        ...(toolCalls.length > 0 ? { tool_calls: toolCalls } : {}),
        ...others,
      };
      return {
        ...head,
        object: 'chat.completion',
        choices: sawChoice ? [{ index: 0, message, finish_reason: finish }] : [],
        ...(usage === null ? {} : { usage }),
        ...(problems.length > 0 ? { unread_chunks: problems.length } : {}),
      };
    },
    characters: () => characters,
  };
}

/** A provider's `usage` object as token counts by kind. Providers count differently and wrongly; counts that do not add up are discarded (T-19). */

const details = z.looseObject({}).nullish();

const usageSchema = z.looseObject({
  prompt_tokens: count.nullish(),
  completion_tokens: count.nullish(),
  input_tokens: count.nullish(),
  output_tokens: count.nullish(),
  total_tokens: count.nullish(),
  prompt_tokens_details: details,
  input_tokens_details: details,
  completion_tokens_details: details,
  output_tokens_details: details,
  cache_read_input_tokens: count.nullish(),
  cache_creation_input_tokens: count.nullish(),
  cache_creation: details,
  prompt_cache_hit_tokens: count.nullish(),
  cached_tokens: count.nullish(),
  reasoning_tokens: count.nullish(),
});

const unusable = (why: string): ReadUsage => ({ usage: null, cacheWrite1h: 0, notes: [why] });

function detail(from: Record<string, unknown> | null | undefined, name: string): number | null {
  const value = from?.[name];
  if (value === null || value === undefined) return null;
  return count.parse(value);
}

function read(raw: z.output<typeof usageSchema>): ReadUsage {
  const openAi = raw.prompt_tokens !== undefined && raw.prompt_tokens !== null;
  const prompt = openAi ? raw.prompt_tokens : raw.input_tokens;
  const completion = raw.completion_tokens ?? raw.output_tokens;
  if (prompt === null || prompt === undefined || completion === null || completion === undefined)
    return unusable('usage missing: no token counts in it');
  const inDetails = raw.prompt_tokens_details ?? raw.input_tokens_details;
  const cacheRead =
    detail(inDetails, 'cached_tokens') ??
    raw.cache_read_input_tokens ??
    raw.prompt_cache_hit_tokens ??
    raw.cached_tokens ??
    0;
  const write1h = detail(raw.cache_creation, 'ephemeral_1h_input_tokens') ?? 0;
  const write5m = detail(raw.cache_creation, 'ephemeral_5m_input_tokens') ?? 0;
  const cacheWrite =
    raw.cache_creation_input_tokens ??
    detail(inDetails, 'cache_write_tokens') ??
    detail(inDetails, 'cache_creation_tokens') ??
    write1h + write5m;
  if (write1h > cacheWrite)
    return unusable(`usage unusable: ${write1h} one-hour cache writes of ${cacheWrite}`);
  // Anthropic's own form counts cached tokens beside input_tokens, everyone else's inside the prompt.
  const beside = !openAi && !raw.input_tokens_details && raw.total_tokens === undefined;
  const input = beside ? prompt : prompt - cacheRead - cacheWrite;
  if (input < 0)
    return unusable(
      `usage unusable: ${cacheRead} read from and ${cacheWrite} written to a cache of ${prompt} in`,
    );
  const outDetails = raw.completion_tokens_details ?? raw.output_tokens_details;
  const reasoning = detail(outDetails, 'reasoning_tokens') ?? raw.reasoning_tokens ?? 0;
  // xAI counts reasoning beside the completion; the total gives it away.
  const apart = reasoning > 0 && raw.total_tokens === prompt + completion + reasoning;
  const output = apart ? completion + reasoning : completion;
  const total = raw.total_tokens ?? Number.POSITIVE_INFINITY;
  if (total < prompt + completion)
    return unusable(`usage unusable: ${total} tokens in all of ${prompt} in and ${completion} out`);
  // 28 November 2026: servers that count nothing state {0, 0, 0}, and every call was "$0.00".
  if (input + cacheRead + cacheWrite === 0) return unusable('usage unusable: not one token in');
  if (reasoning > output) return unusable(`usage unusable: ${reasoning} reasoning tokens of ${output} out`);
  return { usage: { input, cacheRead, cacheWrite, output, reasoning }, cacheWrite1h: write1h, notes: [] };
}

/** `raw` is any value under `usage`. Never throws. */
export function readUsage(raw: unknown): ReadUsage {
  if (raw === null || raw === undefined) return unusable('usage missing');
  const parsed = usageSchema.safeParse(raw);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    return unusable(
      `usage unusable: ${issue?.path.join('.') || 'it'} is ${issue?.message ?? 'of no known form'}`,
    );
  }
  try {
    return read(parsed.data);
  } catch {
    return unusable('usage unusable: a detail is not a count');
  }
}
