/** The conversation that a request carries, as messages of one form for all dialects: for the record, never to be sent. Pure. */
import { createHash } from 'node:crypto';
import type { DialectName } from '../../model/dialects/dialects.ts';
import { asObject, asText } from '../../model/dialects/shapes.ts';
import type { Message, ToolCall } from '../../model/model.ts';
import type { CallLabel } from './gateway.ts';

type Body = Readonly<Record<string, unknown>>;

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
const objectsOf = (value: unknown): Body[] =>
  listOf(value).flatMap((item) => {
    const object = asObject(item);
    return object ? [object] : [];
  });

/** Text where all of it is text; else the parts as they came. */
function contentOf(value: unknown): Message['content'] {
  if (typeof value === 'string' || value === null || value === undefined) return value ?? null;
  const parts = listOf(value);
  const texts = parts.map((part) => (typeof part === 'string' ? part : asText(asObject(part)?.text)));
  return texts.every((text) => text !== null) ? texts.join('\n') : parts;
}

const callOf = (id: unknown, name: unknown, input: unknown): ToolCall => ({
  id: asText(id) ?? '',
  type: 'function',
  function: {
    name: asText(name) ?? '',
    arguments: typeof input === 'string' ? input : JSON.stringify(input ?? {}),
  },
});

const assistant = (content: Message['content'], calls: readonly ToolCall[]): Message => ({
  role: 'assistant',
  content,
  ...(calls.length > 0 && { tool_calls: calls }),
});

const toolResult = (id: unknown, content: unknown): Message => ({
  role: 'tool',
  tool_call_id: asText(id) ?? '',
  content:
    typeof content === 'object' && !Array.isArray(content) ? JSON.stringify(content) : contentOf(content),
});

const system = (content: unknown): Message[] => {
  const said = contentOf(content);
  return said === null || said.length === 0 ? [] : [{ role: 'system', content: said }];
};

function chatMessages(request: Body): Message[] {
  return objectsOf(request.messages).map((message) => {
    const role = asText(message.role);
    if (role === 'tool' || role === 'function') return toolResult(message.tool_call_id, message.content);
    if (role === 'assistant') {
      const calls = objectsOf(message.tool_calls).map((call) => {
        const named = asObject(call.function) ?? asObject(call.custom) ?? {};
        return callOf(call.id, named.name, named.arguments ?? named.input);
      });
      return assistant(contentOf(message.content), calls);
    }
    return { role: role === 'user' ? 'user' : 'system', content: contentOf(message.content) };
  });
}

function anthropicMessages(request: Body): Message[] {
  const turns = objectsOf(request.messages).flatMap((turn): Message[] => {
    const blocks =
      typeof turn.content === 'string' ? [{ type: 'text', text: turn.content }] : objectsOf(turn.content);
    const of = (type: string) => blocks.filter((block) => block.type === type);
    if (turn.role === 'assistant') {
      const texts = of('text').map((block) => asText(block.text) ?? '');
      return [
        assistant(
          texts.join('\n'),
          of('tool_use').map((use) => callOf(use.id, use.name, use.input)),
        ),
      ];
    }
    const results = of('tool_result').map((result) => toolResult(result.tool_use_id, result.content));
    const others = blocks.filter((block) => block.type !== 'tool_result');
    return [
      ...results,
      ...(others.length > 0 ? [{ role: 'user' as const, content: contentOf(others) }] : []),
    ];
  });
  return [...system(request.system), ...turns];
}

/** What the model has said lies there in items of its own: thought, text and calls of one turn follow each other. */
function responsesMessages(request: Body): Message[] {
  const messages = system(request.instructions);
  if (typeof request.input === 'string') return [...messages, { role: 'user', content: request.input }];
  let said: { texts: string[]; calls: ToolCall[] } | null = null;
  const close = (): void => {
    if (said) messages.push(assistant(said.texts.join('\n'), said.calls));
    said = null;
  };
  for (const item of objectsOf(request.input)) {
    const type = asText(item.type) ?? 'message';
    if (type === 'reasoning' || type.endsWith('_call') || (type === 'message' && item.role === 'assistant')) {
      said ??= { texts: [], calls: [] };
      if (type === 'message') said.texts.push(textOf(item.content));
      else if (type !== 'reasoning')
        said.calls.push(
          callOf(item.call_id ?? item.id, item.name ?? type, item.arguments ?? item.input ?? item.action),
        );
      continue;
    }
    close();
    if (type.endsWith('_output')) messages.push(toolResult(item.call_id, item.output));
    else if (type === 'message')
      messages.push({ role: item.role === 'user' ? 'user' : 'system', content: contentOf(item.content) });
    else messages.push({ role: 'user', content: [item] });
  }
  close();
  return messages;
}

