/**
 * The check of a model's parameters before a run is planned, so that a parameter that a provider would refuse at every call
 * is refused once, with a fix. A parameter that nobody here knows is sent as it is.
 */
import { DIALECTS, type DialectLine } from '../dialects/dialects.ts';
import { knownModel } from '../knownModels.ts';
import type { ModelConfig } from '../modelConfig.ts';
import { namedModel } from '../names.ts';
import {
  type AskedParameters,
  isSet,
  LONGEST,
  type ParameterProblem,
  type ParameterRule,
  shown,
} from './parameterRule.ts';

interface Range {
  readonly from: number;
  readonly to: number;
  readonly whole?: boolean;
}

const MOST = Number.MAX_SAFE_INTEGER;

const WHOLE: Range = { from: 1, to: MOST, whole: true };

const RANGES: Readonly<Record<string, Range>> = {
  temperature: { from: 0, to: 2 },
  top_p: { from: 0, to: 1 },
  ...Object.fromEntries(LONGEST.map((name) => [name, WHOLE])),
};

const described = ({ from, to, whole }: Range): string =>
  `a ${whole ? 'whole ' : ''}number ${to === MOST ? `of at least ${from}` : `from ${from} to ${to}`}`;

const valueRule: ParameterRule = ({ kwargs }) =>
  Object.entries(RANGES).flatMap(([parameter, range]): ParameterProblem[] => {
    const value = kwargs[parameter];
    if (!isSet(kwargs, parameter)) return [];
    const fits =
      typeof value === 'number' &&
      value >= range.from &&
      value <= range.to &&
      (!range.whole || Number.isInteger(value));
    if (fits) return [];
    return [
      {
        parameter,
        why: `${shown(value)} is not ${described(range)}`,
        fix: 'correct it',
        // A server of one's own may give a number outside of the usual range a meaning.
        ...(typeof value === 'number' ? {} : { always: true }),
        value: true,
      },
    ];
  });

/** The longest answer is the model's own. */
const lengthRule: ParameterRule = ({ kwargs, known, model }) => {
  const longest = known?.output;
  if (!longest) return [];
  return LONGEST.flatMap((parameter) => {
    const value = kwargs[parameter];
    if (typeof value !== 'number' || value <= longest) return [];
    const why = `${model} writes at most ${longest} tokens, not ${value}`;
    return [{ parameter, why, fix: `set it to ${longest} or less, or leave it out`, value: true }];
  });
};

interface SureProblem extends ParameterProblem {
  /** The provider will refuse it; otherwise it is only likely. */
  readonly sure: boolean;
}

type Model = Pick<ModelConfig, 'model_name' | 'base_url' | 'dialect' | 'model_kwargs'>;

function askedOf(model: Model) {
  const { allowed_openai_params: allowed, extra_body: _unread, ...rest } = model.model_kwargs;
  const vouched = new Set<unknown>(Array.isArray(allowed) ? allowed : []);
  const kwargs = Object.fromEntries(Object.entries(rest).filter(([name]) => !vouched.has(name)));
  const { sentAs, dialect, provider } = namedModel(model);
  return {
    kwargs,
    dialect,
    provider: provider?.prefix,
    model: sentAs.split('/').at(-1)!,
    known: knownModel(model.model_name ?? ''),
  } satisfies AskedParameters & { provider: string | undefined };
}

/** Problems of `model_kwargs`, each parameter once. */
function parameterProblems(model: Model): SureProblem[] {
  const asked = askedOf(model);
  const { dialect, known, provider } = asked;
  const { maker, rules: ofMaker }: DialectLine = DIALECTS[dialect];
  const itsModel = maker !== undefined && known?.maker === maker;
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

/** `drop_params` leaves out what is known to be refused, as litellm does; otherwise it is a refusal, or a warning where it is only likely. */
export function checkedParameters<T extends Model & Pick<ModelConfig, 'drop_params'>>(model: T) {
  const problems = parameterProblems(model);
  const dropped = model.drop_params ? problems.filter(({ value }) => value !== true) : [];
  const left = problems.filter((problem) => !dropped.includes(problem));
  const names = new Set(dropped.map(({ parameter }) => parameter));
  const kept = Object.entries(model.model_kwargs).filter(([name]) => !names.has(name));
  return {
    model: dropped.length === 0 ? model : { ...model, model_kwargs: Object.fromEntries(kept) },
    /** Parameters on which every call would fail. */
    refused: left.filter(({ sure }) => sure),
    warnings: [
      ...dropped.map((p) => `model.model_kwargs.${p.parameter}: ${p.why}; it is left out (drop_params)`),
      ...left.filter(({ sure }) => !sure).map((p) => `${problemText(p)} (it is sent as it is)`),
    ],
  };
}
