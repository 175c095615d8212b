/** Anthropic's Messages API as programs speak it. Pure. */
import type { Message, ToolSpec } from '../../model.ts';
import {
  assistantOf,
  type CommonReply,
  type CommonRequest,
  fieldsOf,
  given,
  objectOfText,
  objectsOf,
  type ProgramSide,
  type Refusal,
  type RequestBody,
  recordedContent,
  recordedResult,
  recordedSystem,
  recordedTurn,
  SAMPLING,
  sortedByType,
  systemOf,
  textOf,
  toolCallOf,
  toolOf,
  USUAL,
  unread,
  userOf,
  type WrittenReply,
} from '../programSide.ts';
import { asObject, asText } from '../shapes.ts';

const ERRORS: Partial<Record<Refusal, string>> = {
  authentication: 'authentication_error',
  not_found: 'not_found_error',
  too_large: 'request_too_large',
};

const errorBody = (refusal: Refusal, message: string): RequestBody => ({
  type: 'error',
  error: { type: ERRORS[refusal] ?? 'invalid_request_error', message },
});

/** Tools of the provider's making that the program runs itself. The search for tools reads the request's own list and reaches nothing. */
const RUN_HERE = [/^custom$/, /^(bash|text_editor|computer|memory|tool_search_tool_\w+)_\d{8}$/];

export const messagesProgram: ProgramSide = {
  route(path) {
    if (path === '/messages') return { operation: 'generate', model: null };
    return path === '/messages/count_tokens' ? { operation: 'count_tokens', model: null } : null;
  },
  sounds: /^\/v1\/messages/,
  known: fieldsOf(
    USUAL,
    SAMPLING,
    `messages system max_tokens stop_sequences thinking context_management output_config output_format cache_control
      anthropic_version`,
  ),
  toolFields: ['mcp_servers', 'container'],
  stateFields: [],
  sortTools: (list) =>
    sortedByType(
      list,
      ({ type }) =>
        type === undefined ||
        type === null ||
        (typeof type === 'string' && RUN_HERE.some((known) => known.test(type))),
    ),
  recorded: anthropicMessages,
  read: fromMessages,
  write: messagesAnswer,
  errorBody,
  errorEvent: (refusal, message) => `event: error\ndata: ${JSON.stringify(errorBody(refusal, message))}\n\n`,
  tooLong: (message) => errorBody('bad_request', `prompt is too long: ${message}`),
};

function anthropicMessages(request: RequestBody): Message[] {
  const turns = objectsOf(request.messages).flatMap((turn): Message[] => {
    const blocks =
      typeof turn.content === 'string' ? [{ type: 'text', text: turn.content }] : objectsOf(turn.content);
    const of = (type: string) => blocks.filter((block) => block.type === type);
    if (turn.role === 'assistant') {
      const texts = of('text').map((block) => asText(block.text) ?? '');
      return [
        recordedTurn(
          texts.join('\n'),
          of('tool_use').map((use) => toolCallOf(use.id, use.name, use.input)),
        ),
      ];
    }
    const results = of('tool_result').map((result) => recordedResult(result.tool_use_id, result.content));
    const others = blocks.filter((block) => block.type !== 'tool_result');
    return [
      ...results,
      ...(others.length > 0 ? [{ role: 'user' as const, content: recordedContent(others) }] : []),
    ];
  });
  return [...recordedSystem(request.system), ...turns];
}

const READ = [
  ...['model', 'messages', 'system', 'tools', 'tool_choice', 'stream', 'max_tokens', 'temperature', 'top_p'],
  ...['stop_sequences', 'thinking', 'output_config'],
];
/** Marks of a cache are set anew where the other side wants them. */
const QUIET = ['metadata', 'service_tier', 'cache_control', 'context_management', 'inference_geo'];

function turnOf(turn: RequestBody, left: Set<string>): Message[] {
  if (turn.role === 'system') return systemOf(textOf(turn.content, left));
  const blocks =
    typeof turn.content === 'string' ? [{ type: 'text', text: turn.content }] : objectsOf(turn.content);
  if (turn.role === 'assistant') {
    const texts = blocks.flatMap((block) => (block.type === 'text' ? [asText(block.text) ?? ''] : []));
    const calls = blocks.flatMap((block) =>
      block.type === 'tool_use' ? [toolCallOf(block.id, block.name, block.input)] : [],
    );
    if (blocks.some(({ type }) => type === 'thinking' || type === 'redacted_thinking')) left.add('thinking');
    return assistantOf(texts, calls);
  }
  const results = blocks.flatMap((block): Message[] =>
    block.type === 'tool_result'
      ? [
          {
            role: 'tool',
            tool_call_id: asText(block.tool_use_id) ?? '',
            content: textOf(block.content, left),
          },
        ]
      : [],
  );
  const others = blocks.filter((block) => block.type !== 'tool_result');
  return [...results, ...userOf(textOf(others, left))];
}

