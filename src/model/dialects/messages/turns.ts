/** From a history to the turns of the Messages API: user and assistant in alternation, each with its blocks. */
import type { Message, ToolCall } from '../../model.ts';
import { asObject } from '../shapes.ts';

export type Block = Readonly<Record<string, unknown>>;

export interface Turn {
  readonly role: 'user' | 'assistant';
  /** The messages it is made of, to see whether it is still the same. */
  readonly from: readonly Message[];
  readonly blocks: () => Block[];
}

const text = (value: string): Block => ({ type: 'text', text: value });

/** The API refuses a text block without text. */
export const textBlocks = (content: Message['content']): Block[] => {
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
export function turnsOf(messages: readonly Message[]): Turn[] {
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
