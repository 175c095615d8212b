/**
 * Has something fallen along the nights of a record? If nothing changed, the results of an instance may stand in any order. So each instance is
 * held against itself, with as many failures as it has: no chance of an instance has to be known, and one that always does the same says nothing.
 */
import { chiSquaredP, normalCdf } from './special.ts';

/** One result of an instance: the night, counted from the oldest, and whether it was resolved. */
export type NightScore = readonly [night: number, resolved: boolean];

/** More would be slow, and would hide what happened in the last months behind what was before. */
export const NIGHTS_OF_A_RECORD = 60;
/** Fewer nights show nothing about a trend. */
const FEWEST_NIGHTS = 5;
/** Fewer nights since the first one cannot say whether it was lucky. */
const FEWEST_SINCE = 6;

export type AlongRecord = NonNullable<ReturnType<typeof alongRecord>>;

/**
 * `results`: of each instance, oldest first; night 0 is `since`, the accepted baseline or the first night. `error`: of records of sixty nights on
 * which nothing changed, the share that ever fails. Null for too few nights.
 */
export function alongRecord(
  results: readonly (readonly NightScore[])[],
  {
    since,
    nights,
    error,
    fixed,
  }: {
    readonly since: string;
    readonly nights: number;
    readonly error: number;
    /** Tonight is compared with night 0. */
    readonly fixed: boolean;
  },
) {
  if (nights < FEWEST_NIGHTS) return null;
  const third = Math.ceil(nights / 3);
  const share = (from: number, to: number) => {
    const own = results.flatMap((scores) => scores.filter(([night]) => night >= from && night < to));
    return own.filter(([, resolved]) => resolved).length / Math.max(1, own.length);
  };
  return {
    since,
    nights,
    p: fallAlong(results, nights),
    limit: limitOf(nights, error),
    /** Resolved of valid, over the first and the last third of the nights. */
    before: share(0, third),
    now: share(nights - third, nights),
    /**
     * Whether the first night looks lucky beside those after it, and tonight beside these alone: one-sided p. Null where it is not the baseline,
     * and for too few nights.
     */
    first:
      !fixed || nights - 1 < FEWEST_SINCE
        ? null
        : {
            p: laterFailures(tellingOf(results), (night) => Math.min(night, 1), alike),
            resolved: share(0, 1),
            since: share(1, nights),
            tonightP: laterFailures(
              tellingOf(results.map((scores) => scores.filter(([night]) => night > 0))),
              (night) => Number(night === nights - 1),
              alike,
            ),
          },
  };
}

/**
 * Nights that come early in a record have the larger part of its error, because a decay that began with the record has to be found by them.
 * Simulated: with this limit 1 to 4 % of records of sixty nights on which nothing changed ever fail (`scripts/statistics/gateErrors.ts`).
 */
const limitOf = (nights: number, error: number): number => error / (1.6 * nights ** 1.5);

/** A fall that began so many nights ago and goes on, beside one that began with the record. */
const RECENT = 12;
/** Fewer have to be resolved in all: a model that changed, and solves others as often, has not fallen. */
const FALLEN = 0.2;

/**
 * The smallest of the one-sided p of the templates. A decay of all instances makes those fail later that hardly ever failed; a decay instance
 * by instance leaves failures at the end of their records.
 */
function fallAlong(results: readonly (readonly NightScore[])[], nights: number): number {
  const telling = tellingOf(results);
  const since = (lag: number) => (night: number) => Math.max(0, night - (nights - 1 - lag));
  if (laterFailures(telling, since(nights - 1), alike) > FALLEN) return 1;
  return Math.min(
    ...(RECENT < nights - 1 ? [RECENT, nights - 1] : [nights - 1]).map((lag) =>
      laterFailures(telling, since(lag), seldom),
    ),
    failuresAtTheEnd(telling),
  );
}

/** An instance that hardly ever fails is seen against nearly no chance when it does. */
const seldom = (n: number, failures: number): number => (n + 1) / (failures + 0.5);
const alike = (): number => 1;

/** Instances whose results could stand in another order. */
const tellingOf = (results: readonly (readonly NightScore[])[]): Telling[] =>
  results
    .map((scores) => ({ scores, failures: scores.filter(([, resolved]) => !resolved).length }))
    .filter(({ scores, failures }) => failures > 0 && failures < scores.length);

interface Telling {
  readonly scores: readonly NightScore[];
  readonly failures: number;
}

/** Cumulants of a sum of independent parts, as the parts are added. */
function sumOfParts() {
  let [above, variance, third] = [0, 0, 0];
  return {
    add(of: number, v: number, t: number) {
      above += of;
      variance += v;
      third += t;
    },
    p: () => (variance === 0 ? 1 : upperTail(above / Math.sqrt(variance), third / variance ** 1.5)),
  };
}

/** Pearson's type III: a gamma distribution with this skewness. Few instances that seldom fail make a normal one find three times too much. */
function upperTail(z: number, skewness: number): number {
  if (skewness < 0.02) return 1 - normalCdf(z);
  const shape = 4 / skewness ** 2;
  return chiSquaredP(2 * (shape + z * Math.sqrt(shape)), 2 * shape);
}

/** Failures weighted by how late they are. Moments of a sum of draws without replacement. */
function laterFailures(
  telling: readonly Telling[],
  lateness: (night: number) => number,
  weightOf: (n: number, failures: number) => number,
): number {
  const sum = sumOfParts();
  for (const { scores, failures: f } of telling) {
    const n = scores.length;
    const middle = scores.reduce((s, [night]) => s + lateness(night), 0) / n;
    let [late, squares, cubes] = [0, 0, 0];
    for (const [night, resolved] of scores) {
      const d = lateness(night) - middle;
      if (!resolved) late += d;
      squares += d * d;
      cubes += d * d * d;
    }
    const weight = weightOf(n, f);
    const draws = (f * (n - f)) / (n * (n - 1));
    sum.add(
      weight * late,
      weight ** 2 * draws * squares,
      n < 3 ? 0 : weight ** 3 * ((draws * (n - 2 * f)) / (n - 2)) * cubes,
    );
  }
  return sum.p();
}

/** How rare it is that so many failures of an instance stand at its end, in logarithms, summed over instances. */
function failuresAtTheEnd(telling: readonly Telling[]): number {
  const sum = sumOfParts();
  const known = new Map<number, ReturnType<typeof endsOf>>();
  for (const { scores, failures } of telling) {
    const key = scores.length * 4096 + failures;
    const ends = known.get(key) ?? endsOf(scores.length, failures);
    known.set(key, ends);
    const last = scores.findLastIndex(([, resolved]) => resolved);
    sum.add(ends.rarity[scores.length - 1 - last]! - ends.mean, ends.variance, ends.third);
  }
  return sum.p();
}

/** `rarity[r]`: minus the logarithm of P(the last r results all failed), of n with so many failures in any order; and its moments. */
function endsOf(n: number, failures: number) {
  const rarity = [0];
  for (let r = 0; r < failures; r++) rarity.push(rarity[r]! - Math.log((failures - r) / (n - r)));
  const chance = rarity.map((x, r) => Math.exp(-x) - (r < failures ? Math.exp(-rarity[r + 1]!) : 0));
  const moment = (k: number, around: number) =>
    rarity.reduce((s, x, r) => s + chance[r]! * (x - around) ** k, 0);
  const mean = moment(1, 0);
  return { rarity, mean, variance: moment(2, mean), third: moment(3, mean) };
}
