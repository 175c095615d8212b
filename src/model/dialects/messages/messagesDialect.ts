/** Anthropic's Messages API, also behind gateways that speak it. */

import { z } from 'zod';
import { pythonLine } from '../../../base/python/json.ts';
import { stripChars } from '../../../base/python/text.ts';
import { knownModel } from '../../knownModels.ts';
import type { Message, ToolCall, ToolSpec } from '../../model.ts';
import type { ModelConfig } from '../../modelConfig.ts';
import { readUsage } from '../completion.ts';
import {
  type AnswerFacts,
  type Assembly,
  type Dialect,
  NO_FACTS,
  type ReadResult,
  type RequestStyle,
  type RequestWriter,
  TOO_LONG,
} from '../dialect.ts';
import { finishOf, TOO_LONG_END } from '../finish.ts';
import { type CacheMark, cacheMark, extraHeaders, sentParameters } from '../kwargs.ts';
import { createListWriter, createTail, stringify, systemContents } from '../listWriter.ts';
import { providerError } from '../providerError.ts';
import { asObject, asText, firstIssue } from '../shapes.ts';

const VERSION = '2023-06-01';

/** A base URL is given with the version, without it, or whole: each is what some tool of the field expects. */
function pathUnder(baseUrl: string | undefined): string {
  const path = baseUrl === undefined ? '' : stripChars(new URL(baseUrl).pathname, '/', 'right');
  if (path.endsWith('/v1/messages')) return '';
  return path.endsWith('/v1') ? '/messages' : '/v1/messages';
}

/** A key is sent as one; a token of a subscription or a gateway is a bearer's. */
const authorization = (config: ModelConfig, apiKey: string): Record<string, string> =>
  config.api_key_env === 'ANTHROPIC_AUTH_TOKEN'
    ? { authorization: `Bearer ${apiKey}` }
    : { 'x-api-key': apiKey };

export const messagesDialect: Dialect = {
  name: 'messages',
  cachedIsFree: true,
  wrote: ({ type, content }) => type === 'message' && Array.isArray(content),
  target: (config, _model, apiKey) => ({
    path: pathUnder(config.base_url),
    headers: {
      'anthropic-version': VERSION,
      accept: 'application/json',
      ...authorization(config, apiKey),
      ...extraHeaders(config.model_kwargs),
    },
  }),
  parameters: messagesParameters,
  createWriter: (config, model, style) => createMessagesWriter(config, model, style),
  read: readMessagesReply,
  factsOf: messagesFacts,
  readUsage,
  assemble: assembleMessages,
};

/** The longest answer where neither the configuration nor the table names one. */
const USUAL_MAX_TOKENS = 8192;

/** Tokens of thought for an effort, as litellm has them. The API takes no budget under 1024. */
const BUDGETS: Readonly<Record<string, number>> = {
  minimal: 1024,
  low: 1024,
  medium: 2048,
  high: 4096,
  xhigh: 8192,
  max: 16_384,
};

function thinkingOf(effort: unknown, adaptive: boolean): Record<string, unknown> {
  if (typeof effort !== 'string' || effort === 'none') return {};
  if (adaptive)
    return {
      thinking: { type: 'adaptive', display: 'summarized' },
      output_config: { effort: effort === 'minimal' ? 'low' : effort },
    };
  const budget = BUDGETS[effort];
  return budget === undefined
    ? { reasoning_effort: effort }
    : { thinking: { type: 'enabled', budget_tokens: budget } };
}

function choiceOf(choice: unknown, parallel: unknown): Record<string, unknown> {
  const named = asObject(choice);
  const base = named
    ? 'function' in named
      ? { type: 'tool', name: asObject(named.function)?.name }
      : named
    : typeof choice === 'string'
      ? { type: choice === 'required' ? 'any' : choice }
      : null;
  if (typeof parallel !== 'boolean') return base ? { tool_choice: base } : {};
  return { tool_choice: { ...(base ?? { type: 'auto' }), disable_parallel_tool_use: !parallel } };
}

const toolOf = ({ function: { name, description, parameters } }: ToolSpec) => ({
  name,
  input_schema: parameters,
  type: 'custom',
  description,
});

const listOf = (value: unknown): unknown => (typeof value === 'string' ? [value] : value);

/** Every field beside `model`, `messages` and `system`. */
function messagesParameters(
  config: ModelConfig,
  tools: readonly ToolSpec[] | undefined,
): Record<string, unknown> {
  const {
    max_tokens: longest,
    max_completion_tokens: longestToo,
    parallel_tool_calls: parallel,
    tool_choice: choice,
    reasoning_effort: effort,
    stop,
    user,
    ...rest
  } = sentParameters(config.model_kwargs);
  const known = knownModel(config.model_name ?? '');
  const hasTools = tools !== undefined && tools.length > 0;
  return {
    ...thinkingOf(effort, known?.adaptive ?? false),
    ...rest,
    ...(stop === undefined ? {} : { stop_sequences: listOf(stop) }),
    ...(user === undefined ? {} : { metadata: { user_id: user } }),
    max_tokens: longest ?? longestToo ?? known?.output ?? USUAL_MAX_TOKENS,
    ...(hasTools ? { tools: tools.map(toolOf), ...choiceOf(choice, parallel) } : {}),
    ...(config.stream ? { stream: true } : {}),
  };
}

