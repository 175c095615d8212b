/** A request of the Responses API in the common form. Pure. */
import { asObject, asText } from '../../../model/dialects/shapes.ts';
import type { Message, ToolCall, ToolSpec } from '../../../model/model.ts';
import {
  assistantOf,
  type Body,
  type CommonRequest,
  callOf,
  given,
  objectsOf,
  systemOf,
  TEXT_INPUT,
  type ToolOrigin,
  textOf,
  toolOf,
  unread,
  userOf,
} from './commonForm.ts';

const READ = [
  ...['model', 'input', 'instructions', 'tools', 'tool_choice', 'parallel_tool_calls', 'stream', 'reasoning'],
  ...['max_output_tokens', 'temperature', 'top_p', 'text'],
];
const QUIET = [
  ...[
    'store',
    'include',
    'prompt_cache_key',
    'prompt_cache_retention',
    'client_metadata',
    'metadata',
    'user',
  ],
  ...['service_tier', 'truncation', 'stream_options', 'safety_identifier', 'background'],
];

/** Names of functions may not hold a dot or a slash: a tool of a namespace gets both names in one. */
const flat = (namespace: string | undefined, name: string): string =>
  namespace === undefined ? name : `${namespace}__${name}`;

interface Tools {
  readonly specs: ToolSpec[];
  readonly origins: Map<string, ToolOrigin>;
}

function addTool(tool: Body, namespace: string | undefined, into: Tools, left: Set<string>): void {
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

function callIn(item: Body): ToolCall {
  const name = flat(asText(item.namespace) ?? undefined, asText(item.name) ?? '');
  const input = item.type === 'custom_tool_call' ? { input: item.input } : item.arguments;
  return callOf(item.call_id, name, input);
}

/** Thought, text and calls of one turn are items that follow each other. */
function messagesOf(request: Body, left: Set<string>): Message[] {
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

export function fromResponses(request: Body): CommonRequest {
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
