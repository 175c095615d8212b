/** Two sides compared over the instances that both finished validly, and several sides pair by pair. */

import { type FactDifference, factDifferences } from '../measure/runFacts.ts';
import { namedRewards } from '../measure/score.ts';
import { shareInterval } from '../statistics/epochs.ts';
import { clustered, mean, tTest, variance } from '../statistics/means.ts';
import { fisherP } from '../statistics/nightTests.ts';
import {
  cochranQ,
  detectableDifference,
  differenceOf,
  differenceOfMeans,
  type McNemarTest,
  mcnemar,
  mcnemarChiSquared,
  mcnemarExact,
  mcnemarMidP,
  newcombe10,
  type PairedTable,
  waldPaired,
} from '../statistics/paired.ts';
import { proportion } from '../statistics/proportions.ts';
import {
  type Bootstrapped,
  bootstraps,
  costAResolved,
  geometricMeans,
  type Statistic,
  signFlip,
} from '../statistics/resampling.ts';
import { meanReward, pairedRewards } from '../statistics/rewards.ts';
import {
  type Matching,
  matchSides,
  type Pair,
  rateOf,
  resultOn,
  type Side,
  type SideResult,
} from './side.ts';

interface SidesOptions {
  readonly test: McNemarTest;
  readonly seed: number;
  /** Bootstrap draws; a test may set fewer. */
  readonly draws?: number;
}

export type Comparison = ReturnType<typeof compareSides>;

export function compareSides(a: Side, b: Side, options: SidesOptions) {
  const { pairs, unnamedNeither, notComparable, gains, repositories } = matchSides(a, b);
  const { seed, draws } = options;
  const epochs = a.epochs > 1 || b.epochs > 1;
  const matched = pairs.length + unnamedNeither;
  const where = (test: (x: number, y: number) => boolean) =>
    pairs.filter((p) => test(rateOf(p.a), rateOf(p.b))).map((p) => p.instanceId);
  const fixed = where((x, y) => x === 0 && y === 1);
  const broken = where((x, y) => x === 1 && y === 0);
  const both = where((x, y) => x === 1 && y === 1);
  const neither = where((x, y) => x === 0 && y === 0);
  // Differences are B minus A, so B is the first of the table.
  const table: PairedTable = {
    both: both.length,
    aOnly: fixed.length,
    bOnly: broken.length,
    neither: neither.length + unnamedNeither,
  };
  // Removed and added instances were not asked of both: they say nothing about failing.
  const asked = [...pairs, ...notComparable.filter((x) => x.why !== 'removed' && x.why !== 'added')]
    .map((x) => x.instanceId)
    .sort();
  const reward: RewardDifference | null = rewardDifference(a, b, pairs, asked, seed);
  const infraLoss = infraLossOf(a, b);
  // All with the same draws: over very many instances these are most of the time that a comparison takes.
  const [cost, tokens, steps, wallTime, perResolvedA, perResolvedB] = bootstraps(
    [
      ratio(pairs, (r) => r.costNano),
      ratio(pairs, (r) => r.tokens),
      ratio(pairs, (r) => r.steps),
      ratio(pairs, (r) => r.elapsedMs),
      perResolved(pairs.map((p) => p.a)),
      perResolved(pairs.map((p) => p.b)),
    ],
    seed,
    draws,
  ) as [Drawn, Drawn, Drawn, Drawn, Drawn, Drawn];
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
    matched,
    // With one epoch an instance is in exactly one of these four.
    fixed,
    broken,
    both,
    neither,
    /** Instances that neither side names and both leave unresolved (leaderboard results). */
    unnamedNeither,
    /** Instances that differ with epochs, but not in every one. In neither of the four lists above. */
    mixed: where((x, y) => (x > 0 && x < 1) || (y > 0 && y < 1)),
    /** Matched instances that lack a planned epoch on a side: they count with the epochs that are there. */
    partly: pairs
      .filter((p) => p.a.scores.length < a.epochs || p.b.scores.length < b.epochs)
      .map((p) => p.instanceId),
    notComparable,
    fellOut: [...Map.groupBy(notComparable, ({ why }) => why)]
      .map(([why, group]) => ({ why, n: group.length }))
      .sort((x, y) => y.n - x.n),
    ...testDifference({ pairs, gains }, table, epochs, options),
    /** The same with every missing result counted as a failure. */
    sensitivity: missingAsFailed(a, b, asked, unnamedNeither, options),
    clusters: repositories && clustered(gains, repositories),
    /** Absent where neither side has rewards. */
    ...(reward && { reward }),
    /** Absent where infrastructure took nothing from B. */
    ...(infraLoss && { infraLoss }),
    ...powerOf(gains, table, epochs),
    /** B / A: ratios of geometric means over matched instances; and what a resolved instance cost each. */
    ratios: { cost, tokens, steps, wallTime },
    /** The cached share of the tokens of requests over matched instances, from 0 to 1; null where it is not known. */
    cachedShare: { a: cachedShare(pairs.map((p) => p.a)), b: cachedShare(pairs.map((p) => p.b)) },
    /** The tokens of a first request beside the task: instructions and tools; null where they are not known. */
    overheadTokens: { a: a.overheadTokens ?? null, b: b.overheadTokens ?? null },
    costPerResolved: { a: perResolvedA, b: perResolvedB },
    differences: conditionDifferences(a, b, pairs),
    /** Sides that do not say how they were run: a published trajectory holds its configuration, a report holds none. */
    conditionsUnknown: [a, b]
      .filter(({ partial, facts }) => partial && ![...facts.keys()].some((key) => key.startsWith('agent.')))
      .map((s) => s.label),
    warnings: [...a.warnings, ...b.warnings, ...coverageWarnings(a, b, matched)],
    seed,
  };
}

