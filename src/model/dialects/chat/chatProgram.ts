/** Chat completions as programs speak them. Pure. */
import type { Message, Usage } from '../../model.ts';
import {
  assistantOf,
  CACHED,
  type CommonReply,
  type CommonRequest,
  fieldsOf,
  given,
  OPENAI_ERRORS,
  objectsOf,
  type ProgramSide,
  type RequestBody,
  recordedContent,
  recordedResult,
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

export const chatProgram: ProgramSide = {
  route: (path) => (path === '/chat/completions' ? { operation: 'generate', model: null } : null),
  known: fieldsOf(
    USUAL,
    CACHED,
    SAMPLING,
    `messages functions function_call max_tokens max_completion_tokens n response_format reasoning reasoning_effort reasoning_format
      reasoning_split include_reasoning thinking enable_thinking thinking_budget preserve_thinking verbosity modalities prediction usage
      chat_template_kwargs cache_control tool_stream think`,
  ),
  toolFields: ['web_search_options', 'plugins', 'search_parameters', 'enable_search'],
  stateFields: [],
  sortTools: (list) => sortedByType(list, ({ type }) => type === 'function' || type === 'custom'),
  recorded: chatMessages,
  read: fromChat,
  write: chatAnswer,
  ...OPENAI_ERRORS,
  errorEvent: (refusal, message) => `data: ${JSON.stringify(OPENAI_ERRORS.errorBody(refusal, message))}\n\n`,
};

function chatMessages(request: RequestBody): Message[] {
  return objectsOf(request.messages).map((message) => {
    const role = asText(message.role);
    if (role === 'tool' || role === 'function') return recordedResult(message.tool_call_id, message.content);
    if (role === 'assistant') {
      const calls = objectsOf(message.tool_calls).map((call) => {
        const named = asObject(call.function) ?? asObject(call.custom) ?? {};
        return toolCallOf(call.id, named.name, named.arguments ?? named.input);
      });
      return recordedTurn(recordedContent(message.content), calls);
    }
    return { role: role === 'user' ? 'user' : 'system', content: recordedContent(message.content) };
  });
}

const CARRIED = [
  ...['temperature', 'top_p', 'stop', 'seed', 'tool_choice', 'parallel_tool_calls', 'reasoning_effort'],
];
const READ = [...CARRIED, 'model', 'messages', 'tools', 'stream', 'max_tokens', 'max_completion_tokens'];
const QUIET = [
  ...['stream_options', 'user', 'store', 'metadata', 'service_tier', 'prompt_cache_key', 'safety_identifier'],
  ...['n', 'logprobs', 'frequency_penalty', 'presence_penalty', 'usage'],
];

function messageOf(message: RequestBody, left: Set<string>): Message[] {
  const text = textOf(message.content, left);
  switch (message.role) {
    case 'assistant': {
      const calls = objectsOf(message.tool_calls).map((call) => {
        const custom = asObject(call.custom);
        const named = asObject(call.function) ?? custom ?? {};
        return toolCallOf(call.id, named.name, custom ? { input: custom.input } : named.arguments);
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

function fromChat(request: RequestBody): CommonRequest {
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

function usageOf({ input, cacheRead, cacheWrite, output, reasoning }: Usage) {
  const prompt = input + cacheRead + cacheWrite;
  return {
    prompt_tokens: prompt,
    completion_tokens: output,
    total_tokens: prompt + output,
    prompt_tokens_details: { cached_tokens: cacheRead },
    completion_tokens_details: { reasoning_tokens: reasoning },
  };
}

function chatAnswer({ id, model, content, toolCalls, finish, usage }: CommonReply): WrittenReply {
  const base = { id, created: Math.floor(Date.now() / 1000), model };
  const calls = toolCalls.map(({ id: callId, type, function: called }) => ({
    id: callId,
    type,
    function: { name: called.name, arguments: called.arguments },
  }));
  const message = {
    role: 'assistant',
    content: content === '' && calls.length > 0 ? null : content,
    ...(calls.length > 0 && { tool_calls: calls }),
  };
  const chunk = (delta: unknown, finish_reason: string | null = null) => {
    const choices = [{ index: 0, delta, finish_reason }];
    return [null, { ...base, object: 'chat.completion.chunk', choices }] as const;
  };
  const counted = usageOf(usage);
  return {
    whole: {
      ...base,
      object: 'chat.completion',
      choices: [{ index: 0, message, finish_reason: finish }],
      usage: counted,
    },
    events: [
      chunk({ role: 'assistant', content: content === '' ? null : content }),
      ...calls.map((call, index) => chunk({ tool_calls: [{ index, ...call }] })),
      chunk({}, finish),
      [null, { ...base, object: 'chat.completion.chunk', choices: [], usage: counted }],
      [null, '[DONE]'],
    ],
  };
}
