/** The rules of the gate, one function each. A rule that the policy does not set says nothing. */
import { formatCost } from '../../money.ts';
import type { Comparison } from '../compare/compareSides.ts';
import { percent, pointDifference, pValue, rate } from '../render/format.ts';
import { proportion } from '../statistics/proportions.ts';

export interface GatePolicy {
  /** Shares between 0 and 1. */
  readonly minResolved?: number | undefined;
  readonly maxDrop?: number | undefined;
  readonly maxInfra?: number | undefined;
  readonly maxCostNano?: number | undefined;
  readonly mustPass?: readonly string[] | undefined;
  /** Confirmed broken instances that are tolerated. */
  readonly maxBroken?: number | undefined;
  /** Instances that only one night has. */
  readonly setChanges?: 'allow' | 'warn' | 'fail' | undefined;
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
  readonly drop: number | null;
  readonly remeasured: ReadonlyMap<string, readonly boolean[]>;
}

type Rule = (night: Night) => GateRule | null;

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

const broken: Rule = (night) => {
  const confirmed = confirmedOf(night);
  const tolerated = night.policy.maxBroken ?? 0;
  return {
    rule: 'broken',
    passed: confirmed.length <= tolerated,
    text:
      night.broken.length > 0 && night.remeasured.size === 0
        ? `nothing was measured again, so no instance is known to stay broken (at most ${tolerated})`
        : `${confirmed.length} broken in every re-measurement (at most ${tolerated})`,
    ids: confirmed,
  };
};

const maxDrop: Rule = ({ comparison: c, policy, drop, broken: ids }) =>
  policy.maxDrop === undefined
    ? null
    : {
        rule: 'max-drop',
        passed: drop !== null && drop <= policy.maxDrop + ROUNDING,
        text:
          drop === null
            ? 'the drop is unknown: nothing matched'
            : `drop ${percent(drop)} of ${c.matched} matched (at most ${percent(policy.maxDrop)}); first measurement ${pointDifference(c.difference!.points, c.difference!.interval)}, ${c.test?.name} ${pValue(c.test!.p)}`,
        ids,
      };

/** Without a re-measurement the paired test is all there is; with one, flaky instances have answered. */
const significance: Rule = (night) => {
  const { comparison: c, policy, remeasured, broken: ids } = night;
  if (policy.maxDrop !== undefined || confirmedOf(night).length > 0 || remeasured.size > 0) return null;
  if (c.test === null || c.test.p >= (policy.alpha ?? 0.05) || (c.difference?.points ?? 0) >= 0) return null;
  return {
    rule: 'significance',
    passed: false,
    text: `${c.test.name} ${pValue(c.test.p)} for fewer resolved`,
    ids,
  };
};

const minResolved: Rule = ({ policy, candidate: { valid, resolved } }) =>
  policy.minResolved === undefined
    ? null
    : {
        rule: 'min-resolved',
        passed: valid > 0 && resolved / valid >= policy.minResolved - ROUNDING,
        text: `${rate(proportion(resolved, valid))} of valid (at least ${percent(policy.minResolved)})`,
        ids: [],
      };

const mustPass: Rule = ({ policy, candidate, remeasured }) => {
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

const maxInfra: Rule = ({ policy, candidate: { planned, infra } }) =>
  policy.maxInfra === undefined
    ? null
    : {
        rule: 'max-infra',
        passed: planned > 0 && infra / planned <= policy.maxInfra + ROUNDING,
        text: `${rate(proportion(infra, planned))} of trials ended for infrastructure reasons (at most ${percent(policy.maxInfra)})`,
        ids: [],
      };

/** A cost that is not known cannot be shown to keep a limit. */
const maxCost: Rule = ({ policy, candidate: { cost } }) =>
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

const RULES = [matched, broken, maxDrop, significance, minResolved, mustPass, maxInfra, maxCost, sameSet];

export const rulesOf = (night: Night): GateRule[] => RULES.flatMap((rule) => rule(night) ?? []);
