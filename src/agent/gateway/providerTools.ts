/**
 * What in a request would make the provider itself reach out: tools that it runs, addresses that it fetches, state that it keeps for other
 * requests. In a container without network this would be the one way out. Pure.
 */
import type { DialectName } from '../../model/dialects/dialects.ts';
import { asObject } from '../../model/dialects/shapes.ts';

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

/** A request may hold a million of them. */
const LONGEST_NAME = 60;

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
    names.push(
      ...entries.filter(([name]) => !GEMINI_RUN_HERE.has(name)).map(([name]) => name.slice(0, LONGEST_NAME)),
    );
    return own.length === 0 ? [] : [Object.fromEntries(own)];
  });
  return { kept, names };
}

function otherTools(dialect: 'chat' | 'responses' | 'messages', list: readonly unknown[]) {
  const names: string[] = [];
  const kept = list.filter((one) => {
    const tool = asObject(one) ?? {};
    if (runsHere(dialect, tool)) return true;
    names.push(String(tool.type ?? tool.name ?? 'unnamed').slice(0, LONGEST_NAME));
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

const itemOfState = (item: unknown): boolean => {
  const { type, role, id } = asObject(item) ?? {};
  return type === 'item_reference' || (type === undefined && role === undefined && id !== undefined);
};

export function stateAtProvider(dialect: DialectName, body: Body): readonly string[] {
  const fields = STATE[dialect].filter((name) => isSet(body[name]));
  const items = dialect === 'responses' && Array.isArray(body.input) && body.input.some(itemOfState);
  return items ? [...fields, 'item_reference'] : fields;
}

/** Fields that a rule of this file looks at: they are refused or told by their own name. */
export const fieldsLookedAt = (dialect: DialectName): readonly string[] => [
  ...FIELDS[dialect],
  ...STATE[dialect],
];

/** Where the conversation stands; tools and their schemas are no content. */
const CONTENT = ['messages', 'input', 'contents', 'system', 'systemInstruction', 'system_instruction'];

/** What a program's own tools are called with or give, and marks in an answer, are nobody's to fetch. */
const OPAQUE_KEYS = new Set([
  ...['arguments', 'args', 'input', 'action', 'operation', 'response'],
  ...['citations', 'annotations', 'summary'],
]);

/** Text that the model reads. */
const TEXT_KEYS = new Set([
  ...['text', 'content', 'output', 'stdout', 'stderr', 'thinking', 'refusal', 'title', 'source', 'name'],
  ...['reasoning', 'reasoning_content', 'reasoning_text'],
]);

const URL_KEYS = new Set(['image_url', 'audio_url', 'video_url', 'file_url']);
const ID_KEYS = new Set(['file_id', 'fileUri', 'file_uri', 'connector_id']);

const isAddress = (value: unknown): boolean => {
  const text = typeof value === 'string' ? value : asObject(value)?.url;
  return typeof text === 'string' && !/^data:/i.test(text.trimStart());
};

/** Of any protocol, also without one; bytes in a `data:` address are no address. */
const LOOKS_FETCHABLE = /^\s{0,99}(?:[a-z][a-z0-9+.-]{0,30}:)?\/\//i;

/** Whether the value under this name is something to fetch. */
function isFetched(name: string, value: unknown): boolean {
  if (URL_KEYS.has(name)) return isAddress(value);
  if (typeof value !== 'string') return false;
  return ID_KEYS.has(name) || (!TEXT_KEYS.has(name) && LOOKS_FETCHABLE.test(value));
}

/** Tools that come with an item of the conversation. */
const bringsTools = (dialect: DialectName, tools: unknown): boolean =>
  dialect === 'responses' && Array.isArray(tools) && otherTools(dialect, tools).names.length > 0;

const roots = (body: Body): [name: string, value: unknown][] => {
  const inner = asObject(body.generateContentRequest ?? body.generate_content_request);
  return [body, ...(inner ? [inner] : [])].flatMap((each) =>
    CONTENT.map((name): [string, unknown] => ['content', each[name]]),
  );
};

/** What the content asks the provider to fetch; null when there is nothing. */
export function fetchedByProvider(dialect: DialectName, body: Body): string | null {
  const stack = roots(body);
  while (stack.length > 0) {
    const [name, value] = stack.pop()!;
    if (isFetched(name, value)) return name;
    if (Array.isArray(value)) for (const item of value) stack.push([name, item]);
    const object = Array.isArray(value) ? null : asObject(value);
    if (!object) continue;
    if (object.type === 'url' || object.type === 'file') {
      const address = object.url ?? object.file_id;
      if (typeof address === 'string') return String(object.type);
    }
    for (const [key, inner] of Object.entries(object)) {
      if (key === 'tools') {
        if (bringsTools(dialect, inner)) return 'tools';
      } else if (!OPAQUE_KEYS.has(key)) stack.push([key, inner]);
    }
  }
  return null;
}
