/** `model_kwargs` as fields of a Messages request. Names of chat completions mean here what litellm makes of them. */

import { knownModel } from '../../knownModels.ts';
import type { ToolSpec } from '../../model.ts';
import type { ModelConfig } from '../../modelConfig.ts';
import { sentParameters } from '../kwargs.ts';
import { asObject } from '../shapes.ts';

/** Where neither the configuration nor the table says how long an answer may be. */
const USUAL_MAX_TOKENS = 8192;

/** Tokens of thought for an effort, as litellm has them. The API takes no budget under 1024. */
const BUDGETS: Readonly<Record<string, number>> = {
  minimal: 1024,
  low: 1024,
  medium: 2048,
  high: 4096,
  xhigh: 8192,
  max: 16_384,
};

function thinkingOf(effort: unknown, adaptive: boolean): Record<string, unknown> {
  if (typeof effort !== 'string' || effort === 'none') return {};
  if (adaptive)
    return {
      thinking: { type: 'adaptive', display: 'summarized' },
      output_config: { effort: effort === 'minimal' ? 'low' : effort },
    };
  const budget = BUDGETS[effort];
  return budget === undefined
    ? { reasoning_effort: effort }
    : { thinking: { type: 'enabled', budget_tokens: budget } };
}

function choiceOf(choice: unknown, parallel: unknown): Record<string, unknown> {
  const named = asObject(choice);
  const base = named
    ? 'function' in named
      ? { type: 'tool', name: asObject(named.function)?.name }
      : named
    : typeof choice === 'string'
      ? { type: choice === 'required' ? 'any' : choice }
      : null;
  if (typeof parallel !== 'boolean') return base ? { tool_choice: base } : {};
  return { tool_choice: { ...(base ?? { type: 'auto' }), disable_parallel_tool_use: !parallel } };
}

const toolOf = ({ function: { name, description, parameters } }: ToolSpec) => ({
  name,
  input_schema: parameters,
  type: 'custom',
  description,
});

const listOf = (value: unknown): unknown => (typeof value === 'string' ? [value] : value);

/** Every field beside `model`, `messages` and `system`. */
export function messagesParameters(
  config: ModelConfig,
  tools: readonly ToolSpec[] | undefined,
): Record<string, unknown> {
  const {
    max_tokens: longest,
    max_completion_tokens: longestToo,
    parallel_tool_calls: parallel,
    tool_choice: choice,
    reasoning_effort: effort,
    stop,
    user,
    ...rest
  } = sentParameters(config.model_kwargs);
  const known = knownModel(config.model_name ?? '');
  const hasTools = tools !== undefined && tools.length > 0;
  return {
    ...thinkingOf(effort, known?.adaptive ?? false),
    ...rest,
    ...(stop === undefined ? {} : { stop_sequences: listOf(stop) }),
    ...(user === undefined ? {} : { metadata: { user_id: user } }),
    max_tokens: longest ?? longestToo ?? known?.output ?? USUAL_MAX_TOKENS,
    ...(hasTools ? { tools: tools.map(toolOf), ...choiceOf(choice, parallel) } : {}),
    ...(config.stream ? { stream: true } : {}),
  };
}
