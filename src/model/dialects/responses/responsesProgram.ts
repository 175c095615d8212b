/** OpenAI's Responses API as programs speak it. Pure. */
import { words } from '../../../base/text/words.ts';
import type { Message, ToolCall, ToolSpec } from '../../model.ts';
import {
  assistantOf,
  CACHED,
  type CommonReply,
  type CommonRequest,
  fieldsOf,
  given,
  OPENAI_ERRORS,
  objectOfText,
  objectsOf,
  type ProgramSide,
  type RequestBody,
  recordedContent,
  recordedResult,
  recordedSystem,
  recordedTurn,
  SAMPLING,
  sortedByType,
  systemOf,
  TEXT_INPUT,
  type ToolOrigin,
  textOf,
  toolCallOf,
  toolOf,
  USUAL,
  unread,
  userOf,
  type WrittenReply,
} from '../programSide.ts';
import { asObject, asText } from '../shapes.ts';

const RUN_HERE = /^(function|custom|local_shell|shell|apply_patch|computer|computer_use_preview)$/;

function runsHere({ type, execution, environment, tools }: RequestBody): boolean {
  if (typeof type !== 'string') return false;
  if (type === 'tool_search') return execution === 'client';
  const where = asObject(environment)?.type;
  if (type === 'shell' && where !== undefined && where !== 'local') return false;
  if (type === 'namespace')
    return Array.isArray(tools) && tools.every((inner) => runsHere(asObject(inner) ?? {}));
  return RUN_HERE.test(type);
}

export const responsesProgram: ProgramSide = {
  route: (path) => (path === '/responses' ? { operation: 'generate', model: null } : null),
  known: fieldsOf(
    USUAL,
    CACHED,
    SAMPLING,
    `input instructions include reasoning text truncation max_output_tokens max_tool_calls client_metadata context_management
      chat_template_kwargs`,
  ),
  toolFields: [],
  stateFields: ['previous_response_id', 'conversation', 'prompt', 'background'],
  isState(item) {
    const { type, role, id } = asObject(item) ?? {};
    return type === 'item_reference' || (type === undefined && role === undefined && id !== undefined);
  },
  sortTools: (list) => sortedByType(list, runsHere),
  itemsBringTools: true,
  recorded: responsesMessages,
  read: fromResponses,
  write: responsesAnswer,
  ...OPENAI_ERRORS,
  errorEvent(refusal, message) {
    const failed = {
      type: 'response.failed',
      sequence_number: 0,
      response: {
        id: 'resp_gateway',
        object: 'response',
        status: 'failed',
        error: { code: OPENAI_ERRORS.code(refusal), message },
        output: [],
      },
    };
    return `event: response.failed\ndata: ${JSON.stringify(failed)}\n\n`;
  },
};

/** Replies of the model lie there in items of their own: thought, text and calls of one turn follow each other. */
function responsesMessages(request: RequestBody): Message[] {
  const messages = recordedSystem(request.instructions);
  if (typeof request.input === 'string') return [...messages, { role: 'user', content: request.input }];
  let said: { texts: string[]; calls: ToolCall[] } | null = null;
  const close = (): void => {
    if (said) messages.push(recordedTurn(said.texts.join('\n'), said.calls));
    said = null;
  };
  for (const item of objectsOf(request.input)) {
    const type = asText(item.type) ?? 'message';
    if (type === 'reasoning' || type.endsWith('_call') || (type === 'message' && item.role === 'assistant')) {
      said ??= { texts: [], calls: [] };
      if (type === 'message') said.texts.push(recordedText(item.content));
      else if (type !== 'reasoning')
        said.calls.push(
          toolCallOf(item.call_id ?? item.id, item.name ?? type, item.arguments ?? item.input ?? item.action),
        );
      continue;
    }
    close();
    if (type.endsWith('_output')) messages.push(recordedResult(item.call_id, item.output));
    else if (type === 'message')
      messages.push({
        role: item.role === 'user' ? 'user' : 'system',
        content: recordedContent(item.content),
      });
    else messages.push({ role: 'user', content: [item] });
  }
  close();
  return messages;
}

