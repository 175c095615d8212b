/**
 * The other side of a dialect: how programs of others speak it to the gateway. A dialect that has it can be spoken by a program, and its
 * requests and replies can be written anew in another; both go through one form in between. A part that cannot be carried has a name there. Pure.
 */
import { words } from '../../base/text/words.ts';
import type { Message, ToolCall, ToolSpec, Usage, WireRequest } from '../model.ts';
import { asObject, asText } from './shapes.ts';

export type Refusal =
  | 'bad_request'
  | 'authentication'
  | 'payment'
  | 'not_found'
  | 'too_large'
  | 'unsupported'
  | 'upgrade';

export const STATUS: Readonly<Record<Refusal, number>> = {
  bad_request: 400,
  authentication: 401,
  // No 402 and no 429: clients that know neither of them as final would ask again.
  payment: 400,
  not_found: 404,
  too_large: 413,
  unsupported: 415,
  upgrade: 426,
};

export interface Route {
  readonly operation: WireRequest['operation'];
  /** The model, where the address names it. */
  readonly model: string | null;
}

export interface ProgramSide {
  /** The request that an address without its version means; a text says why it is not served. */
  route(path: string, query: URLSearchParams): Route | string | null;
  /** Addresses, with their version, that are meant for it whether they are served or not. */
  readonly sounds?: RegExp;
  /** Fields of a request; others are left out. */
  readonly known: ReadonlySet<string>;
  /** Fields beside the tools that switch on a tool which runs at the provider. */
  readonly toolFields: readonly string[];
  /** Fields that name what lies at the provider, which another attempt may have put there. */
  readonly stateFields: readonly string[];
  /** Whether an item of the history names such a thing. */
  isState?(item: unknown): boolean;
  /** Tools that the program runs itself, and by name the others in the list, which run at the provider. */
  sortTools(list: readonly unknown[]): { kept: unknown[]; names: string[] };
  /** Items of the history may bring tools of their own. */
  readonly itemsBringTools?: true;
  /** The conversation that a request carries, as messages of one form for all dialects: for the record, never to be sent. */
  recorded(request: RequestBody): Message[];
  read(request: RequestBody): CommonRequest;
  write(reply: CommonReply, origins: CommonRequest['origins']): WrittenReply;
  /** Errors of the gateway in its words, so that the program's own client reads them and does not try again. */
  errorBody(refusal: Refusal, message: string): RequestBody;
  /** The same as the last event of a stream that has begun already. */
  errorEvent(refusal: Refusal, message: string): string;
  /** Programs shorten a conversation that has become too long; each knows it by words of its provider. */
  tooLong(message: string): RequestBody;
  /** Default: the list as OpenAI and Anthropic have it. */
  modelList?(names: readonly string[]): unknown;
  /** The sign of life of a stream that waits; default: a comment. */
  readonly signOfLife?: string;
}

export type RequestBody = Readonly<Record<string, unknown>>;

/** A program's own view of a tool, where a function's name alone does not tell it. */
export interface ToolOrigin {
  readonly name: string;
  readonly namespace?: string;
  /** The tool is called with text in place of an object. */
  readonly custom?: true;
}

export interface CommonRequest {
  readonly messages: readonly Message[];
  readonly tools: readonly ToolSpec[];
  /** Parameters by the names of chat completions, as `model_kwargs` has them. */
  readonly parameters: RequestBody;
  /** Fields for which another protocol has no place. */
  readonly left: readonly string[];
  /** Origins by the names of `tools`. */
  readonly origins: ReadonlyMap<string, ToolOrigin>;
}

