/**
 * Two sides on the same instances, and only those that both finished validly. A is the reference: "fixed" is what B resolves and A does
 * not, "broken" the other way round, and differences are B minus A. Pure; seeds are part of the answer.
 */

import type { FactDifference } from '../measure/runFacts.ts';
import { shareInterval } from '../statistics/epochs.ts';
import { type ClusterSensitivity, clustered, mean } from '../statistics/means.ts';
import type { McNemarTest, PairedTable } from '../statistics/paired.ts';
import { type Interval, type Proportion, proportion } from '../statistics/proportions.ts';
import {
  type Bootstrapped,
  bootstraps,
  costAResolved,
  geometricMeans,
  type Statistic,
} from '../statistics/resampling.ts';
import { conditionDifferences, sidesWithoutConditions } from './conditions.ts';
import { type Power, powerOf, type TestedDifference, testDifference } from './difference.ts';
import { type Matching, matchSides, type NotComparable, type Pair, rateOf } from './matching.ts';
import { missingAsFailed, type Sensitivity } from './missingAsFailed.ts';
import { type RewardDifference, rewardDifference } from './rewardDifference.ts';
import type { FellOut, Side, SideResult } from './side.ts';

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
