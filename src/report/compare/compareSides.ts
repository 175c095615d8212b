import { type FactDifference, factDifferences } from '../measure/runFacts.ts';
import { shareInterval } from '../statistics/epochs.ts';
import { type ClusterSensitivity, clustered, mean, tTest } from '../statistics/means.ts';
import {
  cochranQ,
  differenceOf,
  type McNemarTest,
  mcnemar,
  newcombe10,
  type PairedTable,
} from '../statistics/paired.ts';
import { type Interval, type Proportion, proportion } from '../statistics/proportions.ts';
import {
  type Bootstrapped,
  bootstraps,
  costAResolved,
  geometricMeans,
  type Statistic,
  signFlip,
} from '../statistics/resampling.ts';
import {
  type Power,
  powerOf,
  type RewardDifference,
  rewardDifference,
  type TestedDifference,
  testDifference,
  withinOne,
} from './difference.ts';
import {
  type FellOut,
  type Matching,
  matchSides,
  type NotComparable,
  type Pair,
  rateOf,
  resultOn,
  type Side,
  type SideResult,
} from './side.ts';

export interface SidesOptions {
  readonly test: McNemarTest;
  readonly seed: number;
  /** Bootstrap draws; a test may set fewer. */
  readonly draws?: number;
}

interface SideHead {
  readonly label: string;
  readonly kind: Side['kind'];
  readonly model: string | null;
  readonly epochs: number;
  /** Over the matched instances. */
  readonly resolved: Proportion;
  readonly meanResolved: number | null;
  /** Of the mean, over instances, where there are several epochs. */
  readonly meanInterval: Interval | null;
}

/** The instances by their result; with one epoch an instance is in exactly one of the first four. */
interface Lists {
  readonly matched: number;
  readonly fixed: readonly string[];
  readonly broken: readonly string[];
  readonly both: readonly string[];
  readonly neither: readonly string[];
  /** Instances that neither side names and both leave unresolved (leaderboard results). */
  readonly unnamedNeither: number;
  /** With epochs: differing, but not in every epoch. In neither of the four lists above. */
  readonly mixed: readonly string[];
  /** Matched instances that lack a planned epoch on a side: they count with the epochs that are there. */
  readonly partly: readonly string[];
  readonly notComparable: readonly NotComparable[];
  readonly fellOut: readonly { readonly why: FellOut; readonly n: number }[];
}

/** B / A: ratios of geometric means over matched instances; and what a resolved instance cost each. */
interface Costs {
  readonly ratios: Readonly<Record<'cost' | 'tokens' | 'steps', Bootstrapped | null>>;
  readonly costPerResolved: Readonly<Record<'a' | 'b', Bootstrapped | null>>;
}

export interface Comparison extends Lists, TestedDifference, Power, Costs {
  readonly a: SideHead;
  readonly b: SideHead;
  /** The same with every missing result counted as a failure. */
  readonly sensitivity: Sensitivity | null;
  readonly clusters: ClusterSensitivity | null;
  /** Absent where neither side has rewards. */
  readonly reward?: RewardDifference;
  readonly differences: readonly FactDifference[];
  /** Sides that do not say how they were run. */
  readonly conditionsUnknown: readonly string[];
  readonly warnings: readonly string[];
  readonly seed: number;
}

