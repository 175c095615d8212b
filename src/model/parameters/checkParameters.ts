/**
 * Are the parameters of a model ones that it takes? Asked before a run is planned, so that what a provider would refuse at every call
 * is refused once, with what to do. What nobody here knows is sent as it is.
 */
import type { DialectName } from '../dialects/dialects.ts';
import { knownModel } from '../knownModels.ts';
import type { ModelConfig } from '../modelConfig.ts';
import { dialectNameOf, nameMeans, sentModel } from '../names.ts';
import {
  type AskedParameters,
  lengthRule,
  type ParameterProblem,
  type ParameterRule,
  valueRule,
} from './parameterRule.ts';
import { CLAUDE_RULES } from './rulesForClaude.ts';
import { GEMINI_RULES } from './rulesForGemini.ts';
import { OPENAI_RULES } from './rulesForOpenai.ts';

interface Found extends ParameterProblem {
  /** The provider will refuse it; otherwise it is only likely. */
  readonly sure: boolean;
}

type Model = Pick<ModelConfig, 'model_name' | 'base_url' | 'dialect' | 'model_kwargs'>;

/** What makers say of their own models, in their own dialects. Other servers speak them too, and take what they like. */
const RULES: Readonly<
  Partial<Record<DialectName, { readonly maker: string; readonly rules: readonly ParameterRule[] }>>
> = {
  chat: { maker: 'openai', rules: OPENAI_RULES },
  responses: { maker: 'openai', rules: OPENAI_RULES },
  messages: { maker: 'anthropic', rules: CLAUDE_RULES },
  gemini: { maker: 'gemini', rules: GEMINI_RULES },
};

function askedOf(model: Model): AskedParameters {
  const { allowed_openai_params: allowed, extra_body: _unread, ...rest } = model.model_kwargs;
  const vouched = new Set<unknown>(Array.isArray(allowed) ? allowed : []);
  const kwargs = Object.fromEntries(Object.entries(rest).filter(([name]) => !vouched.has(name)));
  const sent = sentModel(model as ModelConfig);
  return {
    kwargs,
    dialect: dialectNameOf(model as ModelConfig),
    model: sent.split('/').at(-1)!,
    known: knownModel(model.model_name ?? ''),
  };
}

/** What the provider refuses of `model_kwargs`, each parameter once. */
function parameterProblems(model: Model): Found[] {
  const asked = askedOf(model);
  const { dialect, known } = asked;
  const about = RULES[dialect];
  const itsModel = about !== undefined && known?.maker === about.maker;
  const provider = nameMeans(model as ModelConfig)?.provider.prefix;
  const own = itsModel && model.base_url === undefined && provider === about.maker;
  const rules = itsModel ? about.rules : [];
  const seen = new Set<string>();
  return [valueRule, lengthRule, ...rules].flatMap((rule) =>
    rule(asked).flatMap((problem) => {
      if (seen.has(problem.parameter)) return [];
      seen.add(problem.parameter);
      return [{ ...problem, sure: problem.always === true || (own && problem.unsure !== true) }];
    }),
  );
}

const problemText = ({ parameter, why, fix }: ParameterProblem): string =>
  `model.model_kwargs.${parameter}: ${why}; ${fix}`;

interface CheckedParameters<T> {
  readonly model: T;
  /** What every call would fail on. */
  readonly refused: readonly ParameterProblem[];
  readonly warnings: readonly string[];
}

/** With `drop_params` what is known to be refused is left out, as litellm does; otherwise it is a refusal, or a warning where it is only likely. */
export function checkedParameters<T extends Model & Pick<ModelConfig, 'drop_params'>>(
  model: T,
): CheckedParameters<T> {
  const problems = parameterProblems(model);
  const dropped = model.drop_params ? problems.filter(({ value }) => value !== true) : [];
  const left = problems.filter((problem) => !dropped.includes(problem));
  const names = new Set(dropped.map(({ parameter }) => parameter));
  const kept = Object.entries(model.model_kwargs).filter(([name]) => !names.has(name));
  return {
    model: dropped.length === 0 ? model : { ...model, model_kwargs: Object.fromEntries(kept) },
    refused: left.filter(({ sure }) => sure),
    warnings: [
      ...dropped.map((p) => `model.model_kwargs.${p.parameter}: ${p.why}; it is left out (drop_params)`),
      ...left.filter(({ sure }) => !sure).map((p) => `${problemText(p)} (it is sent as it is)`),
    ],
  };
}
