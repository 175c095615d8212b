/** `model_kwargs` as fields of a generateContent request. */
import type { ToolSpec } from '../../model.ts';
import type { ModelConfig } from '../../modelConfig.ts';
import type { RequestStyle } from '../dialect.ts';
import { sentParameters } from '../kwargs.ts';
import { asObject } from '../shapes.ts';

/** Names of chat completions and what they are called in generationConfig. */
const GENERATION: Readonly<Record<string, string>> = {
  temperature: 'temperature',
  top_p: 'topP',
  top_k: 'topK',
  max_tokens: 'maxOutputTokens',
  max_completion_tokens: 'maxOutputTokens',
  stop: 'stopSequences',
  seed: 'seed',
  presence_penalty: 'presencePenalty',
  frequency_penalty: 'frequencyPenalty',
};

/** Tokens of thought for an effort, for the models that count them; Gemini 3 and later take a level. */
const BUDGETS: Readonly<Record<string, number>> = {
  none: 0,
  minimal: 128,
  low: 1024,
  medium: 2048,
  high: 4096,
};
const TAKES_LEVEL = /gemini-([3-9]|\d\d)/;

function thinkingOf(effort: unknown, thinking: unknown, model: string): Record<string, unknown> {
  const asked = asObject(thinking);
  if (asked)
    return 'budget_tokens' in asked
      ? { thinkingConfig: { thinkingBudget: asked.budget_tokens, includeThoughts: true } }
      : { thinkingConfig: asked };
  if (typeof effort !== 'string') return {};
  if (TAKES_LEVEL.test(model)) return { thinkingConfig: { thinkingLevel: effort, includeThoughts: true } };
  return {
    thinkingConfig: { thinkingBudget: BUDGETS[effort] ?? effort, includeThoughts: effort !== 'none' },
  };
}

const MODES: Readonly<Record<string, string>> = { auto: 'AUTO', none: 'NONE', required: 'ANY' };

function choiceOf(choice: unknown): Record<string, unknown> {
  if (choice === undefined) return {};
  const name = asObject(asObject(choice)?.function)?.name;
  const functionCallingConfig =
    typeof name === 'string'
      ? { mode: 'ANY', allowedFunctionNames: [name] }
      : { mode: MODES[String(choice)] ?? choice };
  return { toolConfig: { functionCallingConfig } };
}

const listed = (name: string, value: unknown): unknown =>
  name === 'stopSequences' && typeof value === 'string' ? [value] : value;

/** Every field beside `contents` and the system prompt. */
export function geminiParameters(
  config: ModelConfig,
  tools: readonly ToolSpec[] | undefined,
  style: RequestStyle,
): Record<string, unknown> {
  const {
    // One or several calls a turn is the model's own choice here.
    parallel_tool_calls: _parallel,
    tool_choice: choice,
    reasoning_effort: effort,
    thinking,
    generationConfig: given,
    ...rest
  } = sentParameters(config.model_kwargs);
  const model = config.model_name ?? '';
  const named = Object.entries(rest).filter(([name]) => name in GENERATION);
  const others = Object.entries(rest).filter(([name]) => !(name in GENERATION));
  const generationConfig = {
    // litellm sets it for Gemini 3, whose maker advises against any other.
    ...(style === 'litellm' && TAKES_LEVEL.test(model) ? { temperature: 1 } : {}),
    ...Object.fromEntries(
      named.map(([name, value]) => [GENERATION[name]!, listed(GENERATION[name]!, value)] as const),
    ),
    ...thinkingOf(effort, thinking, model),
    ...asObject(given),
  };
  const declarations = style === 'litellm' ? 'function_declarations' : 'functionDeclarations';
  const hasTools = tools !== undefined && tools.length > 0;
  return {
    ...Object.fromEntries(others),
    ...(hasTools
      ? {
          tools: [
            {
              [declarations]: tools.map(({ function: { name, description, parameters } }) => ({
                ...{ name, description, parameters },
              })),
            },
          ],
          ...choiceOf(choice),
        }
      : {}),
    ...(Object.keys(generationConfig).length > 0 ? { generationConfig } : {}),
  };
}