export function compareSides(a: Side, b: Side, options: SidesOptions): Comparison {
  const matching = matchSides(a, b);
  const { pairs, unnamedNeither, gains, repositories } = matching;
  const [left, right] = [pairs.map((p) => p.a), pairs.map((p) => p.b)];
  const epochs = a.epochs > 1 || b.epochs > 1;
  const lists = listsOf(a, b, matching);
  const asked = askedOfBoth(matching);
  const reward = rewardDifference({ a, b }, pairs, asked, options.seed);
  const table: PairedTable = {
    both: lists.both.length,
    // Differences are B minus A, so B is the first of the table.
    aOnly: lists.fixed.length,
    bOnly: lists.broken.length,
    neither: lists.neither.length + unnamedNeither,
  };
  return {
    a: head(a, left, unnamedNeither),
    b: head(b, right, unnamedNeither),
    ...lists,
    ...testDifference(matching, table, epochs, options),
    sensitivity: missingAsFailed(a, b, asked, unnamedNeither, options),
    clusters: repositories && clustered(gains, repositories),
    ...(reward && { reward }),
    ...powerOf(gains, table, epochs),
    ...costsOf(pairs, options),
    differences: conditionDifferences(a, b, pairs),
    conditionsUnknown: sidesWithoutConditions([a, b]),
    warnings: [...a.warnings, ...b.warnings, ...coverageWarnings(a, b, lists.matched)],
    seed: options.seed,
  };
}

/** Removed and added instances were not asked of both: they say nothing about failing. */
const askedOfBoth = ({ pairs, notComparable }: Matching): string[] =>
  [...pairs, ...notComparable.filter((x) => x.why !== 'removed' && x.why !== 'added')]
    .map((x) => x.instanceId)
    .sort();

function listsOf(a: Side, b: Side, { pairs, unnamedNeither, notComparable }: Matching): Lists {
  const where = (test: (x: number, y: number) => boolean) =>
    pairs.filter((p) => test(rateOf(p.a), rateOf(p.b))).map((p) => p.instanceId);
  return {
    matched: pairs.length + unnamedNeither,
    fixed: where((x, y) => x === 0 && y === 1),
    broken: where((x, y) => x === 1 && y === 0),
    both: where((x, y) => x === 1 && y === 1),
    neither: where((x, y) => x === 0 && y === 0),
    unnamedNeither,
    mixed: where((x, y) => (x > 0 && x < 1) || (y > 0 && y < 1)),
    partly: pairs
      .filter((p) => p.a.scores.length < a.epochs || p.b.scores.length < b.epochs)
      .map((p) => p.instanceId),
    notComparable,
    fellOut: countBy(notComparable.map((x) => x.why)),
  };
}

function head(side: Side, results: readonly SideResult[], unnamedNeither: number): SideHead {
  const n = results.length + unnamedNeither;
  // With epochs an instance counts as resolved here when most of its epochs are; the mean stands beside it.
  const resolved = results.filter((r) => rateOf(r) > 0.5).length;
  const means = [...results.map(rateOf), ...Array<number>(unnamedNeither).fill(0)];
  return {
    label: side.label,
    kind: side.kind,
    model: side.model,
    epochs: side.epochs,
    resolved: proportion(resolved, n),
    meanResolved: n === 0 ? null : mean(means),
    meanInterval:
      side.epochs > 1
        ? shareInterval(
            means,
            results.reduce((s, r) => s + r.scores.length, unnamedNeither),
          )
        : null,
  };
}

/** All with the same draws: over very many instances these are most of the time that a comparison takes. */
function costsOf(pairs: readonly Pair[], { seed, draws }: SidesOptions): Costs {
  const [cost, tokens, steps, a, b] = bootstraps(
    [
      ratio(pairs, (r) => r.costNano),
      ratio(pairs, (r) => r.tokens),
      ratio(pairs, (r) => r.steps),
      perResolved(pairs.map((p) => p.a)),
      perResolved(pairs.map((p) => p.b)),
    ],
    seed,
    draws,
  );
  return {
    ratios: { cost: cost!, tokens: tokens!, steps: steps! },
    costPerResolved: { a: a!, b: b! },
  };
}

const ratio = (pairs: readonly Pair[], of: (r: SideResult) => number | null): Statistic =>
  geometricMeans(
    pairs.flatMap((p) => {
      const [x, y] = [of(p.b), of(p.a)];
      return x === null || y === null ? [] : [[x, y] as const];
    }),
  );

/** Over no instances where a cost is not known, or all are free. */
function perResolved(results: readonly SideResult[]): Statistic {
  const known = results.filter((r) => r.spentNano !== null);
  const none = known.length < results.length || known.every((r) => r.spentNano === 0);
  return costAResolved(
    none ? [] : known.map((r) => ({ cost: r.spentNano!, resolved: r.scores.filter(Boolean).length })),
  );
}