/** The mark goes on the last block. */
const markWith =
  (cache_control: CacheMark) =>
  (blocks: readonly Block[]): readonly Block[] =>
    blocks.map((block, index) => (index === blocks.length - 1 ? { ...block, cache_control } : block));

/** mini-swe-agent makes text a list of parts where it sets its mark. */
const withTextAsParts = (blocks: readonly Block[]): readonly Block[] =>
  blocks.map((block) =>
    'cache_control' in block && typeof block.content === 'string'
      ? { ...block, content: [{ type: 'text', text: block.content }] }
      : block,
  );

/**
 * The turns that carry a mark. Our own way marks the last two of the user: the second one from the end is where the call before left its
 * mark, so what it stored is found again. mini-swe-agent marks the end alone.
 */
function marksOf(turns: readonly Turn[], ways: number): ReadonlySet<number> {
  const asked = turns.flatMap((turn, index) => (turn.role === 'user' ? [index] : []));
  return new Set(ways === 0 ? [] : asked.slice(-ways));
}

const USER_MARKS = 2;

/** `first`: the beginning of the body; clouds have the model in the path. */
function createMessagesWriter(
  config: ModelConfig,
  model: string,
  style: RequestStyle,
  first: Readonly<Record<string, string>> = { model },
): RequestWriter {
  const list = createListWriter(`${JSON.stringify(first).slice(0, -1)},"messages":[`);
  const own = style === 'own';
  const marked = markWith(cacheMark(config.cache_ttl));
  const mark = own ? marked : (blocks: readonly Block[]) => withTextAsParts(marked(blocks));
  const ways = own ? USER_MARKS : config.set_cache_control === 'default_end' ? 1 : 0;

  const tail = createTail(([tools, ...system]) => {
    const blocks = system.flatMap((content) => textBlocks(content as Message['content']));
    const parameters = messagesParameters(config, tools as readonly ToolSpec[] | undefined);
    // The mark on the system prompt covers the tools too, which the provider puts before it.
    const kept = own && blocks.length > 0 ? marked(blocks) : blocks;
    const kit =
      own && blocks.length === 0 && parameters.tools ? { tools: marked(parameters.tools as Block[]) } : {};
    const rest = stringify({ ...parameters, ...kit, ...(kept.length > 0 ? { system: kept } : {}) });
    return `],${rest.slice(1)}`;
  });

  return {
    write(messages, tools) {
      const turns = turnsOf(messages);
      const marks = marksOf(turns, ways);
      const units = turns.map((turn, index) => ({
        from: turn.from,
        json: () =>
          stringify({ role: turn.role, content: marks.has(index) ? mark(turn.blocks()) : turn.blocks() }),
      }));
      // A turn that carries a mark, or may grow, is written again at each call; the turns before it never are.
      const settled = Math.min(turns.length - 1, ...marks);
      return list.write(units, settled, tail(tools, ...systemContents(messages)));
    },
  };
}

type Block = Readonly<Record<string, unknown>>;

interface Turn {
  readonly role: 'user' | 'assistant';
  /** The messages that the turn is made of, to see whether it is still the same. */
  readonly from: readonly Message[];
  readonly blocks: () => Block[];
}

const text = (value: string): Block => ({ type: 'text', text: value });

/** The API refuses a text block without text. */
const textBlocks = (content: Message['content']): Block[] => {
  if (typeof content === 'string') return content === '' ? [] : [text(content)];
  if (content === null || content === undefined) return [];
  return content.flatMap((part) => {
    if (typeof part === 'string') return part === '' ? [] : [text(part)];
    const block = asObject(part);
    return block && !(block.type === 'text' && block.text === '') ? [block] : [];
  });
};

/** A call whose arguments are not a JSON object cannot go back as a call. */
function inputOf({ function: { arguments: written } }: ToolCall): Record<string, unknown> {
  try {
    return asObject(JSON.parse(written)) ?? {};
  } catch {
    return {};
  }
}

const THINKING = new Set(['thinking', 'redacted_thinking']);

const nativeBlocks = (message: Message): Block[] | null =>
  message.native?.dialect === 'messages' ? (message.native.content as Block[]) : null;

function assistantBlocks(message: Message): Block[] {
  const native = nativeBlocks(message);
  if (native) return native;
  const calls = (message.tool_calls ?? []).map((call) => ({
    type: 'tool_use',
    id: call.id,
    name: call.function.name,
    input: inputOf(call),
  }));
  return [...textBlocks(message.content), ...calls];
}

