/** Parameters that Gemini refuses, by generateContent. */

import { type ParameterRule, refusals, shown } from '../../parameters/parameterRule.ts';
import { asObject } from '../shapes.ts';

/** Names of chat completions that generateContent does not know. */
const NOT_IN_GEMINI = [
  ...['n', 'logit_bias', 'logprobs', 'top_logprobs', 'response_format', 'user', 'store', 'reasoning'],
  ...['verbosity', 'max_output_tokens', 'stream_options'],
];
const EFFORTS = ['none', 'minimal', 'low', 'medium', 'high'];
const ALWAYS_THINKS = /^gemini-2\.5-pro/;
/** Tokens of thought, for the models that count them. */
const BUDGETS: readonly (readonly [RegExp, number, number])[] = [
  [/^gemini-2\.5-pro/, 128, 32_768],
  [/^gemini-2\.5-flash-lite/, 512, 24_576],
  [/^gemini-2\.5-flash/, 1, 24_576],
];
/** The budget of a model that decides itself. */
const OPEN = -1;

const unknownNames: ParameterRule = (asked) =>
  refusals(asked, NOT_IN_GEMINI, 'generateContent does not know it');

const effortRule: ParameterRule = (asked) => {
  const { kwargs, known, model } = asked;
  const parameter = 'reasoning_effort';
  const effort = kwargs[parameter];
  if (effort === undefined || effort === null) return [];
  if (known && !known.reasoning && effort !== 'none')
    return refusals(asked, [parameter], `${model} does not think`);
  if (!EFFORTS.includes(String(effort)))
    return [{ parameter, why: `${shown(effort)} is no effort`, fix: `set one of ${EFFORTS.join(', ')}` }];
  return effort === 'none' && ALWAYS_THINKS.test(model)
    ? refusals(asked, [parameter], `${model} always thinks`, 'set minimal or more')
    : [];
};

const budgetRule: ParameterRule = (asked) => {
  const { kwargs, known, model } = asked;
  const parameter = 'thinking';
  const thinking = asObject(kwargs.thinking);
  const budget = thinking?.budget_tokens ?? thinking?.thinkingBudget;
  if (typeof budget !== 'number' || budget === OPEN) return [];
  if (known && !known.reasoning && budget !== 0)
    return refusals(asked, [parameter], `${model} does not think`);
  const range = BUDGETS.find(([names]) => names.test(model));
  if (!range || (budget === 0 && !ALWAYS_THINKS.test(model))) return [];
  const [, from, to] = range;
  if (budget >= from && budget <= to) return [];
  const why = `${model} thinks with ${from} to ${to} tokens, not ${budget}`;
  return [{ parameter, why, fix: `set a budget from ${from} to ${to}`, value: true }];
};

const samplingRule: ParameterRule = (asked) =>
  asked.known?.fixedSampling
    ? refusals(asked, ['temperature', 'top_p', 'top_k'], `${asked.model} does not take it`)
    : [];

export const GEMINI_RULES: readonly ParameterRule[] = [unknownNames, effortRule, budgetRule, samplingRule];
