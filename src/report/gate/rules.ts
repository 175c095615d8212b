/** The rules of the gate, one function each. A rule that the policy does not set says nothing. */

import { compact } from '../../base/compact.ts';
import { percent, plural } from '../../base/text/numbers.ts';
import { formatCost } from '../../money.ts';
import type { Comparison } from '../compare/compareSides.ts';
import { pointsInWords, pValue, rate, reward } from '../render/document.ts';
import type { AlongRecord } from '../statistics/alongRecord.ts';
import {
  chanceOfFall,
  chanceOfFallOfMeans,
  confirmedError,
  fewestLosses,
  infraError,
  lossP,
  NIGHT_ERROR,
  resultsOfARock,
  rockChance,
  rocksError,
} from '../statistics/nightTests.ts';
import { proportion } from '../statistics/proportions.ts';

export interface GatePolicy {
  /** Shares between 0 and 1. */
  readonly minResolved?: number | undefined;
  readonly maxDrop?: number | undefined;
  readonly maxInfra?: number | undefined;
  readonly maxCostNano?: number | undefined;
  readonly mustPass?: readonly string[] | undefined;
  /** Broken rocks that are tolerated. */
  readonly maxBroken?: number | undefined;
  /** Instances that only one night has. */
  readonly setChanges?: 'allow' | 'warn' | 'fail' | undefined;
  /** Times that a failed instance is measured again: they say how often chance fails `mustPass`. */
  readonly again?: number | undefined;
  /** The share of nights on which nothing changed that may fail the tests, all of them together; default .05. */
  readonly alpha?: number | undefined;
}

interface Cost {
  readonly nano: number | null;
  readonly atLeast: boolean;
}

/** Facts of the candidate beside the comparison. */
export interface Candidate {
  readonly label: string;
  readonly planned: number;
  readonly valid: number;
  readonly resolved: number;
  readonly infra: number;
  /** The cost with that of measuring again. */
  readonly cost: Cost;
  readonly costAgain?: Cost;
  /** Instances of the night. */
  readonly asked: ReadonlySet<string>;
  /** Validly finished instances and whether they were resolved (in most epochs). */
  readonly results: ReadonlyMap<string, boolean>;
}

export interface GateRule {
  readonly rule: string;
  readonly passed: boolean;
  readonly text: string;
  readonly ids: readonly string[];
}

/** The input of the rules. */
export interface Night {
  readonly comparison: Comparison;
  /** The comparison of the tests: with the newest night that no limit chose. */
  readonly tested: Comparison;
  readonly candidate: Candidate;
  readonly policy: GatePolicy;
  /** Failed now, resolved by the reference, and not resolved in any re-measurement. */
  readonly broken: readonly string[];
  /** The same of `tested`. */
  readonly lost: readonly string[];
  /** Instances of `broken` that were not measured again. */
  readonly unconfirmed: readonly string[];
  readonly rocks: readonly string[];
  readonly confirmation: Confirmation | null;
  readonly drop: number | null;
  readonly chance: number | null;
  readonly remeasured: Remeasured;
  /** The nights since the accepted baseline; null where they are too few. */
  readonly record: AlongRecord | null;
}

const ruling = (rule: string, passed: boolean, text: string, ids: readonly string[] = []): GateRule => ({
  rule,
  passed,
  text,
  ids,
});

type Rule = (night: Night) => GateRule | null;
/** Needs no baseline. */
type Limit = (night: Pick<Night, 'policy' | 'candidate' | 'remeasured'>) => GateRule | null;

const alphaOf = ({ policy }: Night): number => policy.alpha ?? NIGHT_ERROR;

/** Shares are quotients: one that is exactly at its limit may end a bit beside it. */
const ROUNDING = 1e-12;

const confirmedOf = ({ lost, remeasured }: Night): string[] =>
  lost.filter((id) => (remeasured.get(id)?.length ?? 0) > 0);

/** " against night-7", where the tests look at another night than the limits. */
const againstOf = ({ comparison, tested }: Night): string =>
  tested === comparison ? '' : ` against ${tested.a.label}`;

/** "No trials ran" must fail: a gate that compared nothing has not looked. */
const matched: Rule = ({ comparison: { matched: n } }) =>
  ruling('matched', n > 0, `${n} instance(s) finished validly on both sides`);

