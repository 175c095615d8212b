/** Requests and replies in one form, between the protocol of a program and that of its model. What cannot be carried has a name here. Pure. */
import { asObject, asText } from '../../../model/dialects/shapes.ts';
import type { Message, ToolCall, ToolSpec, Usage } from '../../../model/model.ts';

export type RequestBody = Readonly<Record<string, unknown>>;

/** How a program knows a tool, where a function's name alone does not say it. */
export interface ToolOrigin {
  readonly name: string;
  readonly namespace?: string;
  /** Called with text in place of an object. */
  readonly custom?: true;
}

export interface CommonRequest {
  readonly messages: readonly Message[];
  readonly tools: readonly ToolSpec[];
  /** By the names of chat completions, as `model_kwargs` has them. */
  readonly parameters: RequestBody;
  /** What another protocol has no place for. */
  readonly left: readonly string[];
  /** By the names of `tools`. */
  readonly origins: ReadonlyMap<string, ToolOrigin>;
}

export interface CommonReply {
  readonly id: string;
  /** As the program named it. */
  readonly model: string;
  readonly content: string;
  readonly toolCalls: readonly ToolCall[];
  /** In the words of chat completions. */
  readonly finish: string;
  readonly usage: Usage;
}

/** A reply in the protocol of the program: the body of a plain answer, and the events of a streamed one. */
export interface WrittenReply {
  readonly whole: RequestBody;
  readonly events: readonly (readonly [name: string | null, data: unknown])[];
}

export const objectsOf = (value: unknown): RequestBody[] =>
  (Array.isArray(value) ? (value as unknown[]) : []).flatMap((item): RequestBody[] => {
    const object = asObject(item);
    return object ? [object] : [];
  });

export const IMAGES = 'images and files';

/** The text of a content. What is no text is named in its place, so that the model knows of it. */
export function textOf(content: unknown, left: Set<string>): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content))
    return content === null || content === undefined ? '' : JSON.stringify(content);
  return content
    .map((part) => {
      if (typeof part === 'string') return part;
      const text = asObject(part)?.text ?? asObject(part)?.refusal;
      if (typeof text === 'string') return text;
      left.add(IMAGES);
      return '[something that is no text, and was left out]';
    })
    .join('\n');
}

export const toolCallOf = (id: unknown, name: unknown, input: unknown): ToolCall => ({
  id: asText(id) ?? '',
  type: 'function',
  function: {
    name: asText(name) ?? '',
    arguments: typeof input === 'string' ? input : JSON.stringify(input ?? {}),
  },
});

export const toolOf = (name: unknown, description: unknown, parameters: unknown): ToolSpec => ({
  type: 'function',
  function: {
    name: asText(name) ?? '',
    description: asText(description) ?? '',
    parameters: asObject(parameters) ?? { type: 'object', properties: {} },
  },
});

/** What a tool that is called with text looks like to a model that calls with objects. */
export const TEXT_INPUT: RequestBody = {
  type: 'object',
  properties: { input: { type: 'string', description: 'the text that the tool is called with' } },
  required: ['input'],
};

/** Both texts and calls of one turn; nothing where it has neither. */
export function assistantOf(texts: readonly string[], calls: readonly ToolCall[]): Message[] {
  const content = texts.filter((text) => text !== '').join('\n');
  if (content === '' && calls.length === 0) return [];
  return [
    {
      role: 'assistant',
      content: content === '' ? null : content,
      ...(calls.length > 0 && { tool_calls: calls }),
    },
  ];
}

export const systemOf = (content: string): Message[] => (content === '' ? [] : [{ role: 'system', content }]);
export const userOf = (content: string): Message[] => (content === '' ? [] : [{ role: 'user', content }]);

/** Fields of a request that are carried nowhere and mean something. `quiet` are those whose loss changes no answer. */
export function unread(
  request: RequestBody,
  read: readonly string[],
  quiet: readonly string[],
  left: Set<string>,
): void {
  for (const [name, value] of Object.entries(request))
    if (value !== null && value !== undefined && !read.includes(name) && !quiet.includes(name))
      left.add(name);
}

/** Without what is not set: a parameter that is there is sent. */
export const given = (parameters: RequestBody): RequestBody =>
  Object.fromEntries(Object.entries(parameters).filter(([, value]) => value !== undefined && value !== null));

/** What is no object comes as one with the text in it, so that the program can say what is wrong with it. */
export function objectOfText(text: string): RequestBody {
  if (text.trim() === '') return {};
  try {
    return asObject(JSON.parse(text)) ?? { unreadable_arguments: text };
  } catch {
    return { unreadable_arguments: text };
  }
}