const textOf = (content: unknown): string => {
  const said = contentOf(content);
  return typeof said === 'string' ? said : JSON.stringify(said ?? '');
};

function geminiMessages(request: Body): Message[] {
  const turns = objectsOf(request.contents).flatMap((turn): Message[] => {
    const parts = objectsOf(turn.parts);
    if (turn.role === 'model') {
      const texts = parts.flatMap((part) => (part.thought === true ? [] : (asText(part.text) ?? [])));
      const calls = objectsOf(parts.map((part) => part.functionCall));
      return [
        assistant(
          texts.join('\n'),
          calls.map(({ id, name, args }) => callOf(id ?? name, name, args)),
        ),
      ];
    }
    const results = objectsOf(parts.map((part) => part.functionResponse));
    const others = parts.filter((part) => !('functionResponse' in part));
    return [
      ...results.map(({ id, name, response }) => toolResult(id ?? name, response)),
      ...(others.length > 0 ? [{ role: 'user' as const, content: contentOf(others) }] : []),
    ];
  });
  return [...system(asObject(request.systemInstruction ?? request.system_instruction)?.parts), ...turns];
}

const READERS: Readonly<Record<DialectName, (request: Body) => Message[]>> = {
  chat: chatMessages,
  responses: responsesMessages,
  messages: anthropicMessages,
  gemini: geminiMessages,
};

export const conversationOf = (dialect: DialectName, request: Body): Message[] => READERS[dialect](request);

interface Thread {
  readonly name: string;
  /** Of each message so far; null for a reply, which comes back in a form of the program's own. */
  readonly known: (string | null)[];
}

export interface CallThreads {
  /** What a call adds to its conversation, and the name of that. */
  add(
    label: CallLabel,
    request: readonly Message[],
    reply: Message | null,
  ): { thread: string; messages: readonly Message[] };
}

/** Marks of a cache move from turn to turn; they are no part of what was said. */
const withoutMarks = (key: string, value: unknown): unknown => (key === 'cache_control' ? undefined : value);

const digest = (message: Message): string =>
  createHash('sha256').update(JSON.stringify(message, withoutMarks)).digest('base64');

/** Names of conversations that are no sub-agent's. The id of a sub-agent is the program's own word. */
const RESERVED = /^(main|title|count_tokens)(-\d+)?$/;

function nameOf(label: CallLabel): string {
  if (label.kind !== 'subagent') return label.kind;
  return RESERVED.test(label.id) ? `subagent-${label.id}` : label.id;
}

/** How many messages of the request are known in this order. */
function common({ known }: Thread, request: readonly Message[], digests: readonly string[]): number {
  let same = 0;
  while (same < known.length && same < request.length) {
    const expected = known[same];
    if (expected === null ? request[same]!.role !== 'assistant' : expected !== digests[same]) break;
    same += 1;
  }
  return same;
}

const opening = (request: readonly Message[]): number => {
  const first = request.findIndex(({ role }) => role !== 'system');
  return first < 0 ? request.length : first + 1;
};

export function createThreads(): CallThreads {
  const threads = new Map<string, Thread[]>();
  return {
    add(label, request, reply) {
      const base = nameOf(label);
      const siblings = threads.get(base) ?? [];
      threads.set(base, siblings);
      const digests = request.map(digest);
      const found = siblings
        .map((thread) => ({ thread, same: common(thread, request, digests) }))
        .sort((a, b) => b.same - a.same)[0];
      // The same task at the beginning is the same conversation, also when what came later was rewritten.
      const goesOn =
        found !== undefined && found.same >= Math.min(opening(request), found.thread.known.length);
      const thread = goesOn
        ? found.thread
        : { name: siblings.length === 0 ? base : `${base}-${siblings.length + 1}`, known: [] };
      if (!goesOn) siblings.push(thread);
      const same = goesOn ? found.same : 0;
      thread.known.splice(same, thread.known.length, ...digests.slice(same), ...(reply ? [null] : []));
      const added = request.slice(same);
      return { thread: thread.name, messages: reply ? [...added, reply] : added };
    },
  };
}