export interface CommonReply {
  readonly id: string;
  /** The model, as the program named it. */
  readonly model: string;
  readonly content: string;
  readonly toolCalls: readonly ToolCall[];
  /** The end in the words of chat completions. */
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

const IMAGES = 'images and files';

/** The text of a content. A part that is no text is named in its place, so that the model knows of it. */
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

/** The schema of a tool that is called with text, for a model that calls with objects. */
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

/** The parameters that are set: a parameter that is there is sent. */
export const given = (parameters: RequestBody): RequestBody =>
  Object.fromEntries(Object.entries(parameters).filter(([, value]) => value !== undefined && value !== null));

/** Arguments that are no object come as one with the text in it, so that the program can say what is wrong with it. */
export function objectOfText(text: string): RequestBody {
  if (text.trim() === '') return {};
  try {
    return asObject(JSON.parse(text)) ?? { unreadable_arguments: text };
  } catch {
    return { unreadable_arguments: text };
  }
}

const OPENAI_CODES: Readonly<Record<Refusal, string>> = {
  bad_request: 'invalid_prompt',
  authentication: 'invalid_api_key',
  payment: 'insufficient_quota',
  not_found: 'model_not_found',
  too_large: 'request_too_large',
  unsupported: 'unsupported_media_type',
  upgrade: 'upgrade_refused',
};

const openAiError = (code: string, message: string) => ({
  error: { message, type: 'invalid_request_error', param: null, code },
});

/** Errors as both of OpenAI's dialects have them. */
export const OPENAI_ERRORS = {
  code: (refusal: Refusal): string => OPENAI_CODES[refusal],
  errorBody: (refusal: Refusal, message: string): RequestBody => openAiError(OPENAI_CODES[refusal], message),
  tooLong: (message: string): RequestBody => openAiError('context_length_exceeded', message),
};

/** Fields of requests, by name. */
export const fieldsOf = (...texts: readonly string[]): ReadonlySet<string> => new Set(texts.flatMap(words));
export const SAMPLING = `
  temperature top_p top_k top_a min_p seed stop frequency_penalty presence_penalty repetition_penalty length_penalty logit_bias logprobs
  top_logprobs min_tokens stop_token_ids ignore_eos skip_special_tokens spaces_between_special_tokens include_stop_str_in_output
  guided_json guided_regex guided_choice guided_grammar structured_outputs do_sample random_seed safe_prompt
`;
export const USUAL =
  'model stream stream_options tools tool_choice parallel_tool_calls metadata user service_tier';
export const CACHED = 'prompt_cache_key prompt_cache_retention safety_identifier store';

/** A request may hold a million of them. */
export const LONGEST_NAME = 60;

/** The tools of a list by whether the program runs them, which the type of each says. */
export function sortedByType(list: readonly unknown[], runsHere: (tool: RequestBody) => boolean) {
  const names: string[] = [];
  const kept = list.filter((one) => {
    const tool = asObject(one) ?? {};
    if (runsHere(tool)) return true;
    names.push(String(tool.type ?? tool.name ?? 'unnamed').slice(0, LONGEST_NAME));
    return false;
  });
  return { kept, names };
}

/** Text where all of it is text; else the parts as they came. */
export function recordedContent(value: unknown): Message['content'] {
  if (typeof value === 'string' || value === null || value === undefined) return value ?? null;
  const parts: readonly unknown[] = Array.isArray(value) ? value : [];
  const texts = parts.map((part) => (typeof part === 'string' ? part : asText(asObject(part)?.text)));
  return texts.every((text) => text !== null) ? texts.join('\n') : parts;
}

export const recordedTurn = (content: Message['content'], calls: readonly ToolCall[]): Message => ({
  role: 'assistant',
  content,
  ...(calls.length > 0 && { tool_calls: calls }),
});

export const recordedResult = (id: unknown, content: unknown): Message => ({
  role: 'tool',
  tool_call_id: asText(id) ?? '',
  content:
    typeof content === 'object' && !Array.isArray(content)
      ? JSON.stringify(content)
      : recordedContent(content),
});

export const recordedSystem = (content: unknown): Message[] => {
  const said = recordedContent(content);
  return said === null || said.length === 0 ? [] : [{ role: 'system', content: said }];
};