function coverageWarnings(a: Side, b: Side, n: number): string[] {
  if (n === 0) return [`no instance was validly finished on both ${a.label} and ${b.label}`];
  return a.epochs === b.epochs ? [] : [`${a.label} has ${a.epochs} epoch(s), ${b.label} has ${b.epochs}`];
}

const countBy = (whys: readonly FellOut[]): { why: FellOut; n: number }[] =>
  [...Map.groupBy(whys, (w) => w)]
    .map(([why, group]) => ({ why, n: group.length }))
    .sort((x, y) => y.n - x.n);

const SHOWN = 10;

function conditionDifferences(a: Side, b: Side, pairs: readonly Pair[]): FactDifference[] {
  const rows = changed(pairs, (r) => r.rowHash);
  const images = changed(pairs, (r) => r.imageDigest);
  const sameRows = pairs.length > 0 && rows.known === pairs.length && rows.ids.length === 0;
  const sharedOnly = a.partial || b.partial;
  return [
    ...difference('dataset.rows', 'dataset', rows),
    ...difference('images', 'resources', images),
    ...factDifferences(a.facts, b.facts, { sharedOnly }).map((d) =>
      // The same rows under another path are the same dataset.
      d.key === 'dataset.source' && sameRows ? { ...d, loud: false } : d,
    ),
  ].sort((x, y) => Number(y.loud) - Number(x.loud));
}

interface Changed {
  readonly known: number;
  readonly ids: readonly string[];
}

function changed(pairs: readonly Pair[], of: (r: SideResult) => string | null): Changed {
  const known = pairs.filter((p) => of(p.a) !== null && of(p.b) !== null);
  return {
    known: known.length,
    ids: known.filter((p) => of(p.a) !== of(p.b)).map((p) => p.instanceId),
  };
}

function difference(key: string, group: FactDifference['group'], { known, ids }: Changed): FactDifference[] {
  if (ids.length === 0) return [];
  const more = ids.length - SHOWN;
  return [
    {
      key,
      group,
      loud: true,
      a: `${known} known`,
      b: `${ids.length} not the same`,
      diff: [
        `not the same for ${ids.length} of ${known} matched instances:`,
        ...ids.slice(0, SHOWN),
        ...(more > 0 ? [`and ${more} more`] : []),
      ],
    },
  ];
}

/** Labels of sides that do not say how they were run. */
const sidesWithoutConditions = (sides: readonly Side[]): string[] =>
  sides.filter((s) => s.partial && !saysHow(s)).map((s) => s.label);

/** A published trajectory holds its configuration, a report holds none. */
const saysHow = ({ facts }: Side): boolean => [...facts.keys()].some((key) => key.startsWith('agent.'));

interface Sensitivity {
  readonly n: number;
  readonly points: number;
  readonly interval: Interval | null;
  readonly p: number;
}

/** `ids`: those that both sides were meant to answer. `unnamedNeither`: further ones that neither resolved. */
function missingAsFailed(
  a: Side,
  b: Side,
  ids: readonly string[],
  unnamedNeither: number,
  { test, seed }: { readonly test: McNemarTest; readonly seed: number },
): Sensitivity | null {
  const n = ids.length + unnamedNeither;
  if (n === 0) return null;
  const rates = ids.map(
    (id) => [rateWithMissing(resultOn(a, id)!, a), rateWithMissing(resultOn(b, id)!, b)] as const,
  );
  if (a.epochs > 1 || b.epochs > 1) {
    const d = [...rates.map(([x, y]) => y - x), ...Array<number>(unnamedNeither).fill(0)];
    const interval = tTest(d)?.interval;
    return {
      n,
      points: mean(d),
      interval: interval ? withinOne(interval) : null,
      p: signFlip(d, seed).p,
    };
  }
  const count = (x: number, y: number) => rates.filter(([p, q]) => p === x && q === y).length;
  const table: PairedTable = {
    both: count(1, 1),
    aOnly: count(0, 1),
    bOnly: count(1, 0),
    neither: count(0, 0) + unnamedNeither,
  };
  return {
    n,
    points: differenceOf(table),
    interval: newcombe10(table),
    p: mcnemar(test, table.aOnly, table.bOnly),
  };
}