/** A rule of its own only for rocks: among many instances of which some are resolved by chance, some always break for good. */
const broken: Rule = (night) => {
  const { tested: c, rocks, remeasured } = night;
  const tolerated = night.policy.maxBroken ?? 0;
  const confirmed = confirmedOf(night);
  const again = Math.max(0, ...confirmed.map((id) => remeasured.get(id)!.length));
  return ruling(
    'broken',
    rocks.length <= tolerated,
    night.lost.length > 0 && remeasured.size === 0
      ? `nothing was measured again, so no instance is known to stay broken (at most ${tolerated})`
      : `${confirmed.length} broken in every re-measurement${againstOf(night)}, ${rocks.length} of them ${rocks.length === 1 ? 'a rock' : 'rocks'} (at most ${tolerated})${confirmed.length > 0 ? `; a rock was resolved in its last ${rockLength(c, again, alphaOf(night))} results or more` : ''}`,
    rocks,
  );
};

/** The test of the first measurement: of rewards where a suite gives them, and verdicts elsewhere. Both tests have the same level. */
export function decisive({ test, difference, reward: of }: Comparison) {
  if (!of)
    return test && { name: test.name, p: test.p, points: difference?.points ?? 0, what: 'fewer resolved' };
  const { permutation, difference: points } = of;
  return {
    name: 'sign-flip permutation of rewards',
    points,
    what: 'less reward',
    p: permutation?.p ?? 1,
  };
}

/** "0.031 less", and its interval. */
export function rewardInWords({ difference, interval }: NonNullable<Comparison['reward']>): string {
  const one = (x: number) =>
    reward(Math.abs(x)) === '0.000' ? 'the same' : `${reward(Math.abs(x))} ${x < 0 ? 'less' : 'more'}`;
  return interval
    ? `${one(difference)} (95 %: ${one(interval.low)} to ${one(interval.high)})`
    : one(difference);
}

const maxRewardDrop: Rule = ({ comparison: { reward: of }, policy: { maxDrop: limit } }) =>
  limit === undefined || !of
    ? null
    : ruling(
        'max-reward-drop',
        -of.difference <= limit + ROUNDING,
        `mean reward over ${of.n} matched: ${rewardInWords(of)}; at most ${reward(limit)} less`,
      );

/** "4.0 points fewer resolved, of 100 matched (95 %: 13.0 fewer to 4.9 more)" */
function dropInWords({ difference, matched: n }: Comparison): string {
  const { points, interval } = difference!;
  const short = (x: number) => pointsInWords(x).replace(' points', '');
  const range = interval ? ` (95 %: ${short(interval.low)} to ${short(interval.high)})` : '';
  return `${pointsInWords(points)} resolved, of ${n} matched${range}`;
}

/** Counts, and no second drop: any mean over what was measured again because of its result is biased. */
function recoveredText({ broken, fixed }: Comparison, remeasured: Remeasured): string | false {
  const again = (ids: readonly string[]) => ids.filter((id) => (remeasured.get(id)?.length ?? 0) > 0);
  const count = (ids: readonly string[]) =>
    `${again(ids).filter((id) => remeasured.get(id)!.some(Boolean)).length} of ${again(ids).length}`;
  const [lost, won] = [again(broken).length > 0, again(fixed).length > 0];
  return (
    (lost || won) &&
    compact([
      lost && `${count(broken)} that broke recovered when measured again`,
      won && `${count(fixed)} that got fixed succeeded again`,
    ]).join(', ')
  );
}

/** A limit that somebody set, and no test: it stands beside the tests, and the text says how often chance alone exceeds it. */
const maxDrop: Rule = ({
  comparison: c,
  policy: { maxDrop: limit },
  drop,
  chance,
  broken: ids,
  remeasured,
}) =>
  limit === undefined
    ? null
    : ruling(
        'max-drop',
        drop !== null && drop <= limit + ROUNDING,
        drop === null
          ? 'the drop is unknown: nothing matched'
          : compact([
              dropInWords(c),
              `at most ${(100 * limit).toFixed(1)} fewer`,
              `${c.test?.name} ${pValue(c.test!.p)}`,
              recoveredText(c, remeasured),
              chance !== null && `chance alone exceeds it on up to ${percent(chance)} of such nights`,
            ]).join('; '),
        ids,
      );

/** The first measurement alone. */
const significance: Rule = (night) => {
  const { tested: c, lost: ids } = night;
  const found = decisive(c);
  if (found === null || found.p >= alphaOf(night) || found.points >= 0) return null;
  return ruling(
    'significance',
    false,
    `${found.name} ${pValue(found.p)} for ${found.what}${againstOf(night)}`,
    ids,
  );
};

const confirmed: Rule = (night) => {
  const { confirmation } = night;
  if (confirmation === null) return null;
  const { broken: lost, fixed, p } = confirmation;
  const limit = confirmedError(alphaOf(night));
  const text = `${lost.length} that broke and ${fixed.length} that got fixed failed every time again; chance does that to both alike: ${pValue(p)} (below ${limit} fails)`;
  return ruling('confirmed', p > limit, text, lost);
};

