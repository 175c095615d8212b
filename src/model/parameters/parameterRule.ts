/** What the rules about parameters look at, and what they say. */
import type { KnownModel } from '../knownModels.ts';

export interface ParameterProblem {
  /** As `model.model_kwargs` names it. */
  readonly parameter: string;
  readonly why: string;
  readonly fix: string;
  /** No server takes it, whatever is behind the address. */
  readonly always?: boolean;
  /** Its value is wrong, and another one would be taken: it is not left out in silence. */
  readonly value?: boolean;
  /** The rule may be out of date: worth a warning, never a refusal. */
  readonly unsure?: boolean;
}

export interface AskedParameters {
  /** Parameters that are set, without what the user vouches for (extra_body, allowed_openai_params). */
  readonly kwargs: Readonly<Record<string, unknown>>;
  readonly dialect: string;
  /** The name without a provider's prefix. */
  readonly model: string;
  readonly known: KnownModel | null;
}

export type ParameterRule = (asked: AskedParameters) => ParameterProblem[];

/** Names of the longest answer, in the order in which requests take them. */
export const LONGEST = ['max_tokens', 'max_completion_tokens', 'max_output_tokens'] as const;

export const numberOf = (kwargs: AskedParameters['kwargs'], name: string): number | null => {
  const value = kwargs[name];
  return typeof value === 'number' ? value : null;
};

/** A value as a message shows it, whatever it is and however long. */
export const shown = (value: unknown): string => (JSON.stringify(value) ?? 'undefined').slice(0, 60);

export const isSet = (kwargs: AskedParameters['kwargs'], name: string): boolean =>
  kwargs[name] !== undefined && kwargs[name] !== null;

/** Those of `names` that are set: each is refused for the same reason. */
export const refusals = (
  { kwargs }: Pick<AskedParameters, 'kwargs'>,
  names: readonly string[],
  why: string,
  fix = 'leave it out',
): ParameterProblem[] =>
  names.filter((name) => isSet(kwargs, name)).map((parameter) => ({ parameter, why, fix }));

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

export const valueRule: ParameterRule = ({ kwargs }) =>
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
export const lengthRule: ParameterRule = ({ kwargs, known, model }) => {
  const longest = known?.output;
  if (!longest) return [];
  return LONGEST.flatMap((parameter) => {
    const value = kwargs[parameter];
    if (typeof value !== 'number' || value <= longest) return [];
    const why = `${model} writes at most ${longest} tokens, not ${value}`;
    return [{ parameter, why, fix: `set it to ${longest} or less, or leave it out`, value: true }];
  });
};
