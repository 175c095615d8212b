/** `model_kwargs` as fields of a Responses request. */
import { knownModel } from '../../knownModels.ts';
import type { ToolSpec } from '../../model.ts';
import type { ModelConfig } from '../../modelConfig.ts';
import type { RequestStyle } from '../dialect.ts';
import { sentParameters } from '../kwargs.ts';
import { asObject } from '../shapes.ts';

const toolOf = ({ function: { name, description, parameters } }: ToolSpec) => ({
  type: 'function',
  name,
  description,
  parameters,
});

const choiceOf = (choice: unknown): unknown => {
  const named = asObject(asObject(choice)?.function);
  return named ? { type: 'function', name: named.name } : choice;
};

/**
 * Nothing is kept at the provider: what was thought comes encrypted and goes back with the next request. Only models that think take
 * the word for it, and who names `store` or `include` wants another way.
 */
function statelessly(kwargs: Readonly<Record<string, unknown>>, name: string): Record<string, unknown> {
  if ('store' in kwargs || 'include' in kwargs || !knownModel(name)?.reasoning) return {};
  return { store: false, include: ['reasoning.encrypted_content'] };
}

/** Every field beside `model` and `input`. */
export function responsesParameters(
  config: ModelConfig,
  tools: readonly ToolSpec[] | undefined,
  style: RequestStyle,
): Record<string, unknown> {
  const kwargs = sentParameters(config.model_kwargs);
  const {
    max_tokens: longest,
    max_completion_tokens: longestToo,
    reasoning_effort: effort,
    tool_choice: choice,
    ...rest
  } = kwargs;
  const limit = longest ?? longestToo;
  return {
    ...(style === 'own' ? statelessly(kwargs, config.model_name ?? '') : {}),
    ...(limit === undefined ? {} : { max_output_tokens: limit }),
    ...(effort === undefined ? {} : { reasoning: { effort } }),
    ...rest,
    ...(tools && tools.length > 0 ? { tools: tools.map(toolOf) } : {}),
    ...(choice === undefined ? {} : { tool_choice: choiceOf(choice) }),
    ...(config.stream ? { stream: true } : {}),
  };
}
