/**
 * What in a request would make the provider itself reach out: tools that it runs, addresses that it fetches, state that it keeps for other
 * requests. In a container without network this would be the one way out. Pure.
 */
import type { DialectName } from '../model/dialects/dialectName.ts';
import { asObject } from '../model/dialects/shapes.ts';

/** Tools of the provider's making that the program runs itself, by type. Whatever is not listed runs at the provider. */
const RUN_HERE: Readonly<Record<'chat' | 'responses' | 'messages', readonly RegExp[]>> = {
  chat: [/^(function|custom)$/],
  responses: [/^(function|custom|local_shell|shell|apply_patch|computer|computer_use_preview)$/],
  // The search for tools reads the request's own list and reaches nothing.
  messages: [/^custom$/, /^(bash|text_editor|computer|memory|tool_search_tool_\w+)_\d{8}$/],
};

const GEMINI_RUN_HERE = new Set([
  'functionDeclarations',
  'function_declarations',
  'computerUse',
  'computer_use',
]);

/** Fields beside the tools that switch such a tool on. */
const FIELDS: Readonly<Record<DialectName, readonly string[]>> = {
  chat: ['web_search_options', 'plugins', 'search_parameters', 'enable_search'],
  responses: [],
  messages: ['mcp_servers', 'container'],
  gemini: [],
};

/** Fields that name what lies at the provider, which another attempt may have put there. */
const STATE: Readonly<Record<DialectName, readonly string[]>> = {
  chat: [],
  responses: ['previous_response_id', 'conversation', 'prompt', 'background'],
  messages: [],
  gemini: ['cachedContent', 'cached_content'],
};

const isSet = (value: unknown): boolean => value !== undefined && value !== null && value !== false;

type Body = Readonly<Record<string, unknown>>;

export interface FoundTools {
  /** The list as it may be sent; null when nothing has to change. */
  readonly tools: readonly unknown[] | null;
  readonly fields: readonly string[];
  /** What runs at the provider, by name. */
  readonly names: readonly string[];
}

function runsHere(dialect: 'chat' | 'responses' | 'messages', tool: Body): boolean {
  const type = tool.type;
  if (type === undefined || type === null) return dialect === 'messages';
  if (typeof type !== 'string') return false;
  if (dialect === 'responses') {
    if (type === 'tool_search') return tool.execution === 'client';
    const where = asObject(tool.environment)?.type;
    if (type === 'shell' && where !== undefined && where !== 'local') return false;
    if (type === 'namespace')
      return (
        Array.isArray(tool.tools) && tool.tools.every((inner) => runsHere(dialect, asObject(inner) ?? {}))
      );
  }
  return RUN_HERE[dialect].some((known) => known.test(type));
}

function geminiTools(list: readonly unknown[]): { kept: unknown[]; names: string[] } {
  const names: string[] = [];
  const kept = list.flatMap((tool) => {
    const entries = Object.entries(asObject(tool) ?? {});
    const own = entries.filter(([name]) => GEMINI_RUN_HERE.has(name));
    names.push(...entries.filter(([name]) => !GEMINI_RUN_HERE.has(name)).map(([name]) => name));
    return own.length === 0 ? [] : [Object.fromEntries(own)];
  });
  return { kept, names };
}

function otherTools(dialect: 'chat' | 'responses' | 'messages', list: readonly unknown[]) {
  const names: string[] = [];
  const kept = list.filter((one) => {
    const tool = asObject(one) ?? {};
    if (runsHere(dialect, tool)) return true;
    names.push(String(tool.type ?? tool.name ?? 'unnamed').slice(0, 60));
    return false;
  });
  return { kept, names };
}

export function toolsAtProvider(dialect: DialectName, body: Body): FoundTools {
  const fields = FIELDS[dialect].filter((name) => isSet(body[name]));
  if (body.tools === undefined || body.tools === null) return { tools: null, fields, names: fields };
  const list: readonly unknown[] = Array.isArray(body.tools) ? body.tools : [body.tools];
  const { kept, names } = dialect === 'gemini' ? geminiTools(list) : otherTools(dialect, list);
  return { tools: names.length > 0 ? kept : null, fields, names: [...names, ...fields] };
}

export const stateAtProvider = (dialect: DialectName, body: Body): readonly string[] =>
  STATE[dialect].filter((name) => isSet(body[name]));

/** Where the conversation stands; tools and their schemas are no content. */
const CONTENT = ['messages', 'input', 'contents', 'system', 'systemInstruction', 'system_instruction'];

/** What a program's own tools are called with is its own affair. */
const OPAQUE = new Set(['tool_use', 'function_call', 'custom_tool_call', 'local_shell_call']);
const OPAQUE_KEYS = new Set([
  'functionCall',
  'function_call',
  'functionResponse',
  'function_response',
  'arguments',
]);

const URL_KEYS = new Set(['image_url', 'audio_url', 'video_url', 'file_url']);
const ID_KEYS = new Set(['file_id', 'fileUri', 'file_uri']);

const isAddress = (value: unknown): boolean => {
  const text = typeof value === 'string' ? value : asObject(value)?.url;
  return typeof text === 'string' && !/^data:/i.test(text.trimStart());
};

/** What the content asks the provider to fetch; null when there is nothing. */
export function fetchedByProvider(body: Body): string | null {
  const stack: unknown[] = CONTENT.map((name) => body[name]);
  while (stack.length > 0) {
    const value = stack.pop();
    if (Array.isArray(value)) for (const item of value) stack.push(item);
    const object = Array.isArray(value) ? null : asObject(value);
    if (!object || OPAQUE.has(String(object.type))) continue;
    if (object.type === 'url' || object.type === 'file') {
      const address = object.url ?? object.file_id;
      if (typeof address === 'string') return String(object.type);
    }
    for (const [name, inner] of Object.entries(object)) {
      if (URL_KEYS.has(name) && isAddress(inner)) return name;
      if (ID_KEYS.has(name) && typeof inner === 'string') return name;
      if (typeof inner === 'object' && inner !== null && !OPAQUE_KEYS.has(name)) stack.push(inner);
    }
  }
  return null;
}
