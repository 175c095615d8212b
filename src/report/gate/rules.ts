/** The rules of the gate, one function each. A rule that the policy does not set says nothing. */

import { compact } from '../../base/compact.ts';
import { percent } from '../../base/text/numbers.ts';
import { formatCost } from '../../money.ts';
import type { Comparison } from '../compare/compareSides.ts';
import { pointDifference, pValue, rate, reward, signedReward } from '../render/format.ts';
import { confirmedError, NIGHT_ERROR } from '../statistics/nightTests.ts';
import { proportion } from '../statistics/proportions.ts';
import { type Confirmation, type Remeasured, rockLength } from './evidence.ts';

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
  /** The share of nights on which nothing changed that may fail the tests, all of them together; default .05. */
  readonly alpha?: number | undefined;
}

/** What the gate must know of the candidate beside the comparison. */
export interface Candidate {
  readonly label: string;
  readonly planned: number;
  readonly valid: number;
  readonly resolved: number;
  readonly infra: number;
  readonly cost: { readonly nano: number | null; readonly atLeast: boolean };
  /** Validly finished instances and whether they were resolved (in most epochs). */
  readonly results: ReadonlyMap<string, boolean>;
}

export interface GateRule {
  readonly rule: string;
  readonly passed: boolean;
  readonly text: string;
  readonly ids: readonly string[];
}

/** What the rules look at. */
export interface Night {
  readonly comparison: Comparison;
  readonly candidate: Candidate;
  readonly policy: GatePolicy;
  /** Failed now, resolved by the reference, and not resolved in any re-measurement. */
  readonly broken: readonly string[];
  /** Those of them that were not measured again. */
  readonly unconfirmed: readonly string[];
  readonly rocks: readonly string[];
  readonly confirmation: Confirmation | null;
  readonly drop: number | null;
  readonly confirmedDrop: number | null;
  readonly chance: number | null;
  readonly remeasured: Remeasured;
}

type Rule = (night: Night) => GateRule | null;
/** Needs no baseline. */
type Limit = (night: Pick<Night, 'policy' | 'candidate' | 'remeasured'>) => GateRule | null;

const alphaOf = ({ policy }: Night): number => policy.alpha ?? NIGHT_ERROR;

/** Shares are quotients: one that is exactly at its limit may end a bit beside it. */
const ROUNDING = 1e-12;

const confirmedOf = ({ broken, unconfirmed }: Night): string[] =>
  broken.filter((id) => !unconfirmed.includes(id));

/** "No trials ran" must fail: a gate that compared nothing has not looked. */
const matched: Rule = ({ comparison: { matched: n } }) => ({
  rule: 'matched',
  passed: n > 0,
  text: `${n} instance(s) finished validly on both sides`,
  ids: [],
});

/** A rule of its own only for rocks: among many instances of which some are resolved by chance, some always break for good. */
const broken: Rule = (night) => {
  const { comparison: c, rocks, remeasured } = night;
  const tolerated = night.policy.maxBroken ?? 0;
  const confirmed = confirmedOf(night);
  const again = Math.max(0, ...confirmed.map((id) => remeasured.get(id)!.length));
  return {
    rule: 'broken',
    passed: rocks.length <= tolerated,
    text:
      night.broken.length > 0 && remeasured.size === 0
        ? `nothing was measured again, so no instance is known to stay broken (at most ${tolerated})`
        : `${confirmed.length} broken in every re-measurement, ${rocks.length} of them ${rocks.length === 1 ? 'a rock' : 'rocks'} (at most ${tolerated})${confirmed.length > 0 ? `; a rock was resolved in its last ${rockLength(c, again, alphaOf(night))} results or more` : ''}`,
    ids: rocks,
  };
};

/** What decides about the first measurement: rewards where a suite gives them, and verdicts elsewhere. Both tests have the same level. */
export function decisive({ test, difference, reward: of }: Comparison) {
  if (!of)
    return test && { name: test.name, p: test.p, points: difference?.points ?? 0, what: 'fewer resolved' };
  const { permutation, difference: points } = of;
  return {
    ...{ name: 'sign-flip permutation of rewards', points, what: 'less reward' },
    p: permutation?.p ?? 1,
  };
}

const maxRewardDrop: Rule = ({ comparison: { reward: of }, policy: { maxDrop: limit } }) => {
  if (limit === undefined || !of) return null;
  const ends = of.interval ? ` [${signedReward(of.interval.low)}, ${signedReward(of.interval.high)}]` : '';
  return {
    rule: 'max-reward-drop',
    passed: -of.difference <= limit + ROUNDING,
    text: `mean reward ${signedReward(of.difference)}${ends} over ${of.n} matched (a drop of at most ${reward(limit)})`,
    ids: [],
  };
};

