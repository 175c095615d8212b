/**
 * The policy: requests that a program may make, and the bytes that go out instead. A request must not make the provider itself reach out: by tools
 * that it runs, addresses that it fetches, or state that it keeps for other requests. For a container without network this would be the one way
 * out. Pure.
 */

import type { IncomingHttpHeaders } from 'node:http';
import { DIALECTS, type DialectName } from '../../model/dialects/dialects.ts';
import type { ProgramSide, Refusal, RequestBody, Route } from '../../model/dialects/programSide.ts';
import { asObject } from '../../model/dialects/shapes.ts';
import type { GatewayConfig } from './gatewayConfig.ts';
import { sideOf } from './routes.ts';

// Spans of the values of a JSON object among its bytes, so that one of them can be replaced and every other byte stays. A key that
// stands twice in an object is refused: one reader takes the first, another the last, and what was looked at is not what is sent (observed:
// tests/agent/gateway/policy.test.ts).

interface Span {
  readonly start: number;
  readonly end: number;
}

export class AmbiguousJson extends Error {
  override readonly name = 'AmbiguousJson';
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const MAX_DEPTH = 200;

/**
 * A conversation of a thousand turns has twenty thousand. Reading millions would hold everybody else up (observed:
 * tests/agent/gateway/policy.test.ts).
 */
const MOST_VALUES = 300_000;

/** Counts what begins a value, outside of strings; the bytes may be anything. */
export function holdsTooMuch(bytes: Buffer): boolean {
  let values = 0;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at];
    if (byte === QUOTE) {
      at = closingQuote(bytes, at + 1);
      if (at < 0) return false;
    } else if (byte === COMMA || byte === OPEN_BRACE || byte === OPEN_BRACKET) {
      values += 1;
      if (values > MOST_VALUES) return true;
    }
  }
  return false;
}

/** The next quote that no backslash takes away; -1 where there is none. */
function closingQuote(bytes: Buffer, from: number): number {
  for (let at = bytes.indexOf(QUOTE, from); at >= 0; at = bytes.indexOf(QUOTE, at + 1)) {
    let back = at - 1;
    while (back >= from && bytes[back] === BACKSLASH) back -= 1;
    if ((at - 1 - back) % 2 === 0) return at;
  }
  return -1;
}

/** Bytes that end a number or a word. */
const ends = (byte: number): boolean =>
  byte <= 0x20 || byte === COMMA || byte === CLOSE_BRACE || byte === CLOSE_BRACKET;

/** The bytes are known to be JSON: JSON.parse has read them. */
export function spansOf(bytes: Buffer): ReadonlyMap<string, Span> {
  let at = 0;
  const top = new Map<string, Span>();

  const space = (): void => {
    while (bytes[at]! <= 0x20) at += 1;
  };
  const endOfString = (): void => {
    at = closingQuote(bytes, at + 1);
    if (at < 0) throw new AmbiguousJson('a string does not end');
    at += 1;
  };
  const key = (): string => {
    const start = at;
    endOfString();
    const text = bytes.toString('utf8', start + 1, at - 1);
    return text.includes('\\') ? String(JSON.parse(bytes.toString('utf8', start, at))) : text;
  };
  const object = (depth: number): void => {
    const keys = new Set<string>();
    at += 1;
    for (;;) {
      space();
      if (bytes[at] === CLOSE_BRACE) break;
      if (bytes[at] === COMMA) {
        at += 1;
        space();
      }
      const name = key();
      if (keys.has(name))
        throw new AmbiguousJson(`the key "${name.slice(0, 60)}" stands twice in one object`);
      keys.add(name);
      space();
      at += 1;
      space();
      const start = at;
      value(depth + 1);
      if (depth === 0) top.set(name, { start, end: at });
    }
    at += 1;
  };
  const array = (depth: number): void => {
    at += 1;
    for (;;) {
      space();
      if (bytes[at] === CLOSE_BRACKET) break;
      if (bytes[at] === COMMA) {
        at += 1;
        space();
      }
      value(depth + 1);
    }
    at += 1;
  };
  const value = (depth: number): void => {
    if (depth > MAX_DEPTH) throw new AmbiguousJson('it is nested too deeply');
    const first = bytes[at];
    if (first === QUOTE) endOfString();
    else if (first === OPEN_BRACE) object(depth);
    else if (first === OPEN_BRACKET) array(depth);
    else while (at < bytes.length && !ends(bytes[at]!)) at += 1;
  };
  space();
  value(0);
  return top;
}

