/** A request of the Messages API in the common form. Pure. */
import { asObject, asText } from '../../../model/dialects/shapes.ts';
import type { Message, ToolSpec } from '../../../model/model.ts';
import {
  assistantOf,
  type Body,
  type CommonRequest,
  callOf,
  given,
  objectsOf,
  systemOf,
  textOf,
  toolOf,
  unread,
  userOf,
} from './commonForm.ts';

const READ = [
  ...['model', 'messages', 'system', 'tools', 'tool_choice', 'stream', 'max_tokens', 'temperature', 'top_p'],
  ...['stop_sequences', 'thinking', 'output_config'],
];
/** Marks of a cache are set anew where the other side wants them. */
const QUIET = ['metadata', 'service_tier', 'cache_control', 'context_management', 'inference_geo'];

function turnOf(turn: Body, left: Set<string>): Message[] {
  if (turn.role === 'system') return systemOf(textOf(turn.content, left));
  const blocks =
    typeof turn.content === 'string' ? [{ type: 'text', text: turn.content }] : objectsOf(turn.content);
  if (turn.role === 'assistant') {
    const texts = blocks.flatMap((block) => (block.type === 'text' ? [asText(block.text) ?? ''] : []));
    const calls = blocks.flatMap((block) =>
      block.type === 'tool_use' ? [callOf(block.id, block.name, block.input)] : [],
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
function toolsOf(request: Body, left: Set<string>): ToolSpec[] {
  return objectsOf(request.tools).flatMap((tool) => {
    if (asObject(tool.input_schema)) return [toolOf(tool.name, tool.description, tool.input_schema)];
    left.add(`the tool ${String(tool.type ?? tool.name).slice(0, 60)}`);
    return [];
  });
}

const CHOICES: Readonly<Record<string, string>> = { auto: 'auto', any: 'required', none: 'none' };

function choiceOf(choice: Body | null): Body {
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

function effortOf(request: Body): string | undefined {
  const thinking = asObject(request.thinking);
  if (thinking?.type === 'disabled') return undefined;
  const effort = asText(asObject(request.output_config)?.effort);
  if (effort !== null) return effort;
  const budget = thinking?.budget_tokens;
  return typeof budget === 'number' ? EFFORTS.find(([least]) => budget >= least)?.[1] : undefined;
}

export function fromMessages(request: Body): CommonRequest {
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