/** A limit that somebody set, and no test: the text says how often chance alone exceeds it. */
const maxDrop: Rule = ({
  comparison: c,
  policy: { maxDrop: limit },
  drop,
  confirmedDrop,
  chance,
  broken: ids,
}) => {
  if (limit === undefined) return null;
  const within = (x: number) => x <= limit + ROUNDING;
  return {
    rule: 'max-drop',
    passed: drop !== null && (within(drop) || (confirmedDrop !== null && within(confirmedDrop))),
    text:
      drop === null
        ? 'the drop is unknown: nothing matched'
        : compact([
            `drop ${percent(drop)} of ${c.matched} matched (at most ${percent(limit)}): ${pointDifference(c.difference!.points, c.difference!.interval)}, ${c.test?.name} ${pValue(c.test!.p)}`,
            confirmedDrop !== null &&
              `${percent(confirmedDrop)} without what changed back when measured again`,
            chance !== null && `chance alone exceeds it on up to ${percent(chance)} of such nights`,
          ]).join('; '),
    ids,
  };
};

/** The first measurement alone. Whoever sets a limit has said which drop is borne. */
const significance: Rule = (night) => {
  const { comparison: c, policy, broken: ids } = night;
  if (policy.maxDrop !== undefined) return null;
  const found = decisive(c);
  if (found === null || found.p >= alphaOf(night) || found.points >= 0) return null;
  return {
    rule: 'significance',
    passed: false,
    text: `${found.name} ${pValue(found.p)} for ${found.what}`,
    ids,
  };
};

const confirmed: Rule = (night) => {
  const { policy, confirmation } = night;
  if (policy.maxDrop !== undefined || confirmation === null) return null;
  const { broken: lost, fixed, p } = confirmation;
  const limit = confirmedError(alphaOf(night));
  return {
    rule: 'confirmed',
    passed: p > limit,
    text: `${lost.length} that broke and ${fixed.length} that got fixed failed every time again; chance does that to both alike: ${pValue(p)} (below ${limit} fails)`,
    ids: lost,
  };
};

const minResolved: Limit = ({ policy, candidate: { valid, resolved } }) =>
  policy.minResolved === undefined
    ? null
    : {
        rule: 'min-resolved',
        passed: valid > 0 && resolved / valid >= policy.minResolved - ROUNDING,
        text: `${rate(proportion(resolved, valid))} of valid (at least ${percent(policy.minResolved)})`,
        ids: [],
      };

const mustPass: Limit = ({ policy, candidate, remeasured }) => {
  if (!policy.mustPass) return null;
  const asked = policy.mustPass.length;
  const lost = policy.mustPass.filter(
    (id) => candidate.results.get(id) !== true && !remeasured.get(id)?.some(Boolean),
  );
  return {
    rule: 'must-pass',
    passed: lost.length === 0,
    text: `${asked - lost.length} of ${asked} must-pass instances resolved`,
    ids: lost,
  };
};

const maxInfra: Limit = ({ policy, candidate: { planned, infra } }) =>
  policy.maxInfra === undefined
    ? null
    : {
        rule: 'max-infra',
        passed: planned > 0 && infra / planned <= policy.maxInfra + ROUNDING,
        text: `${rate(proportion(infra, planned))} of trials ended for infrastructure reasons (at most ${percent(policy.maxInfra)})`,
        ids: [],
      };

/** A cost that is not known cannot be shown to keep a limit. */
const maxCost: Limit = ({ policy, candidate: { cost } }) =>
  policy.maxCostNano === undefined
    ? null
    : {
        rule: 'max-cost',
        passed: cost.nano !== null && !cost.atLeast && cost.nano <= policy.maxCostNano,
        text: `cost ${cost.atLeast ? '≥ ' : ''}${formatCost(cost.nano)} (at most ${formatCost(policy.maxCostNano)})`,
        ids: [],
      };

/** Instances that only one of the two nights has. */
export const setChanges = (c: Comparison): string[] =>
  c.notComparable.filter((x) => x.why === 'removed' || x.why === 'added').map((x) => x.instanceId);

const sameSet: Rule = ({ comparison, policy }) => {
  if (policy.setChanges !== 'fail') return null;
  const ids = setChanges(comparison);
  return {
    rule: 'set-changes',
    passed: ids.length === 0,
    text: `${ids.length} instance(s) are in one of the runs only`,
    ids,
  };
};

const LIMITS: readonly Limit[] = [minResolved, mustPass, maxInfra, maxCost];
const RULES: readonly Rule[] = [
  ...[matched, broken, maxDrop, maxRewardDrop, significance, confirmed],
  ...LIMITS,
  sameSet,
];

export const rulesOf = (night: Night): GateRule[] => RULES.flatMap((rule) => rule(night) ?? []);

export const gateRulesOf = (night: Parameters<Limit>[0]): GateRule[] =>
  LIMITS.flatMap((limit) => limit(night) ?? []);