/** The bytes with some values replaced; everything else is as it was. */
export function spliced(bytes: Buffer, changes: readonly { span: Span; text: string }[]): Buffer {
  const parts: Buffer[] = [];
  let from = 0;
  for (const { span, text } of changes.toSorted((a, b) => a.span.start - b.span.start)) {
    parts.push(bytes.subarray(from, span.start), Buffer.from(text));
    from = span.end;
  }
  return Buffer.concat([...parts, bytes.subarray(from)]);
}

export interface Policy {
  readonly config: GatewayConfig;
  /** The model's id over the wire, and its name in the configuration: a program may use either. */
  readonly model: string;
  readonly name: string;
  /** The program may ask for any name. */
  readonly anyModel?: boolean;
}

export interface CallRequest extends Route {
  readonly dialect: DialectName;
  readonly body: Buffer;
}

/** A request with the parts at which the policy does not look. */
export interface SessionRequest extends CallRequest {
  readonly query: string;
  readonly headers: IncomingHttpHeaders;
}

export interface Allowed {
  readonly ok: true;
  readonly body: Buffer;
  /** The request as the program wrote it. */
  readonly request: RequestBody;
  readonly operation: Route['operation'];
  readonly modelAsked: string;
  readonly model: string;
  readonly maxOutput: number | null;
  readonly hasTools: boolean;
  /** Tools that run at the provider, by name. */
  readonly stripped: readonly string[];
  /** Fields that nobody here knows. */
  readonly unknown: readonly string[];
}

interface Refused {
  readonly ok: false;
  readonly refusal: Refusal;
  readonly message: string;
  /** The note for the record; null where the request was only broken. */
  readonly note: string | null;
}

const broken = (message: string): Refused => ({ ok: false, refusal: 'bad_request', message, note: null });
const forbidden = (refusal: Refusal, message: string): Refused => ({
  ok: false,
  refusal,
  message,
  note: message,
});

function parse(
  bytes: Buffer,
): { request: Record<string, unknown>; spans: ReadonlyMap<string, Span> } | Refused {
  let request: Record<string, unknown> | null;
  if (holdsTooMuch(bytes)) return broken('the request holds more values than any conversation has');
  try {
    request = asObject(JSON.parse(bytes.toString('utf8')));
  } catch (error) {
    return broken(`the request is no JSON: ${(error as Error).message.slice(0, 200)}`);
  }
  if (!request) return broken('the request is no JSON object');
  try {
    return { request, spans: spansOf(bytes) };
  } catch (error) {
    if (!(error instanceof AmbiguousJson)) throw error;
    return forbidden('bad_request', `the request can be read in two ways: ${error.message}`);
  }
}

function modelFor({ config, model, name, anyModel }: Policy, asked: string): string | null {
  if (anyModel || asked === model || asked === name) return model;
  return Object.hasOwn(config.models, asked) ? config.models[asked]! : null;
}

function maxOutputOf(request: RequestBody): number | null {
  const generation = asObject(request.generationConfig) ?? asObject(request.generation_config);
  const limits = [
    request.max_output_tokens,
    request.max_completion_tokens,
    request.max_tokens,
    generation?.maxOutputTokens,
  ];
  const limit = limits.find((value) => typeof value === 'number' && Number.isFinite(value));
  return typeof limit === 'number' ? limit * answersAsked(request.n ?? generation?.candidateCount) : null;
}

