/** Reads a reply of the Messages API. */

import { z } from 'zod';
import { pythonLine } from '../../../base/python/jsonDump.ts';
import type { Message, ToolCall } from '../../model.ts';
import { type AnswerFacts, type Assembly, NO_FACTS, type ReadResult } from '../dialect.ts';
import { providerError } from '../providerError.ts';
import { asObject, asText, firstIssue } from '../shapes.ts';

const blockSchema = z.discriminatedUnion('type', [
  z.looseObject({ type: z.literal('text'), text: z.string() }),
  z.looseObject({ type: z.literal('thinking'), thinking: z.string(), signature: z.string().nullish() }),
  z.looseObject({ type: z.literal('redacted_thinking'), data: z.string() }),
  z.looseObject({ type: z.literal('tool_use'), id: z.string(), name: z.string(), input: z.unknown() }),
]);
type Block = z.output<typeof blockSchema>;

const messageSchema = z.looseObject({
  content: z.array(z.looseObject({ type: z.string() })),
  stop_reason: z.string().nullish(),
});

/** In the words of chat completions, which the agent and the reports know. A reason that is new stays as it is. */
const FINISH: Readonly<Record<string, string>> = {
  end_turn: 'stop',
  stop_sequence: 'stop',
  pause_turn: 'stop',
  tool_use: 'tool_calls',
  max_tokens: 'length',
  refusal: 'content_filter',
};

export function messagesFacts(body: Record<string, unknown>): AnswerFacts {
  const reason = asText(body.stop_reason);
  return {
    modelId: asText(body.model),
    responseId: asText(body.id),
    fingerprint: null,
    finishReason: reason === null ? null : (FINISH[reason] ?? reason),
    rawUsage: body.usage ?? null,
  };
}

const TOO_LONG = {
  status: null,
  code: 'context_window_exceeded',
  type: null,
  message: 'the reply reached the end of the context window',
  retryMs: null,
};

/** `unread_input` is what a stream brought as a call's input and could not be parsed. */
const callOf = (block: Extract<Block, { type: 'tool_use' }>, index: number): ToolCall =>
  ({
    index,
    function: {
      arguments: asText(block.unread_input) ?? pythonLine(block.input ?? {}),
      name: block.name,
    },
    id: block.id,
    type: 'function',
  }) as ToolCall;

/** What goes back: without what the provider would refuse (thought without its signature, text without text). */
function nativeOf(blocks: readonly Record<string, unknown>[]): Record<string, unknown>[] {
  return blocks.flatMap((block) => {
    if (block.type === 'thinking' && !asText(block.signature)) return [];
    if (block.type === 'text' && block.text === '') return [];
    const { unread_input: _unread, ...sent } = block;
    return [sent];
  });
}

/** As litellm puts it together, so that files for mini-swe-agent's tools read alike; `native` holds what goes back. */
function messageOf(
  blocks: readonly Block[],
  all: readonly Record<string, unknown>[],
  content: string,
  calls: readonly ToolCall[],
): Message {
  const thoughts = blocks.filter((b) => b.type === 'thinking' || b.type === 'redacted_thinking');
  const said = blocks.flatMap((b) => (b.type === 'thinking' ? [b.thinking] : []));
  return {
    content: content === '' ? null : content,
    role: 'assistant',
    tool_calls: calls.length > 0 ? calls : null,
    function_call: null,
    ...(thoughts.length > 0 ? { reasoning_content: said.join(''), thinking_blocks: thoughts } : {}),
    provider_specific_fields: { citations: null, thinking_blocks: thoughts.length > 0 ? thoughts : null },
    native: { dialect: 'messages', content: nativeOf(all) },
  } as unknown as Message;
}

