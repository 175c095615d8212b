/** Values that no server takes, and answers longer than the model writes. */
import { isSet, LONGEST, type ParameterProblem, type ParameterRule, shown } from './parameterRule.ts';

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