/** The number of answers; each is written, and paid, by itself. */
const answersAsked = (count: unknown): number =>
  typeof count === 'number' && Number.isFinite(count) && count > 1 ? count : 1;

const MOST_NAMED = 8;
/** The most names in the record of a call (observed: tests/agent/gateway/policy.test.ts). */
const MOST_KEPT = 50;

/** A request may name as many as fit into it. */
export function nameList(names: readonly string[]): string {
  const unique = [...new Set(names)];
  const shown = unique.slice(0, MOST_NAMED).map((name) => name.slice(0, 60));
  return shown.join(', ') + (unique.length > MOST_NAMED ? ` and ${unique.length - MOST_NAMED} more` : '');
}

/** A choice that names what was taken out is a request that cannot be met any more. */
function forcesTool(request: RequestBody, names: readonly string[]): boolean {
  const choice = asObject(request.tool_choice);
  return choice !== null && [choice.type, choice.name].some((word) => names.includes(String(word)));
}

const DEPENDENT = ['tools', 'tool_choice', 'parallel_tool_calls', 'toolConfig', 'tool_config'];

/** The body without what runs at the provider and what nobody knows. Only what must change does. */
function without(
  bytes: Buffer,
  request: Record<string, unknown>,
  spans: ReadonlyMap<string, Span>,
  found: ReturnType<typeof toolsAtProvider>,
  unknown: readonly string[],
): Buffer {
  const fields = [...found.fields, ...unknown];
  if (fields.length === 0 && found.tools === null) return bytes;
  const empty = found.tools?.length === 0;
  if (fields.length === 0 && !empty && found.tools)
    return spliced(bytes, [{ span: spans.get('tools')!, text: JSON.stringify(found.tools) }]);
  const kept = { ...request, ...(found.tools && { tools: found.tools }) };
  const out = new Set([...fields, ...(empty ? DEPENDENT : [])]);
  return Buffer.from(
    JSON.stringify(Object.fromEntries(Object.entries(kept).filter(([name]) => !out.has(name)))),
  );
}

/** The refusal of a request that no change would mend. */
function refusalOf(
  { config }: Policy,
  dialect: DialectName,
  request: Record<string, unknown>,
): Refused | null {
  const state = stateAtProvider(dialect, request);
  if (state.length > 0)
    return forbidden(
      'bad_request',
      `${state.join(', ')}: requests must be whole, nothing is kept at the provider`,
    );
  const fetched = fetchedByProvider(sideOf(dialect), request);
  if (fetched !== null)
    return forbidden(
      'bad_request',
      `the provider would fetch something (${fetched.slice(0, 60)}): send the bytes themselves`,
    );
  const { names } = toolsAtProvider(sideOf(dialect), request);
  if (names.length > 0 && (config.provider_tools === 'refuse' || forcesTool(request, names)))
    return forbidden('bad_request', `tools that run at the provider are refused: ${nameList(names)}`);
  return null;
}

export function applyPolicy(policy: Policy, asked: CallRequest): Allowed | Refused {
  const parsed = parse(asked.body);
  if ('ok' in parsed) return parsed;
  const { request, spans } = parsed;
  const { dialect } = asked;
  const name = asked.model ?? request.model;
  if (typeof name !== 'string') return broken('the request names no model');
  const model = modelFor(policy, name);
  if (model === null)
    return forbidden(
      'not_found',
      `the model "${name.slice(0, 100)}" is not this arm's: ask for "${policy.model}", or name it in gateway.models`,
    );
  const refusal = refusalOf(policy, dialect, request);
  if (refusal !== null) return refusal;
  const found = toolsAtProvider(sideOf(dialect), request);
  const unknown = unknownFields(sideOf(dialect), request);
  const body = without(asked.body, request, spans, found, unknown);
  // `functions` is the older form of chat.
  const tools = [found.tools ?? request.tools, request.functions];
  return {
    ok: true,
    body: renamed(body, asked.model === null && model !== name ? model : null),
    request,
    operation: asked.operation === 'generate' && request.stream === true ? 'stream' : asked.operation,
    modelAsked: name,
    model,
    maxOutput: maxOutputOf(request),
    hasTools: tools.some((list) => Array.isArray(list) && list.length > 0),
    stripped: [...new Set(found.names)].slice(0, MOST_KEPT),
    unknown,
  };
}