export function readMessagesReply(body: unknown): ReadResult {
  const object = asObject(body);
  if (!object) return { kind: 'malformed', facts: NO_FACTS, message: 'the reply is not a JSON object' };
  const facts = messagesFacts(object);
  if (object.error !== undefined && object.error !== null) {
    const error = providerError(object);
    if (error) return { kind: 'error_object', facts, error };
  }
  const parsed = messageSchema.safeParse(object);
  if (!parsed.success) return { kind: 'malformed', facts, message: firstIssue(parsed.error) };
  const { content: raw, stop_reason: reason } = parsed.data;
  if (reason === 'model_context_window_exceeded') return { kind: 'error_object', facts, error: TOO_LONG };
  const blocks: Block[] = [];
  const calls: ToolCall[] = [];
  for (const [index, part] of raw.entries()) {
    const block = blockSchema.safeParse(part);
    // A kind of block that is new goes back as it came, and means nothing here.
    if (!block.success) {
      if (['text', 'thinking', 'redacted_thinking', 'tool_use'].includes(part.type))
        return { kind: 'malformed', facts, message: `content.${index}.${firstIssue(block.error)}` };
      continue;
    }
    blocks.push(block.data);
    if (block.data.type === 'tool_use') calls.push(callOf(block.data, index));
  }
  const content = blocks.flatMap((b) => (b.type === 'text' ? [b.text] : [])).join('');
  if (reason === 'refusal')
    return { kind: 'refusal', facts, message: content || 'the reply has the stop reason "refusal"' };
  if (calls.length === 0 && content.trim() === '' && reason !== 'max_tokens')
    return { kind: 'empty', facts, message: 'the reply has neither text nor tool calls' };
  const message = messageOf(blocks, raw, content, calls);
  return { kind: 'reply', reply: { ...facts, message, content, toolCalls: calls } };
}

type Fields = Record<string, unknown>;

/** The field of a block that grows, by the kind of its delta. */
const GROWS: Readonly<Record<string, { readonly from: string; readonly to: string }>> = {
  text_delta: { from: 'text', to: 'text' },
  thinking_delta: { from: 'thinking', to: 'thinking' },
  signature_delta: { from: 'signature', to: 'signature' },
  input_json_delta: { from: 'partial_json', to: 'unread_input' },
};

interface Growing {
  readonly start: Fields;
  /** Pieces by field; joined once at the end, so that many small pieces cost no more than few. */
  readonly pieces: Map<string, string[]>;
}

function whole({ start, pieces }: Growing): Fields {
  const block: Fields = { ...start };
  for (const [field, parts] of pieces) block[field] = `${asText(start[field]) ?? ''}${parts.join('')}`;
  if (block.type !== 'tool_use') return block;
  const { unread_input: written, ...call } = block;
  if (!asText(written)) return { ...call, input: call.input ?? {} };
  try {
    return { ...call, input: JSON.parse(written as string) as unknown };
  } catch {
    return { ...call, input: {}, unread_input: written };
  }
}

export function assembleMessages(): Assembly {
  let head: Fields = {};
  let usage: Fields | null = null;
  let error: unknown = null;
  let stopped: Fields = {};
  let characters = 0;
  const blocks = new Map<number, Growing>();

  const addUsage = (stated: unknown) => {
    const known = Object.entries(asObject(stated) ?? {}).filter(([, value]) => value !== null);
    if (known.length > 0) usage = { ...usage, ...Object.fromEntries(known) };
  };
  const grow = (data: Fields) => {
    const delta = asObject(data.delta);
    const rule = GROWS[String(delta?.type)];
    const piece = rule && asText(delta?.[rule.from]);
    const block = blocks.get(Number(data.index));
    if (!rule || !piece || !block) return;
    characters += piece.length;
    const parts = block.pieces.get(rule.to) ?? [];
    parts.push(piece);
    block.pieces.set(rule.to, parts);
  };

  return {
    add(data) {
      const event = asObject(data);
      switch (event?.type) {
        case 'message_start': {
          const { usage: stated, content: _empty, ...rest } = asObject(event.message) ?? {};
          head = rest;
          addUsage(stated);
          break;
        }
        case 'content_block_start':
          blocks.set(Number(event.index), { start: asObject(event.content_block) ?? {}, pieces: new Map() });
          break;
        case 'content_block_delta':
          grow(event);
          break;
        case 'message_delta':
          stopped = { ...stopped, ...asObject(event.delta) };
          addUsage(event.usage);
          break;
        case 'error':
          error = event.error ?? event;
          break;
        default:
          // A gateway may answer with an error that is not an event of the API.
          if (event && 'error' in event) error = event.error;
      }
    },
    body() {
      const content = [...blocks.entries()].sort(([a], [b]) => a - b).map(([, block]) => whole(block));
      return {
        ...head,
        content,
        ...stopped,
        ...(usage ? { usage } : {}),
        ...(error === null ? {} : { error }),
      };
    },
    missing: () => (asText(stopped.stop_reason) === null ? 'a stop reason' : null),
    characters: () => characters,
  };
}
