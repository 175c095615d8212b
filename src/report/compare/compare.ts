/**
 * Two sides on the same instances, and only those that both finished validly. A is the reference: "fixed" is what B resolves and A does
 * not, "broken" the other way round, and differences are B minus A. Pure; seeds are part of the answer.
 */

import type { FactDifference } from '../measure/facts.ts';
import { shareInterval } from '../statistics/epochs.ts';
import {
  type ClusterSensitivity,
  clustered,
  isNoSpread,
  mean,
  type TTest,
  tTest,
  variance,
} from '../statistics/means.ts';
import {
  differenceOf,
  type McNemarTest,
  mcnemar,
  mcnemarChiSquared,
  mcnemarExact,
  mcnemarMidP,
  newcombe10,
  type PairedTable,
  waldPaired,
} from '../statistics/paired.ts';
import { detectableDifference } from '../statistics/power.ts';
import { type Interval, type Proportion, proportion } from '../statistics/proportions.ts';
import {
  type Bootstrapped,
  costPerResolved,
  type Permutation,
  ratioOfGeometricMeans,
  signFlip,
} from '../statistics/resampling.ts';
import { conditionDifferences, sidesWithoutConditions } from './conditions.ts';
import { missingAsFailed, type Sensitivity } from './missingAsFailed.ts';
import { type FellOut, repoOfId, resultOn, type Side, type SideResult } from './side.ts';

export interface CompareOptions {
  readonly test: McNemarTest;
  readonly seed: number;
  /** Bootstrap draws; a test may set fewer. */
  readonly draws?: number;
}

