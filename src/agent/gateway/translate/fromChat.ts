/** A request of chat completions in the common form. Pure. */
import { asObject, asText } from '../../../model/dialects/shapes.ts';
import type { Message } from '../../../model/model.ts';
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

const CARRIED = [
  ...['temperature', 'top_p', 'stop', 'seed', 'tool_choice', 'parallel_tool_calls', 'reasoning_effort'],
];
const READ = [...CARRIED, 'model', 'messages', 'tools', 'stream', 'max_tokens', 'max_completion_tokens'];
const QUIET = [
  ...['stream_options', 'user', 'store', 'metadata', 'service_tier', 'prompt_cache_key', 'safety_identifier'],
  ...['n', 'logprobs', 'frequency_penalty', 'presence_penalty', 'usage'],
];

function messageOf(message: Body, left: Set<string>): Message[] {
  const text = textOf(message.content, left);
  switch (message.role) {
    case 'assistant': {
      const calls = objectsOf(message.tool_calls).map((call) => {
        const custom = asObject(call.custom);
        const named = asObject(call.function) ?? custom ?? {};
        return callOf(call.id, named.name, custom ? { input: custom.input } : named.arguments);
      });
      return assistantOf([text], calls);
    }
    case 'tool':
      return [{ role: 'tool', tool_call_id: asText(message.tool_call_id) ?? '', content: text }];
    case 'system':
    case 'developer':
      return systemOf(text);
    default:
      return userOf(text);
  }
}

export function fromChat(request: Body): CommonRequest {
  const left = new Set<string>();
  unread(request, READ, QUIET, left);
  const origins = new Map<string, ToolOrigin>();
  const tools = objectsOf(request.tools).map((tool) => {
    const custom = asObject(tool.custom);
    const named = asObject(tool.function) ?? custom ?? {};
    if (custom) origins.set(String(custom.name), { name: String(custom.name), custom: true });
    return toolOf(named.name, named.description, custom ? TEXT_INPUT : named.parameters);
  });
  const kept = CARRIED.map((name) => [name, request[name]] as const);
  return {
    messages: objectsOf(request.messages).flatMap((message) => messageOf(message, left)),
    tools,
    parameters: given({
      max_tokens: request.max_completion_tokens ?? request.max_tokens,
      ...Object.fromEntries(kept),
    }),
    left: [...left],
    origins,
  };
}
