/**
 * Are the parameters of a model ones that it takes? Asked before a run is planned, so that what a provider would refuse at every call
 * is refused once, with what to do. What nobody here knows is sent as it is.
 */
import { DIALECTS, type DialectLine } from '../dialects/dialects.ts';
import { knownModel } from '../knownModels.ts';
import type { ModelConfig } from '../modelConfig.ts';
import { dialectNameOf, nameMeans, sentModel } from '../names.ts';
import { type AskedParameters, lengthRule, type ParameterProblem, valueRule } from './parameterRule.ts';

interface Found extends ParameterProblem {
  /** The provider will refuse it; otherwise it is only likely. */
  readonly sure: boolean;
}

type Model = Pick<ModelConfig, 'model_name' | 'base_url' | 'dialect' | 'model_kwargs'>;

function askedOf(model: Model) {
  const { allowed_openai_params: allowed, extra_body: _unread, ...rest } = model.model_kwargs;
  const vouched = new Set<unknown>(Array.isArray(allowed) ? allowed : []);
  const kwargs = Object.fromEntries(Object.entries(rest).filter(([name]) => !vouched.has(name)));
  const sent = sentModel(model as ModelConfig);
  return {
    kwargs,
    dialect: dialectNameOf(model as ModelConfig),
    model: sent.split('/').at(-1)!,
    known: knownModel(model.model_name ?? ''),
  } satisfies AskedParameters;
}

/** What the provider refuses of `model_kwargs`, each parameter once. */
function parameterProblems(model: Model): Found[] {
  const asked = askedOf(model);
  const { dialect, known } = asked;
  const { maker, rules: ofMaker }: DialectLine = DIALECTS[dialect];
  const itsModel = maker !== undefined && known?.maker === maker;
  const provider = nameMeans(model as ModelConfig)?.provider.prefix;
  const own = itsModel && model.base_url === undefined && provider === maker;
  const rules = itsModel ? (ofMaker ?? []) : [];
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

/** With `drop_params` what is known to be refused is left out, as litellm does; otherwise it is a refusal, or a warning where it is only likely. */
export function checkedParameters<T extends Model & Pick<ModelConfig, 'drop_params'>>(model: T) {
  const problems = parameterProblems(model);
  const dropped = model.drop_params ? problems.filter(({ value }) => value !== true) : [];
  const left = problems.filter((problem) => !dropped.includes(problem));
  const names = new Set(dropped.map(({ parameter }) => parameter));
  const kept = Object.entries(model.model_kwargs).filter(([name]) => !names.has(name));
  return {
    model: dropped.length === 0 ? model : { ...model, model_kwargs: Object.fromEntries(kept) },
    /** What every call would fail on. */
    refused: left.filter(({ sure }) => sure),
    warnings: [
      ...dropped.map((p) => `model.model_kwargs.${p.parameter}: ${p.why}; it is left out (drop_params)`),
      ...left.filter(({ sure }) => !sure).map((p) => `${problemText(p)} (it is sent as it is)`),
    ],
  };
}