/** A decay that is too slow for any two nights to show. */
const trend: Rule = ({ record }) => {
  if (record === null) return null;
  const { since, nights, p, limit, before, now } = record;
  const along = `along ${nights} nights since ${since}`;
  const from = `${percent(before)} resolved in the first third and ${percent(now)} in the last`;
  return ruling('trend', p >= limit, `${from}, ${along}: ${pValue(p)} (below ${limit.toFixed(5)} fails)`);
};

/** Lost failures make the rest look better. The baseline's results tell which of the lost would have failed. */
const infraLoss: Rule = (night) => {
  const { infraLoss: found } = night.tested;
  if (!found) return null;
  const { failed, resolved, p } = found;
  const limit = infraError(alphaOf(night));
  const text = `infrastructure lost ${failed.lost} of ${failed.of} that the baseline failed and ${resolved.lost} of ${resolved.of} that it resolved: ${pValue(p)} (below ${limit} fails)`;
  return ruling('infra-loss', p >= limit, text, found.ids);
};

const minResolved: Limit = ({ policy, candidate: { valid, resolved } }) =>
  policy.minResolved === undefined
    ? null
    : ruling(
        'min-resolved',
        valid > 0 && resolved / valid >= policy.minResolved - ROUNDING,
        `${rate(proportion(resolved, valid))} of valid (at least ${percent(policy.minResolved)})`,
      );

const mustPass: Limit = ({ policy, candidate, remeasured }) => {
  if (!policy.mustPass) return null;
  const asked = policy.mustPass.length;
  const failed = policy.mustPass.filter((id) => candidate.results.get(id) !== true);
  const lost = failed.filter((id) => !remeasured.get(id)?.some(Boolean));
  const again = Math.min(...lost.map((id) => remeasured.get(id)?.length ?? 0));
  const text = compact([
    `${asked - lost.length} of ${asked} must-pass instances resolved`,
    failed.length > lost.length && `${failed.length - lost.length} of them when measured again`,
    lost.length > 0 &&
      `of ${plural(candidate.results.size, 'instance')}, those that were resolved ${GOLDEN} of ${GOLDEN} times fail so by chance on at most ${percent(goldenError(candidate.results.size, again))} of nights${again < ENOUGH ? `: use --remeasure ${ENOUGH}` : ''}`,
  ]).join('; ');
  return ruling('must-pass', lost.length === 0, text, lost);
};

/** The number of results in a row, all resolved, that docs/nightly.md asks of an id before it stands on a list of those that must pass. */
const GOLDEN = 10;
/** So many re-measurements: with fewer, 8 to 99 % of simulated nights on which nothing changed failed such a list. */
const ENOUGH = 3;

/** The chance that a list chosen so out of n instances fails a night on which nothing changed, with so many re-measurements. */
const goldenError = (n: number, again: number): number => Math.min(1, n * rockChance(GOLDEN, 1 + again));

/** A warning of a list with too few re-measurements of it, before the night is paid for. */
export const mustPassWarning = ({ mustPass: ids, again }: GatePolicy, instances: number): string | false =>
  ids !== undefined &&
  again !== undefined &&
  again < ENOUGH &&
  `--must-pass with ${plural(again, 're-measurement')} fails by chance on up to ${percent(goldenError(instances, again))} of nights on which nothing changed, with ids that were resolved ${GOLDEN} of ${GOLDEN} times out of ${plural(instances, 'instance')}; --remeasure ${ENOUGH} makes that ${percent(goldenError(instances, ENOUGH))}`;

const maxInfra: Limit = ({ policy, candidate: { planned, infra } }) =>
  policy.maxInfra === undefined
    ? null
    : ruling(
        'max-infra',
        planned > 0 && infra / planned <= policy.maxInfra + ROUNDING,
        `${rate(proportion(infra, planned))} of trials ended for infrastructure reasons or by an error of the grader (at most ${percent(policy.maxInfra)})`,
      );

/** A cost that is not known cannot be shown to keep a limit. */
const maxCost: Limit = ({ policy, candidate: { cost, costAgain } }) =>
  policy.maxCostNano === undefined
    ? null
    : ruling(
        'max-cost',
        cost.nano !== null && !cost.atLeast && cost.nano <= policy.maxCostNano,
        `cost ${cost.atLeast ? '≥ ' : ''}${formatCost(cost.nano)}${costAgain ? `, of it ${costAgain.atLeast ? '≥ ' : ''}${formatCost(costAgain.nano)} for measuring again` : ''} (at most ${formatCost(policy.maxCostNano)})`,
      );

/** Of a report of the harness, `incomplete` is what it has no prediction for. */
const OF_ONE_NIGHT: ReadonlySet<string> = new Set(['removed', 'added', 'incomplete']);