const recordedText = (content: unknown): string => {
  const said = recordedContent(content);
  return typeof said === 'string' ? said : JSON.stringify(said ?? '');
};

const READ = words(`
  model input instructions tools tool_choice parallel_tool_calls stream reasoning max_output_tokens temperature top_p text
`);
const QUIET = words(`
  store include prompt_cache_key prompt_cache_retention client_metadata metadata user service_tier truncation stream_options
  safety_identifier background
`);

/** Names of functions may not hold a dot or a slash: a tool of a namespace gets both names in one. */
const flat = (namespace: string | undefined, name: string): string =>
  namespace === undefined ? name : `${namespace}__${name}`;

interface Tools {
  readonly specs: ToolSpec[];
  readonly origins: Map<string, ToolOrigin>;
}

function addTool(tool: RequestBody, namespace: string | undefined, into: Tools, left: Set<string>): void {
  const name = asText(tool.name) ?? '';
  if (tool.type === 'namespace') {
    for (const inner of objectsOf(tool.tools)) addTool(inner, name, into, left);
    return;
  }
  const custom = tool.type === 'custom';
  if (tool.type !== 'function' && !custom) {
    left.add(`the tool ${String(tool.type).slice(0, 60)}`);
    return;
  }
  const named = flat(namespace, name);
  if (custom || namespace !== undefined)
    into.origins.set(named, {
      name,
      ...(namespace !== undefined && { namespace }),
      ...(custom && { custom }),
    });
  into.specs.push(toolOf(named, tool.description, custom ? TEXT_INPUT : tool.parameters));
}

function callIn(item: RequestBody): ToolCall {
  const name = flat(asText(item.namespace) ?? undefined, asText(item.name) ?? '');
  const input = item.type === 'custom_tool_call' ? { input: item.input } : item.arguments;
  return toolCallOf(item.call_id, name, input);
}

/** Thought, text and calls of one turn are items that follow each other. */
function messagesOf(request: RequestBody, left: Set<string>): Message[] {
  const messages = systemOf(textOf(request.instructions, left));
  if (typeof request.input === 'string') return [...messages, ...userOf(request.input)];
  let texts: string[] = [];
  let calls: ToolCall[] = [];
  const close = (): void => {
    messages.push(...assistantOf(texts, calls));
    texts = [];
    calls = [];
  };
  for (const item of objectsOf(request.input)) {
    const type = asText(item.type) ?? 'message';
    if (type === 'reasoning') left.add('thinking');
    else if (type === 'function_call' || type === 'custom_tool_call') calls.push(callIn(item));
    else if (type === 'message' && item.role === 'assistant') texts.push(textOf(item.content, left));
    else {
      close();
      if (type === 'function_call_output' || type === 'custom_tool_call_output')
        messages.push({
          role: 'tool',
          tool_call_id: asText(item.call_id) ?? '',
          content: textOf(item.output, left),
        });
      else if (type !== 'message') left.add(`items of the type ${type.slice(0, 60)}`);
      else if (item.role === 'user') messages.push(...userOf(textOf(item.content, left)));
      else messages.push(...systemOf(textOf(item.content, left)));
    }
  }
  close();
  return messages;
}

function choiceOf(choice: unknown): unknown {
  const named = asObject(choice);
  if (!named) return choice;
  return named.name === undefined ? undefined : { type: 'function', function: { name: named.name } };
}

function fromResponses(request: RequestBody): CommonRequest {
  const left = new Set<string>();
  unread(request, READ, QUIET, left);
  if (asObject(request.text)?.format !== undefined) left.add('text.format');
  const tools: Tools = { specs: [], origins: new Map() };
  for (const tool of objectsOf(request.tools)) addTool(tool, undefined, tools, left);
  return {
    messages: messagesOf(request, left),
    tools: tools.specs,
    parameters: given({
      max_tokens: request.max_output_tokens,
      temperature: request.temperature,
      top_p: request.top_p,
      tool_choice: choiceOf(request.tool_choice),
      parallel_tool_calls: request.parallel_tool_calls,
      reasoning_effort: asObject(request.reasoning)?.effort,
    }),
    left: [...left],
    origins: tools.origins,
  };
}