const rateWithMissing = (result: SideResult, side: Side): number =>
  result.scores.filter(Boolean).length / Math.max(side.epochs, result.scores.length);

export interface Comparisons {
  readonly sides: readonly string[];
  readonly comparisons: readonly (Comparison & { readonly pHolm: number | null })[];
  /** Over instances validly finished on every side; null with two sides, or with epochs. */
  readonly omnibus: {
    readonly n: number;
    readonly statistic: number;
    readonly df: number;
    readonly p: number;
  } | null;
}

export function compareAll(sides: readonly Side[], options: SidesOptions): Comparisons {
  const pairs = sides.flatMap((a, i) => sides.slice(i + 1).map((b) => compareSides(a, b, options)));
  const tested = pairs.filter((c) => c.test !== null);
  const adjusted = holm(tested.map((c) => c.test!.p));
  const pHolm = new Map(tested.map((c, i) => [c, adjusted[i]!]));
  const rewarded = pairs.filter((c) => c.reward?.permutation);
  const adjustedRewards = holm(rewarded.map((c) => c.reward!.permutation!.p));
  const rewardHolm = new Map(rewarded.map((c, i) => [c, adjustedRewards[i]!]));
  return {
    sides: sides.map((s) => s.label),
    comparisons: pairs.map((c) => ({
      ...c,
      ...(rewardHolm.has(c) && { reward: { ...c.reward!, pHolm: rewardHolm.get(c)! } }),
      pHolm: pHolm.get(c) ?? null,
    })),
    omnibus: omnibusOf(sides),
  };
}

function omnibusOf(sides: readonly Side[]): Comparisons['omnibus'] {
  if (sides.length < 3 || sides.some((s) => s.epochs > 1)) return null;
  const ids = [...new Set(sides.flatMap((s) => [...s.results.keys()]))];
  const rows = ids
    .map((id) => sides.map((s) => resultOn(s, id)))
    .filter((row) => row.every((r) => r !== undefined && r.scores.length > 0))
    .map((row) => row.map((r) => r!.scores[0]!));
  const q = rows.length === 0 ? null : cochranQ(rows);
  return q && { n: rows.length + unnamedBy(sides, ids.length), ...q };
}

/** Leaderboard entries over one dataset: what none of them names, none resolves; it counts, and changes nothing about Q. */
function unnamedBy(sides: readonly Side[], named: number): number {
  const total = sides[0]?.open?.total ?? null;
  return total !== null && sides.every((s) => s.open?.total === total) ? Math.max(0, total - named) : 0;
}

/** Several comparisons at once: Holm for arms, Benjamini-Hochberg for exploratory slices. Order of the input is kept. */

function stepwise(
  ps: readonly number[],
  order: readonly number[],
  factor: (rank: number) => number,
  fold: (a: number, b: number) => number,
  start: number,
): number[] {
  const adjusted = new Array<number>(ps.length);
  let running = start;
  for (const [rank, index] of order.entries()) {
    running = fold(running, Math.min(1, ps[index]! * factor(rank)));
    adjusted[index] = running;
  }
  return adjusted;
}

const ascending = (ps: readonly number[]) => [...ps.keys()].sort((a, b) => ps[a]! - ps[b]!);

export const holm = (ps: readonly number[]): number[] =>
  stepwise(ps, ascending(ps), (rank) => ps.length - rank, Math.max, 0);

export const benjaminiHochberg = (ps: readonly number[]): number[] =>
  stepwise(ps, ascending(ps).reverse(), (rank) => ps.length / (ps.length - rank), Math.min, 1);