type Drawn = Bootstrapped | null;

/** Whether what infrastructure took from B are rather instances that A failed: then the rest of B looks better than B is. */
function infraLossOf(a: Side, b: Side) {
  const known = [...b.results.values()].flatMap((result) => {
    const reference = resultOn(a, result.instanceId);
    if (!reference || reference.scores.length === 0 || (result.infra === 0 && result.why !== null)) return [];
    return [{ id: result.instanceId, lost: result.infra > 0, failed: rateOf(reference) <= 0.5 }];
  });
  const lost = known.filter((k) => k.lost);
  if (lost.length === 0) return null;
  const count = (failed: boolean) => ({
    lost: lost.filter((k) => k.failed === failed).length,
    of: known.filter((k) => k.failed === failed).length,
  });
  const [failed, resolved] = [count(true), count(false)];
  return {
    failed,
    resolved,
    ids: lost.filter((k) => k.failed).map((k) => k.id),
    /** The chance of as many or more among those that A failed, by Fisher's exact test. */
    p: fisherP(failed.lost, failed.of, lost.length, known.length),
  };
}

function head(side: Side, results: readonly SideResult[], unnamedNeither: number) {
  const n = results.length + unnamedNeither;
  // With epochs an instance counts as resolved here when most of its epochs are; the mean stands beside it.
  const resolved = results.filter((r) => rateOf(r) > 0.5).length;
  const means = [...results.map(rateOf), ...Array<number>(unnamedNeither).fill(0)];
  const trials = results.reduce((s, r) => s + r.scores.length, unnamedNeither);
  return {
    label: side.label,
    kind: side.kind,
    model: side.model,
    agent: side.agent ?? null,
    epochs: side.epochs,
    /** Over the matched instances. */
    resolved: proportion(resolved, n),
    meanResolved: n === 0 ? null : mean(means),
    /** The interval of the mean, over instances, where there are several epochs. */
    meanInterval: side.epochs > 1 ? shareInterval(means, trials) : null,
  };
}