/** Tools of the provider's making have no schema: another provider's model does not know them. */
function toolsOf(request: RequestBody, left: Set<string>): ToolSpec[] {
  return objectsOf(request.tools).flatMap((tool) => {
    if (asObject(tool.input_schema)) return [toolOf(tool.name, tool.description, tool.input_schema)];
    left.add(`the tool ${String(tool.type ?? tool.name).slice(0, 60)}`);
    return [];
  });
}

const CHOICES: Readonly<Record<string, string>> = { auto: 'auto', any: 'required', none: 'none' };

function choiceOf(choice: RequestBody | null): RequestBody {
  if (!choice) return {};
  const tool_choice =
    choice.type === 'tool'
      ? { type: 'function', function: { name: choice.name } }
      : CHOICES[String(choice.type)];
  return { tool_choice, ...(choice.disable_parallel_tool_use === true && { parallel_tool_calls: false }) };
}

/** The budgets that stand for an effort, the largest first. */
const EFFORTS = [
  [8192, 'high'],
  [2048, 'medium'],
  [0, 'low'],
] as const;

function effortOf(request: RequestBody): string | undefined {
  const thinking = asObject(request.thinking);
  if (thinking?.type === 'disabled') return undefined;
  const effort = asText(asObject(request.output_config)?.effort);
  if (effort !== null) return effort;
  const budget = thinking?.budget_tokens;
  return typeof budget === 'number' ? EFFORTS.find(([least]) => budget >= least)?.[1] : undefined;
}

function fromMessages(request: RequestBody): CommonRequest {
  const left = new Set<string>();
  unread(request, READ, QUIET, left);
  if (asObject(request.output_config)?.format !== undefined) left.add('output_config.format');
  return {
    messages: [
      ...systemOf(textOf(request.system, left)),
      ...objectsOf(request.messages).flatMap((turn) => turnOf(turn, left)),
    ],
    tools: toolsOf(request, left),
    parameters: given({
      max_tokens: request.max_tokens,
      temperature: request.temperature,
      top_p: request.top_p,
      stop: request.stop_sequences,
      reasoning_effort: effortOf(request),
      ...choiceOf(asObject(request.tool_choice)),
    }),
    left: [...left],
    origins: new Map(),
  };
}

const STOP: Readonly<Record<string, string>> = {
  stop: 'end_turn',
  tool_calls: 'tool_use',
  length: 'max_tokens',
  content_filter: 'refusal',
};

function eventsOf(block: RequestBody, index: number): (readonly [string, RequestBody])[] {
  const text = block.type === 'text';
  const content_block = text ? { ...block, text: '' } : { ...block, input: {} };
  const delta = text
    ? { type: 'text_delta', text: block.text }
    : { type: 'input_json_delta', partial_json: JSON.stringify(block.input) };
  return [
    ['content_block_start', { index, content_block }],
    ['content_block_delta', { index, delta }],
    ['content_block_stop', { index }],
  ];
}

function messagesAnswer({ id, model, content, toolCalls, finish, usage }: CommonReply): WrittenReply {
  const blocks: RequestBody[] = [
    ...(content === '' ? [] : [{ type: 'text', text: content }]),
    ...toolCalls.map((call) => ({
      type: 'tool_use',
      id: call.id,
      name: call.function.name,
      input: objectOfText(call.function.arguments),
    })),
  ];
  const base = { id: `msg_${id}`, type: 'message', role: 'assistant', model };
  const stop_reason = STOP[finish] ?? 'end_turn';
  const counted = {
    input_tokens: usage.input,
    cache_read_input_tokens: usage.cacheRead,
    cache_creation_input_tokens: usage.cacheWrite,
    output_tokens: usage.output,
  };
  const ending = { stop_reason, stop_sequence: null };
  const started = { ...base, content: [], stop_reason: null, stop_sequence: null };
  const events: (readonly [string, RequestBody])[] = [
    ['message_start', { message: { ...started, usage: { ...counted, output_tokens: 1 } } }],
    ...blocks.flatMap(eventsOf),
    ['message_delta', { delta: ending, usage: { output_tokens: usage.output } }],
    ['message_stop', {}],
  ];
  return {
    whole: { ...base, content: blocks, ...ending, usage: counted },
    events: events.map(([type, data]) => [type, { type, ...data }]),
  };
}