function resultBlock(message: Message): Block {
  const { content } = message;
  const plain = typeof content === 'string' || content === null ? (content ?? '') : textBlocks(content);
  return { type: 'tool_result', tool_use_id: message.tool_call_id ?? '', content: plain };
}

/** Results stand first in their turn, or the API does not find the answer to its call. */
function userBlocks(messages: readonly Message[]): Block[] {
  const results = messages.filter((message) => message.role === 'tool').map(resultBlock);
  const others = messages.filter((message) => message.role !== 'tool');
  return [...results, ...others.flatMap((message) => textBlocks(message.content))];
}

/** A turn cannot be thought alone: the API wants an answer or a call behind it. */
function says(message: Message): boolean {
  if (message.role !== 'assistant') return true;
  const native = nativeBlocks(message);
  if (native) return native.some((block) => !THINKING.has(String(block.type)));
  return (message.tool_calls?.length ?? 0) > 0 || textBlocks(message.content).length > 0;
}

/** System messages are not turns; an assistant message that would be empty is left out, and its neighbours become one turn. */
function turnsOf(messages: readonly Message[]): Turn[] {
  const turns: Turn[] = [];
  let asked: Message[] = [];
  const close = () => {
    const from = asked;
    if (from.length > 0) turns.push({ role: 'user', from, blocks: () => userBlocks(from) });
    asked = [];
  };
  for (const message of messages) {
    if (message.role === 'system' || message.role === 'exit' || !says(message)) continue;
    if (message.role !== 'assistant') {
      asked.push(message);
      continue;
    }
    close();
    turns.push({ role: 'assistant', from: [message], blocks: () => assistantBlocks(message) });
  }
  close();
  return turns;
}

const blockSchema = z.discriminatedUnion('type', [
  z.looseObject({ type: z.literal('text'), text: z.string() }),
  z.looseObject({ type: z.literal('thinking'), thinking: z.string(), signature: z.string().nullish() }),
  z.looseObject({ type: z.literal('redacted_thinking'), data: z.string() }),
  z.looseObject({ type: z.literal('tool_use'), id: z.string(), name: z.string(), input: z.unknown() }),
]);
type ReadBlock = z.output<typeof blockSchema>;

const messageSchema = z.looseObject({
  content: z.array(z.looseObject({ type: z.string() })),
  stop_reason: z.string().nullish(),
});

export function messagesFacts(body: Record<string, unknown>): AnswerFacts {
  return {
    modelId: asText(body.model),
    responseId: asText(body.id),
    fingerprint: null,
    finishReason: finishOf(asText(body.stop_reason)),
    rawUsage: body.usage ?? null,
  };
}

/** `unread_input` is what a stream brought as a call's input and could not be parsed. */
const callOf = (block: Extract<ReadBlock, { type: 'tool_use' }>, index: number): ToolCall =>
  ({
    index,
    function: {
      arguments: asText(block.unread_input) ?? pythonLine(block.input ?? {}),
      name: block.name,
    },
    id: block.id,
    type: 'function',
  }) as ToolCall;

/** The blocks that go back, without those that the provider would refuse (thought without its signature, text without text). */
function nativeOf(blocks: readonly Record<string, unknown>[]): Record<string, unknown>[] {
  return blocks.flatMap((block) => {
    if (block.type === 'thinking' && !asText(block.signature)) return [];
    if (block.type === 'text' && block.text === '') return [];
    const { unread_input: _unread, ...sent } = block;
    return [sent];
  });
}

/** The message as litellm puts it together, so that files for mini-swe-agent's tools read alike; `native` holds the blocks that go back. */
function messageOf(
  blocks: readonly ReadBlock[],
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
  if (facts.finishReason === TOO_LONG_END) return { kind: 'error_object', facts, error: TOO_LONG };
  const blocks: ReadBlock[] = [];
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
  if (facts.finishReason === 'content_filter')
    return { kind: 'refusal', facts, message: content || `the reply has the stop reason "${reason}"` };
  if (calls.length === 0 && content.trim() === '' && facts.finishReason !== 'length')
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

function assembleMessages(): Assembly {
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
    characters: () => characters,
  };
}

interface CloudPlace {
  readonly version: string;
  readonly path: (model: string, stream: boolean) => string;
  /** Whether the body says `stream` beside the path. */
  readonly streamInBody: boolean;
}

/** The dialect as a cloud has it: Claude at another address, its version in the body. */
export function claudeAt(dialect: Dialect, { version, path, streamInBody }: CloudPlace): Dialect {
  const inBody = (config: ModelConfig): ModelConfig => (streamInBody ? config : { ...config, stream: false });
  return {
    ...dialect,
    target: (config, model) => ({
      path: path(model, config.stream),
      headers: { accept: 'application/json', ...extraHeaders(config.model_kwargs) },
    }),
    parameters: (config, tools) => messagesParameters(inBody(config), tools),
    createWriter: (config, model, style) =>
      createMessagesWriter(inBody(config), model, style, { anthropic_version: version }),
  };
}