/** Instances that only one of the two nights has. */
export const setChanges = (c: Comparison): string[] =>
  c.notComparable.filter((x) => OF_ONE_NIGHT.has(x.why) && x.missingIn !== 'both').map((x) => x.instanceId);

const sameSet: Rule = ({ comparison, policy }) => {
  if (policy.setChanges !== 'fail') return null;
  const ids = setChanges(comparison);
  return ruling(
    'set-changes',
    ids.length === 0,
    `${ids.length} instance(s) are in one of the runs only`,
    ids,
  );
};

const LIMITS: readonly Limit[] = [minResolved, mustPass, maxInfra, maxCost];
const RULES: readonly Rule[] = [
  ...[matched, broken, maxDrop, maxRewardDrop, significance, confirmed, trend, infraLoss],
  ...LIMITS,
  sameSet,
];

export const rulesOf = (night: Night): GateRule[] => RULES.flatMap((rule) => rule(night) ?? []);

export const gateRulesOf = (night: Parameters<Limit>[0]): GateRule[] =>
  LIMITS.flatMap((limit) => limit(night) ?? []);

/** Instance to the results of measuring it again; an instance without an entry was not. */
export type Remeasured = ReadonlyMap<string, readonly boolean[]>;

/** The instances that failed every time again, of the broken and of the fixed. */
export interface Confirmation {
  readonly broken: readonly string[];
  /** An instance that could not be measured again stands here too, so that an outage never makes a night look worse. */
  readonly fixed: readonly string[];
  /** One-sided: as many or more of them on the side of the broken, if nothing changed. */
  readonly p: number;
}

/** Instances to measure again before the verdict: fixed ones only where so much broke that the confirmed test could find a loss. */
export function toMeasureAgain(c: Comparison, alpha = NIGHT_ERROR): string[] {
  return enoughBroke(c, alpha) ? [...c.broken, ...c.fixed] : [...c.broken];
}

/** Ids that must pass and did not, of those that the night has: chance fails some on most nights. */
export const goldenToMeasure = (policy: GatePolicy, { results, asked }: Candidate): string[] =>
  (policy.mustPass ?? []).filter((id) => asked.has(id) && results.get(id) !== true);

/** With unequal epochs chance alone breaks and fixes unequally often, and the confirmed test has no footing. */
const enoughBroke = (c: Comparison, alpha: number): boolean =>
  c.a.epochs === c.b.epochs && c.broken.length >= fewestLosses(confirmedError(alpha));

export function confirmationOf(
  c: Comparison,
  remeasured: Remeasured,
  alpha = NIGHT_ERROR,
): Confirmation | null {
  if (!enoughBroke(c, alpha)) return null;
  const resultsOf = (id: string) => remeasured.get(id) ?? [];
  const counts = [...c.broken, ...c.fixed].map((id) => resultsOf(id).length).filter((k) => k > 0);
  if (counts.length === 0) return null;
  // As many for each: who is measured more often has more occasions to recover.
  const common = Math.min(...counts);
  const failsAgain = (id: string) => !resultsOf(id).slice(0, common).some(Boolean);
  const broken = c.broken.filter((id) => resultsOf(id).length > 0 && failsAgain(id));
  const fixed = c.fixed.filter(failsAgain);
  return { broken, fixed, p: lossP(broken.length, fixed.length) };
}

/** Measured again, without a success. */
const failedAgain = (id: string, remeasured: Remeasured): boolean => {
  const results = remeasured.get(id) ?? [];
  return results.length > 0 && !results.some(Boolean);
};

/** Confirmed broken instances that were rocks. `streaks`: how many of its newest results up to the reference's were all resolved. */
export const rocksOf = (
  c: Comparison,
  remeasured: Remeasured,
  streaks: ReadonlyMap<string, number>,
  alpha = NIGHT_ERROR,
): string[] =>
  c.broken.filter((id) => {
    const failures = c.b.epochs + (remeasured.get(id)?.length ?? 0);
    return (
      failedAgain(id, remeasured) && (streaks.get(id) ?? 0) >= rockLength(c, failures - c.b.epochs, alpha)
    );
  });

/** Results in a row that make a rock tonight, when it fails in all epochs and in `again` further measurements. */
const rockLength = (c: Comparison, again: number, alpha = NIGHT_ERROR): number =>
  resultsOfARock(c.matched, c.b.epochs + again, rocksError(alpha));

/** The chance that a night like this one, on which nothing changed, drops by more than `limit`. */
export function chanceOfDrop(c: Comparison, limit: number): number | null {
  if (c.matched === 0) return null;
  if (c.discordance !== null) return chanceOfFall(c.fixed.length + c.broken.length, c.matched, limit);
  const { t } = c.reference;
  return t && chanceOfFallOfMeans(t.mean, t.se, t.n, limit);
}