export interface SideHead {
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

/** An instance that fell out, and which side lacks it. */
export interface NotComparable {
  readonly instanceId: string;
  readonly why: FellOut;
  readonly missingIn: 'a' | 'b' | 'both';
}

export interface Difference {
  readonly points: number;
  readonly interval: Interval | null;
  readonly method: 'Newcombe 10' | 't';
}

export interface Comparison {
  readonly a: SideHead;
  readonly b: SideHead;
  readonly matched: number;
  readonly fixed: readonly string[];
  readonly broken: readonly string[];
  readonly both: readonly string[];
  readonly neither: readonly string[];
  /** Instances that neither side names and both leave unresolved (leaderboard results). */
  readonly unnamedNeither: number;
  /** With epochs: differing, but not in every epoch. In neither of the four lists above. */
  readonly mixed: readonly string[];
  /** Matched instances of which some planned epoch is missing on a side: they enter with the epochs that are there. */
  readonly partly: readonly string[];
  readonly notComparable: readonly NotComparable[];
  readonly fellOut: readonly { readonly why: FellOut; readonly n: number }[];
  readonly difference: Difference | null;
  /** The test that decides, named; the others are for reference. */
  readonly test: { readonly name: string; readonly p: number } | null;
  readonly reference: {
    readonly exact: number | null;
    readonly midP: number | null;
    readonly chiSquared: { readonly statistic: number; readonly p: number } | null;
    readonly wald: Interval | null;
    readonly t: TTest | null;
    readonly permutation: Permutation | null;
  };
  /** The same with every missing result counted as a failure. */
  readonly sensitivity: Sensitivity | null;
  readonly clusters: ClusterSensitivity | null;
  /** Smallest difference this comparison would find in four of five cases; null without a discordant pair. */
  readonly detectable: number | null;
  readonly discordance: number | null;
  /** B / A: ratios of geometric means over matched instances. */
  readonly ratios: {
    readonly cost: Bootstrapped | null;
    readonly tokens: Bootstrapped | null;
    readonly steps: Bootstrapped | null;
  };
  readonly costPerResolved: { readonly a: Bootstrapped | null; readonly b: Bootstrapped | null };
  readonly differences: readonly FactDifference[];
  /** Sides that do not say how they were run. */
  readonly conditionsUnknown: readonly string[];
  readonly warnings: readonly string[];
  readonly seed: number;
}

interface Pair {
  readonly instanceId: string;
  readonly a: SideResult;
  readonly b: SideResult;
}

const rateOf = (r: SideResult): number => mean(r.scores.map(Number));

export function compareSides(a: Side, b: Side, options: CompareOptions): Comparison {
  const ids = [...new Set([...a.results.keys(), ...b.results.keys()])].sort();
  const pairs: Pair[] = [];
  const notComparable: NotComparable[] = [];
  for (const instanceId of ids) {
    const [left, right] = [resultOn(a, instanceId), resultOn(b, instanceId)];
    const pair = align(instanceId, left, right);
    if (pair) pairs.push(pair);
    else {
      const lost = whyNot(instanceId, left, right);
      if (lost) notComparable.push(lost);
    }
  }
  const epochs = a.epochs > 1 || b.epochs > 1;
  // Removed and added instances were not asked of both: they say nothing about failing.
  const asked = [
    ...pairs.map((p) => p.instanceId),
    ...notComparable.filter((x) => x.why !== 'removed' && x.why !== 'added').map((x) => x.instanceId),
  ].sort();
  const unnamedNeither = unnamed(a, b, ids.length);
  const outcome = (p: Pair) => [rateOf(p.a), rateOf(p.b)] as const;
  const where = (test: (x: number, y: number) => boolean) =>
    pairs.filter((p) => test(...outcome(p))).map((p) => p.instanceId);
  const table: PairedTable = {
    both: where((x, y) => x === 1 && y === 1).length,
    aOnly: where((x, y) => x === 0 && y === 1).length,
    bOnly: where((x, y) => x === 1 && y === 0).length,
    neither: where((x, y) => x === 0 && y === 0).length + unnamedNeither,
  };
  const n = pairs.length + unnamedNeither;
  const repositories = repositoriesOf(a, b, pairs, ids, unnamedNeither);
  const d = [...pairs.map((p) => rateOf(p.b) - rateOf(p.a)), ...Array<number>(unnamedNeither).fill(0)];
  const t = tTest(d);
  const permutation = epochs ? signFlip(d, options.seed) : null;
  return {
    a: head(
      a,
      pairs.map((p) => p.a),
      unnamedNeither,
    ),
    b: head(
      b,
      pairs.map((p) => p.b),
      unnamedNeither,
    ),
    matched: n,
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
    difference: n === 0 ? null : epochs ? byMeans(t, d, pairs) : byPairs(table),
    test: n === 0 ? null : decide(options, epochs, table, permutation),
    reference: {
      exact: epochs || n === 0 ? null : mcnemarExact(table.aOnly, table.bOnly),
      midP: epochs || n === 0 ? null : mcnemarMidP(table.aOnly, table.bOnly),
      chiSquared: epochs ? null : mcnemarChiSquared(table.aOnly, table.bOnly),
      wald: epochs || n === 0 ? null : waldPaired(table),
      t,
      permutation,
    },
    sensitivity: missingAsFailed(a, b, asked, unnamedNeither, options),
    clusters: repositories && clustered(d, repositories),
    ...powerOf(epochs, table, d),
    ratios: {
      cost: ratio(pairs, (r) => r.costNano, options),
      tokens: ratio(pairs, (r) => r.tokens, options),
      steps: ratio(pairs, (r) => r.steps, options),
    },
    costPerResolved: {
      a: perResolved(
        pairs.map((p) => p.a),
        options,
      ),
      b: perResolved(
        pairs.map((p) => p.b),
        options,
      ),
    },
    differences: conditionDifferences(a, b, pairs),
    conditionsUnknown: sidesWithoutConditions([a, b]),
    warnings: [...a.warnings, ...b.warnings, ...coverageWarnings(a, b, n)],
    seed: options.seed,
  };
}

function align(instanceId: string, a: SideResult | undefined, b: SideResult | undefined): Pair | null {
  return a && b && a.scores.length > 0 && b.scores.length > 0 ? { instanceId, a, b } : null;
}

/** Null for an instance that neither side was meant to answer. */
function whyNot(
  instanceId: string,
  a: SideResult | undefined,
  b: SideResult | undefined,
): NotComparable | null {
  if (!a) return { instanceId, why: 'added', missingIn: 'a' };
  if (!b) return { instanceId, why: 'removed', missingIn: 'b' };
  const missing = (r: SideResult) => r.scores.length === 0;
  if (missing(a) && missing(b))
    return a.why === 'incomplete' && b.why === 'incomplete'
      ? null
      : { instanceId, why: b.why ?? 'error', missingIn: 'both' };
  return missing(b)
    ? { instanceId, why: b.why ?? 'error', missingIn: 'b' }
    : { instanceId, why: a.why ?? 'error', missingIn: 'a' };
}

/** Two leaderboard entries over the same dataset: what neither names, neither resolves. */
function unnamed(a: Side, b: Side, named: number): number {
  const total = a.open && b.open && a.open.total === b.open.total ? a.open.total : null;
  return total === null ? 0 : Math.max(0, total - named);
}

/** One for every difference. Null where a leaderboard does not say how many of its unnamed instances each repository has. */
function repositoriesOf(
  a: Side,
  b: Side,
  pairs: readonly Pair[],
  ids: readonly string[],
  unnamedNeither: number,
): string[] | null {
  const named = pairs.map((p) => p.a.repo || p.b.repo);
  if (unnamedNeither === 0) return named;
  const [sizes, others] = [a.open?.byRepo, b.open?.byRepo];
  if (!sizes || !others || [...sizes].some(([repo, size]) => others.get(repo) !== size)) return null;
  const left = new Map(sizes);
  for (const id of ids) left.set(repoOfId(id), (left.get(repoOfId(id)) ?? 0) - 1);
  const rest = [...left].flatMap(([repo, n]) => Array<string>(Math.max(0, n)).fill(repo));
  return rest.length === unnamedNeither ? [...named, ...rest] : null;
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

const byPairs = (table: PairedTable): Difference => ({
  points: differenceOf(table),
  interval: newcombe10(table),
  method: 'Newcombe 10',
});

/** Where every instance differs by the same, t would claim certainty: then the table that independent epochs would give. */
function byMeans(t: TTest | null, d: readonly number[], pairs: readonly Pair[]): Difference {
  if (t === null || isNoSpread(t.se)) {
    const part = (of: (x: number, y: number) => number) =>
      pairs.reduce((s, p) => s + of(rateOf(p.a), rateOf(p.b)), 0);
    return byPairs({
      both: part((x, y) => x * y),
      aOnly: part((x, y) => (1 - x) * y),
      bOnly: part((x, y) => x * (1 - y)),
      neither: part((x, y) => (1 - x) * (1 - y)) + d.length - pairs.length,
    });
  }
  return {
    points: mean(d),
    // A difference of shares ends at one, however few instances there are.
    interval: { low: Math.max(-1, t.interval.low), high: Math.min(1, t.interval.high) },
    method: 't',
  };
}

function decide(
  options: CompareOptions,
  epochs: boolean,
  table: PairedTable,
  permutation: Permutation | null,
): Comparison['test'] {
  if (epochs && permutation)
    return { name: `sign-flip permutation (${permutation.method})`, p: permutation.p };
  const name = options.test === 'exact' ? 'exact McNemar' : 'mid-p McNemar';
  return { name, p: mcnemar(options.test, table.aOnly, table.bOnly) };
}

function powerOf(
  epochs: boolean,
  table: PairedTable,
  d: readonly number[],
): Pick<Comparison, 'detectable' | 'discordance'> {
  const n = d.length;
  if (n < 2) return { detectable: null, discordance: null };
  const discordance = epochs ? null : (table.aOnly + table.bOnly) / n;
  const spread = epochs ? (variance(d) ?? 0) : (discordance ?? 0);
  return { detectable: spread === 0 ? null : detectableDifference(spread, n), discordance };
}

const ratio = (pairs: readonly Pair[], of: (r: SideResult) => number | null, options: CompareOptions) =>
  ratioOfGeometricMeans(
    pairs.flatMap((p) => {
      const [x, y] = [of(p.b), of(p.a)];
      return x === null || y === null ? [] : [[x, y] as const];
    }),
    options.seed,
    options.draws,
  );

function perResolved(results: readonly SideResult[], options: CompareOptions): Bootstrapped | null {
  const known = results.filter((r) => r.costNano !== null);
  if (known.length < results.length || known.every((r) => r.costNano === 0)) return null;
  return costPerResolved(
    known.map((r) => ({ cost: r.costNano!, resolved: rateOf(r) })),
    options.seed,
    options.draws,
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
