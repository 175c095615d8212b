/** Parameters that Claude refuses, by Anthropic's Messages. */

import {
  type AskedParameters,
  isSet,
  LONGEST,
  type ParameterProblem,
  type ParameterRule,
  refusals,
  shown,
} from '../../parameters/parameterRule.ts';
import { asObject } from '../shapes.ts';

const numberOf = (kwargs: AskedParameters['kwargs'], name: string): number | null => {
  const value = kwargs[name];
  return typeof value === 'number' ? value : null;
};

/** Names of chat completions that Messages does not know. */
const NOT_IN_MESSAGES = [
  ...['seed', 'n', 'logit_bias', 'logprobs', 'top_logprobs', 'presence_penalty', 'frequency_penalty'],
  ...['response_format', 'reasoning', 'verbosity', 'store', 'max_output_tokens'],
];
const EFFORTS = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'];
const SMALLEST_BUDGET = 1024;
/** The beta in which a budget holds for a whole turn with its calls, and may be larger than one answer. */
const INTERLEAVED = /interleaved-thinking/;

/** Tokens of thought that are asked for; null for a model that decides itself. */
function thinkingOf({ kwargs }: AskedParameters): { readonly budget: number | null } | null {
  const thinking = asObject(kwargs.thinking);
  if (thinking) return thinking.type === 'disabled' ? null : { budget: numberOf(thinking, 'budget_tokens') };
  const effort = kwargs.reasoning_effort;
  return typeof effort === 'string' && effort !== 'none' ? { budget: null } : null;
}

const unknownNames: ParameterRule = (asked) =>
  refusals(asked, NOT_IN_MESSAGES, 'the Messages API does not know it');

const effortRule: ParameterRule = (asked) => {
  const effort = asked.kwargs.reasoning_effort;
  if (effort === undefined || effort === null || EFFORTS.includes(String(effort))) return [];
  const why = `${shown(effort)} is no effort`;
  return [{ parameter: 'reasoning_effort', why, fix: `set one of ${EFFORTS.join(', ')}` }];
};

const thinkerRule: ParameterRule = (asked) => {
  const { known, model } = asked;
  if (!known || known.reasoning || thinkingOf(asked) === null) return [];
  return refusals(asked, ['thinking', 'reasoning_effort'], `${model} does not think`);
};

const budgetRule: ParameterRule = (asked) => {
  const { kwargs, known, model } = asked;
  const parameter = 'thinking';
  const budget = thinkingOf(asked)?.budget;
  const type = asObject(kwargs.thinking)?.type;
  if (type === 'enabled' && budget === null)
    return [{ parameter, why: 'it has no budget_tokens', fix: 'set thinking.budget_tokens', value: true }];
  if (typeof budget !== 'number') return [];
  if (known?.adaptive && known.fixedSampling)
    return [
      {
        parameter,
        why: `${model} decides itself how long it thinks`,
        fix: 'set reasoning_effort',
        value: true,
      },
    ];
  if (budget < SMALLEST_BUDGET)
    return [
      {
        parameter,
        why: `a budget of ${budget} tokens is too small`,
        fix: `set at least ${SMALLEST_BUDGET}`,
        value: true,
      },
    ];
  const longest =
    LONGEST.map((name) => numberOf(kwargs, name)).find((value) => value !== null) ?? known?.output;
  const beta = JSON.stringify(asObject(kwargs.extra_headers) ?? {});
  if (!longest || budget < longest || INTERLEAVED.test(beta)) return [];
  return [
    {
      parameter,
      why: `a budget of ${budget} tokens leaves nothing of max_tokens (${longest}) for the answer`,
      fix: 'set max_tokens to more than thinking.budget_tokens',
      value: true,
    },
  ];
};

const samplingRule: ParameterRule = (asked): ParameterProblem[] => {
  const { kwargs, known, model } = asked;
  const temperature = numberOf(kwargs, 'temperature');
  if (known?.fixedSampling)
    return [
      ...(temperature === 1 ? [] : refusals(asked, ['temperature'], `${model} takes no temperature`)),
      ...refusals(asked, ['top_p', 'top_k'], `${model} does not take it`),
    ];
  if (thinkingOf(asked) !== null) {
    const top = numberOf(kwargs, 'top_p');
    return [
      ...(temperature === null || temperature === 1
        ? []
        : refusals(asked, ['temperature'], 'Claude takes no temperature but 1 while it thinks')),
      ...(top === null || top >= 0.95
        ? []
        : refusals(asked, ['top_p'], 'Claude takes no top_p below 0.95 while it thinks')),
      ...refusals(asked, ['top_k'], 'Claude does not take it while it thinks'),
    ];
  }
  if (temperature !== null && temperature > 1)
    return [
      {
        parameter: 'temperature',
        why: `Claude takes at most 1, not ${temperature}`,
        fix: 'set 1 or less',
        value: true,
      },
    ];
  const both = isSet(kwargs, 'temperature') && isSet(kwargs, 'top_p') && /-4-[1-9]/.test(model);
  return both ? refusals(asked, ['top_p'], `${model} takes temperature or top_p, not both`) : [];
};

/** A call that is forced leaves no room to think before it. */
const choiceRule: ParameterRule = (asked) => {
  const choice = asked.kwargs.tool_choice;
  const forced = choice === 'required' || choice === 'any' || asObject(choice) !== null;
  return forced && thinkingOf(asked) !== null
    ? refusals(asked, ['tool_choice'], 'Claude forces no call while it thinks', 'set auto, or leave it out')
    : [];
};

export const CLAUDE_RULES: readonly ParameterRule[] = [
  unknownNames,
  effortRule,
  thinkerRule,
  budgetRule,
  samplingRule,
  choiceRule,
];
