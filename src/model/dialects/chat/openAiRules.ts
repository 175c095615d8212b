/** Parameters that OpenAI's own models refuse, by chat completions and by Responses. */
import {
  type AskedParameters,
  isSet,
  type ParameterProblem,
  type ParameterRule,
  refusals,
  shown,
} from '../../parameters/parameterRule.ts';

const EFFORTS = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'];

/** Models of the GPT-5 family that are named after ChatGPT take what GPT-4 took. */
const thinks = ({ known, model }: AskedParameters): boolean =>
  known?.reasoning === true && !model.includes('-chat');

function effortOf({ kwargs }: AskedParameters): unknown {
  const asked = kwargs.reasoning_effort ?? kwargs.reasoning;
  return typeof asked === 'object' && asked !== null ? (asked as { effort?: unknown }).effort : asked;
}

const effortRule: ParameterRule = (asked) => {
  const { kwargs, known, model } = asked;
  const parameter = isSet(kwargs, 'reasoning_effort') ? 'reasoning_effort' : 'reasoning';
  const effort = effortOf(asked);
  if (effort === undefined || effort === null) return [];
  if (known?.reasoning !== true) return refusals(asked, [parameter], `${model} does not think`);
  const takes = known.efforts ?? EFFORTS;
  if (takes.includes(String(effort))) return [];
  const why = `${model} knows no effort ${shown(effort)}`;
  return [{ parameter, why, fix: `set one of ${takes.join(', ')}`, unsure: effort === 'max' }];
};

/** Sampling is fixed while a model thinks; one that can do without takes it when it does. */
const samplingRule: ParameterRule = (asked) => {
  const { kwargs, known, model } = asked;
  if (!thinks(asked)) return [];
  const effort = effortOf(asked) ?? known?.defaultEffort;
  if (effort === 'none') return [];
  const idle = known?.efforts?.includes('none') === true;
  const fix = idle ? 'leave it out, or set reasoning_effort: none' : 'leave it out';
  const why = `${model} takes no such setting while it thinks`;
  const warm = isSet(kwargs, 'temperature') && kwargs.temperature !== 1;
  return [
    ...(warm
      ? [{ parameter: 'temperature', why: `${model} takes no temperature but 1 while it thinks`, fix }]
      : []),
    ...refusals(asked, ['top_p', 'logprobs', 'top_logprobs'], why, fix),
  ];
};

const fixedRule: ParameterRule = (asked) =>
  thinks(asked)
    ? refusals(
        asked,
        ['presence_penalty', 'frequency_penalty', 'logit_bias'],
        `${asked.model} does not take it`,
      )
    : [];

/** The o-series calls one tool a turn in chat completions. */
const parallelRule: ParameterRule = (asked) =>
  asked.dialect === 'chat' && /^o\d/.test(asked.model)
    ? refusals(asked, ['parallel_tool_calls'], `${asked.model} does not take it`)
    : [];

/** Chat completions have a new name for it, and the models that think know only that one. */
const lengthName: ParameterRule = (asked) =>
  asked.dialect === 'chat' && thinks(asked)
    ? refusals(
        asked,
        ['max_tokens'],
        `${asked.model} does not know it by this name`,
        'write max_completion_tokens, which counts its thoughts too',
      ).map((problem) => ({ ...problem, value: true }))
    : [];

/** Parameters of chat completions without a counterpart in Responses. */
const NOT_IN_RESPONSES = [
  ...['stop', 'seed', 'n', 'logit_bias', 'logprobs', 'presence_penalty', 'frequency_penalty'],
  ...['response_format', 'modalities', 'prediction', 'audio', 'thinking'],
];

const responsesRule: ParameterRule = (asked) =>
  asked.dialect === 'responses'
    ? refusals(asked, NOT_IN_RESPONSES, 'the Responses API does not know it', 'leave it out')
    : refusals(asked, ['thinking'], 'it is a setting of other providers', 'set reasoning_effort');

/** One answer is read; more of them are paid for. */
const countRule: ParameterRule = ({ kwargs, dialect }): ParameterProblem[] =>
  dialect === 'chat' && isSet(kwargs, 'n') && kwargs.n !== 1
    ? [{ parameter: 'n', why: 'one answer is used of each reply', fix: 'leave it out', unsure: true }]
    : [];

export const OPENAI_RULES: readonly ParameterRule[] = [
  effortRule,
  samplingRule,
  fixedRule,
  parallelRule,
  lengthName,
  responsesRule,
  countRule,
];