type Origins = ReadonlyMap<string, ToolOrigin>;

function callItem(
  call: CommonReply['toolCalls'][number],
  index: number,
  id: string,
  origins: Origins,
): RequestBody {
  const { name, arguments: written } = call.function;
  const origin = origins.get(name);
  const base = { id: `fc_${id}_${index}`, call_id: call.id, status: 'completed', name: origin?.name ?? name };
  const space = origin?.namespace === undefined ? {} : { namespace: origin.namespace };
  if (!origin?.custom) return { type: 'function_call', ...base, ...space, arguments: written };
  const { input } = objectOfText(written);
  return { type: 'custom_tool_call', ...base, ...space, input: typeof input === 'string' ? input : written };
}

/** The event between the beginning of an item and its end. */
function deltas(item: RequestBody, output_index: number): (readonly [string, RequestBody])[] {
  const at = { item_id: item.id, output_index };
  if (item.type === 'message') {
    const [part] = item.content as RequestBody[];
    const where = { ...at, content_index: 0 };
    return [
      ['response.content_part.added', { ...where, part: { ...part, text: '' } }],
      ['response.output_text.delta', { ...where, delta: part!.text }],
      ['response.output_text.done', { ...where, text: part!.text }],
      ['response.content_part.done', { ...where, part }],
    ];
  }
  const [kind, text] =
    item.type === 'function_call'
      ? (['function_call_arguments', item.arguments] as const)
      : (['custom_tool_call_input', item.input] as const);
  const said = item.type === 'function_call' ? { arguments: text } : { input: text };
  return [
    [`response.${kind}.delta`, { ...at, delta: text }],
    [`response.${kind}.done`, { ...at, ...said }],
  ];
}

function begun(item: RequestBody): RequestBody {
  if (item.type === 'message') return { ...item, status: 'in_progress', content: [] };
  return { ...item, status: 'in_progress', ...('arguments' in item ? { arguments: '' } : { input: '' }) };
}

const CUT: Readonly<Record<string, string>> = {
  length: 'max_output_tokens',
  content_filter: 'content_filter',
};

function responsesAnswer(reply: CommonReply, origins: Origins): WrittenReply {
  const { id, model, content, toolCalls, finish, usage } = reply;
  const part = { type: 'output_text', text: content, annotations: [] };
  const said = { type: 'message', id: `msg_${id}`, role: 'assistant', status: 'completed', content: [part] };
  const output: RequestBody[] = [
    ...(content === '' ? [] : [said]),
    ...toolCalls.map((call, index) => callItem(call, index, id, origins)),
  ];
  const input = usage.input + usage.cacheRead + usage.cacheWrite;
  const reason = CUT[finish];
  const base = { id: `resp_${id}`, object: 'response', created_at: Math.floor(Date.now() / 1000), model };
  const whole = {
    ...base,
    status: reason === undefined ? 'completed' : 'incomplete',
    incomplete_details: reason === undefined ? null : { reason },
    error: null,
    output,
    usage: {
      input_tokens: input,
      input_tokens_details: { cached_tokens: usage.cacheRead },
      output_tokens: usage.output,
      output_tokens_details: { reasoning_tokens: usage.reasoning },
      total_tokens: input + usage.output,
    },
  };
  const open = { ...base, status: 'in_progress', error: null, output: [], usage: null };
  const events: (readonly [string, RequestBody])[] = [
    ['response.created', { response: open }],
    ['response.in_progress', { response: open }],
    ...output.flatMap((item, output_index) => [
      ['response.output_item.added', { output_index, item: begun(item) }] as const,
      ...deltas(item, output_index),
      ['response.output_item.done', { output_index, item }] as const,
    ]),
    [`response.${whole.status}`, { response: whole }],
  ];
  return {
    whole,
    events: events.map(([type, data], sequence_number) => [type, { type, sequence_number, ...data }]),
  };
}