function cachedShare(results: readonly SideResult[]): number | null {
  const known = results.filter((r) => r.inputTokens !== null && r.cachedTokens !== null);
  const input = known.reduce((sum, r) => sum + r.inputTokens!, 0);
  return input === 0 ? null : known.reduce((sum, r) => sum + r.cachedTokens!, 0) / input;
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

const SHOWN = 10;

function conditionDifferences(a: Side, b: Side, pairs: readonly Pair[]): FactDifference[] {
  const changed = (of: (r: SideResult) => string | null) => {
    const known = pairs.filter((p) => of(p.a) !== null && of(p.b) !== null);
    return { known: known.length, ids: known.filter((p) => of(p.a) !== of(p.b)).map((p) => p.instanceId) };
  };
  const rows = changed((r) => r.rowHash);
  const images = changed((r) => r.imageDigest);
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

function difference(
  key: string,
  group: FactDifference['group'],
  { known, ids }: { readonly known: number; readonly ids: readonly string[] },
): FactDifference[] {
  if (ids.length === 0) return [];
  const more = ids.length - SHOWN;
  const diff = [
    `not the same for ${ids.length} of ${known} matched instances:`,
    ...ids.slice(0, SHOWN),
    ...(more > 0 ? [`and ${more} more`] : []),
  ];
  return [{ key, group, loud: true, a: `${known} known`, b: `${ids.length} not the same`, diff }];
}

/** `ids`: those that both sides were meant to answer. `unnamedNeither`: further ones that neither resolved. */
function missingAsFailed(
  a: Side,
  b: Side,
  ids: readonly string[],
  unnamedNeither: number,
  { test, seed }: SidesOptions,
) {
  const n = ids.length + unnamedNeither;
  if (n === 0) return null;
  const rates = ids.map(
    (id) => [rateWithMissing(resultOn(a, id)!, a), rateWithMissing(resultOn(b, id)!, b)] as const,
  );
  if (a.epochs > 1 || b.epochs > 1) {
    const all = [...rates, ...Array<readonly [number, number]>(unnamedNeither).fill([0, 0])];
    const { difference: points, interval } = differenceOfMeans(all);
    return {
      n,
      points,
      interval,
      p: signFlip(
        all.map(([x, y]) => y - x),
        seed,
      ).p,
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

export type Comparisons = ReturnType<typeof compareAll>;

/** Several comparisons at once are adjusted by Holm; the order of the input is kept. */
export function compareAll(sides: readonly Side[], options: SidesOptions) {
  const pairs = sides.flatMap((a, i) => sides.slice(i + 1).map((b) => compareSides(a, b, options)));
  const adjusted = (pOf: (c: Comparison) => number | undefined) => {
    const tested = pairs.filter((c) => pOf(c) !== undefined);
    const ps = holm(tested.map((c) => pOf(c)!));
    return new Map(tested.map((c, i) => [c, ps[i]!]));
  };
  const byVerdict = adjusted((c) => c.test?.p);
  const byReward = adjusted((c) => c.reward?.permutation?.p);
  return {
    sides: sides.map((s) => s.label),
    comparisons: pairs.map((c) => ({
      ...c,
      ...(byReward.has(c) && { reward: { ...c.reward!, pHolm: byReward.get(c)! } }),
      pHolm: byVerdict.get(c) ?? null,
    })),
    omnibus: omnibusOf(sides),
  };
}

/** Over instances validly finished on every side; null with two sides, or with epochs. */
function omnibusOf(sides: readonly Side[]) {
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

/** Holm's step-down (1979). */
export function holm(ps: readonly number[]): number[] {
  const adjusted = new Array<number>(ps.length);
  let running = 0;
  for (const [rank, index] of [...ps.keys()].sort((a, b) => ps[a]! - ps[b]!).entries()) {
    running = Math.max(running, Math.min(1, ps[index]! * (ps.length - rank)));
    adjusted[index] = running;
  }
  return adjusted;
}

/** `epochs`: a side has several, so that an instance counts by its mean. */
function testDifference(
  { pairs, gains }: Pick<Matching, 'pairs' | 'gains'>,
  table: PairedTable,
  epochs: boolean,
  options: { readonly test: McNemarTest; readonly seed: number },
) {
  const n = gains.length;
  const t = tTest(gains);
  const permutation = epochs ? signFlip(gains, options.seed) : null;
  const { aOnly, bOnly } = table;
  const paired = !epochs && n > 0;
  return {
    difference: n === 0 ? null : epochs ? byMeans(pairs, n - pairs.length) : byPairs(table),
    /** The test that decides, named; the others are for reference. */
    test:
      n === 0
        ? null
        : permutation
          ? { name: `sign-flip permutation (${permutation.method})`, p: permutation.p }
          : {
              name: options.test === 'exact' ? 'exact McNemar' : 'mid-p McNemar',
              p: mcnemar(options.test, aOnly, bOnly),
            },
    reference: {
      exact: paired ? mcnemarExact(aOnly, bOnly) : null,
      midP: paired ? mcnemarMidP(aOnly, bOnly) : null,
      chiSquared: epochs ? null : mcnemarChiSquared(aOnly, bOnly),
      wald: paired ? waldPaired(table) : null,
      t,
      permutation,
    },
  };
}

const byPairs = (table: PairedTable) => ({
  points: differenceOf(table),
  interval: newcombe10(table),
  method: 'Newcombe 10' as const,
});

/** `unnamed`: instances that neither side names, and both fail. */
function byMeans(pairs: readonly Pair[], unnamed: number) {
  const rates = pairs.map((p) => [rateOf(p.a), rateOf(p.b)] as const);
  const { difference, interval, method } = differenceOfMeans([
    ...rates,
    ...Array<readonly [number, number]>(unnamed).fill([0, 0]),
  ]);
  return { points: difference, interval, method };
}

/** `detectable`: the smallest difference this comparison would find in four of five cases; null without a discordant pair. */
function powerOf(gains: readonly number[], table: PairedTable, epochs: boolean) {
  const n = gains.length;
  if (n < 2) return { detectable: null, discordance: null };
  const discordance = epochs ? null : (table.aOnly + table.bOnly) / n;
  const spread = epochs ? (variance(gains) ?? 0) : (discordance ?? 0);
  return { detectable: spread === 0 ? null : detectableDifference(spread, n), discordance };
}

/** A side without rewards counts by its verdicts. */
const rewardOn = (result: SideResult): number => (result.rewards ? mean(result.rewards) : rateOf(result));

/** `asked`: the instances that both sides were meant to answer. Null where neither side has a reward. */
function rewardDifference(a: Side, b: Side, pairs: readonly Pair[], asked: readonly string[], seed: number) {
  if (!pairs.some((p) => p.a.rewards ?? p.b.rewards)) return null;
  const both = pairs.map((p) => [rewardOn(p.a), rewardOn(p.b)] as const);
  const over = (results: readonly SideResult[]) =>
    meanReward(
      results.map(rewardOn),
      results.reduce((n, { scores }) => n + scores.length, 0),
    )!;
  const withZeros = (side: Side, id: string) => {
    const result = resultOn(side, id);
    return result && result.scores.length > 0 ? rewardOn(result) : 0;
  };
  const named = namedOf(pairs);
  return {
    a: over(pairs.map((p) => p.a)),
    b: over(pairs.map((p) => p.b)),
    ...pairedRewards(both, seed)!,
    ...(asked.length > pairs.length && {
      missingAsZero: {
        n: asked.length,
        difference: mean(asked.map((id) => withZeros(b, id) - withZeros(a, id))),
      },
    }),
    ...(named.length > 0 && { named }),
  };
}

export type RewardDifference = NonNullable<ReturnType<typeof rewardDifference>> & {
  /** The p of the permutation, adjusted over all pairs of a comparison; absent where nothing is tested. */
  readonly pHolm?: number;
};

/** Further rewards, over instances that have them on both sides. */
function namedOf(pairs: readonly Pair[]) {
  const found = new Map<string, (readonly [number, number])[]>();
  for (const { a, b } of pairs) {
    const [left, right] = [namedRewards(a.named ?? []), namedRewards(b.named ?? [])];
    for (const [name, value] of left)
      if (right.has(name)) found.set(name, [...(found.get(name) ?? []), [value, right.get(name)!]]);
  }
  return [...found].map(([name, values]) => {
    const [a, b] = [mean(values.map(([x]) => x)), mean(values.map(([, y]) => y))];
    return { name, n: values.length, a, b, difference: b - a };
  });
}