const renamed = (body: Buffer, model: string | null): Buffer =>
  model === null ? body : spliced(body, [{ span: spansOf(body).get('model')!, text: JSON.stringify(model) }]);

/** Classes of service at the listed price. */
const USUAL_TIERS: ReadonlySet<unknown> = new Set(['auto', 'default', 'standard', 'standard_only', null]);

/** Fields that are left out, by name. Fields that another rule looks at are refused or told by their own name. */
function unknownFields(
  { known, toolFields, stateFields }: ProgramSide,
  body: RequestBody,
): readonly string[] {
  return Object.keys(body).filter((name) => {
    if (toolFields.includes(name) || stateFields.includes(name)) return false;
    if (name === 'service_tier') return !USUAL_TIERS.has(body[name]);
    return !known.has(name) && typeof body[name] !== 'number' && body[name] !== null;
  });
}

const isSet = (value: unknown): boolean => value !== undefined && value !== null && value !== false;

interface FoundTools {
  /** The list as it may be sent; null when nothing has to change. */
  readonly tools: readonly unknown[] | null;
  readonly fields: readonly string[];
  /** Tools that run at the provider, by name. */
  readonly names: readonly string[];
}

function toolsAtProvider(side: ProgramSide, body: RequestBody): FoundTools {
  const fields = side.toolFields.filter((name) => isSet(body[name]));
  if (body.tools === undefined || body.tools === null) return { tools: null, fields, names: fields };
  const { kept, names } = side.sortTools(Array.isArray(body.tools) ? body.tools : [body.tools]);
  return { tools: names.length > 0 ? kept : null, fields, names: [...names, ...fields] };
}

function stateAtProvider(dialect: DialectName, body: RequestBody): readonly string[] {
  const { stateFields, isState } = sideOf(dialect);
  const history = body[DIALECTS[dialect].historyIn];
  const items = isState && Array.isArray(history) && history.some(isState);
  return [...stateFields.filter((name) => isSet(body[name])), ...(items ? ['item_reference'] : [])];
}

/** Fields of the conversation; tools and their schemas are no content. */
const CONTENT = ['messages', 'input', 'contents', 'system', 'systemInstruction', 'system_instruction'];

/** Arguments and results of a program's own tools, and marks in an answer, are nobody's to fetch. */
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

/** An address of any protocol, also without one; bytes in a `data:` address are no address. */
const LOOKS_FETCHABLE = /^\s{0,99}(?:[a-z][a-z0-9+.-]{0,30}:)?\/\//i;

/** Whether the value under this name is something to fetch. */
function isFetched(name: string, value: unknown): boolean {
  if (URL_KEYS.has(name)) return isAddress(value);
  if (typeof value !== 'string') return false;
  return ID_KEYS.has(name) || (!TEXT_KEYS.has(name) && LOOKS_FETCHABLE.test(value));
}

const roots = (body: RequestBody): [name: string, value: unknown][] => {
  const inner = asObject(body.generateContentRequest ?? body.generate_content_request);
  return [body, ...(inner ? [inner] : [])].flatMap((each) =>
    CONTENT.map((name): [string, unknown] => ['content', each[name]]),
  );
};

/** The address that the content asks the provider to fetch; null when there is none. */
function fetchedByProvider({ itemsBringTools, sortTools }: ProgramSide, body: RequestBody): string | null {
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
        if (itemsBringTools && Array.isArray(inner) && sortTools(inner).names.length > 0) return 'tools';
      } else if (!OPAQUE_KEYS.has(key)) stack.push([key, inner]);
    }
  }
  return null;
}
