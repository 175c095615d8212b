/**
 * Whether a night may pass. Only matched, validly finished instances enter the drop; what broke is believed after it was measured again.
 * Pure: the re-measurements are given.
 */
import { formatCost } from '../../money.ts';
import type { Comparison } from '../compare/compare.ts';
import type { FellOut } from '../compare/side.ts';
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

export const VERDICTS = ['regressed', 'flaky', 'improved', 'inconclusive'] as const;
export type Verdict = (typeof VERDICTS)[number];

export interface GateResult {
  readonly verdict: Verdict;
  readonly passed: boolean;
  readonly exitCode: 0 | 1;
  /** "matched 18: broken 1, flaky 1, fixed 1; not comparable 3 (infra 1, removed 1, added 1)" */
  readonly line: string;
  /** Failed now, resolved by the reference, and failed in every re-measurement (or not measured again). */
  readonly broken: readonly string[];
  /** Failed now, but resolved in some re-measurement. */
  readonly flaky: readonly { readonly instanceId: string; readonly resolved: number; readonly of: number }[];
  readonly fixed: readonly string[];
  readonly unconfirmed: readonly string[];
  readonly remeasured: boolean;
  readonly matched: number;
  readonly notComparable: readonly { readonly why: FellOut; readonly n: number }[];
  /** Share of matched instances lost, a flaky one by its mean over all measurements. */
  readonly drop: number | null;
  readonly p: number | null;
  readonly test: string | null;
  readonly detectable: number | null;
  readonly rules: readonly GateRule[];
  readonly warnings: readonly string[];
}

/** `remeasured`: instance to the results of measuring it again; instances without an entry were not. */
export function gate(
  comparison: Comparison,
  candidate: Candidate,
  policy: GatePolicy,
  remeasured: ReadonlyMap<string, readonly boolean[]> = new Map(),
): GateResult {
  const again = (id: string) => remeasured.get(id) ?? [];
  const flaky = comparison.broken
    .filter((id) => again(id).some(Boolean))
    .map((id) => ({ instanceId: id, resolved: again(id).filter(Boolean).length, of: again(id).length }));
  const broken = comparison.broken.filter((id) => !again(id).some(Boolean));
  const unconfirmed = broken.filter((id) => again(id).length === 0);
  const drop = dropOf(comparison, flaky);
  const rules = rulesOf(comparison, candidate, policy, { broken, unconfirmed, drop, remeasured });
  const failed = rules.filter((r) => !r.passed);
  const verdict = verdictOf(comparison, policy, { broken, unconfirmed, flaky, failed });
  const passed = failed.length === 0;
  return {
    verdict,
    passed,
    exitCode: passed ? 0 : 1,
    line: gateLine(comparison, broken.length, flaky.length),
    broken,
    flaky,
    fixed: comparison.fixed,
    unconfirmed,
    remeasured: remeasured.size > 0,
    matched: comparison.matched,
    notComparable: comparison.fellOut,
    drop,
    p: comparison.test?.p ?? null,
    test: comparison.test?.name ?? null,
    detectable: comparison.detectable,
    rules,
    warnings: warningsOf(comparison, policy, unconfirmed),
  };
}

/** The change of the mean, with every flaky instance at its mean over the first measurement (each of its epochs failed) and all further ones. */
function dropOf(c: Comparison, flaky: GateResult['flaky']): number | null {
  if (c.matched === 0 || !c.difference) return null;
  const recovered = flaky.reduce((s, f) => s + f.resolved / (f.of + c.b.epochs), 0);
  return -c.difference.points - recovered / c.matched;
}

const ORDER: readonly FellOut[] = [
  'infra',
  'config',
  'cancelled',
  'not_run',
  'running',
  'not_graded',
  'grading_infra',
  'ungradable',
  'error',
  'incomplete',
  'no_logs',
  'removed',
  'added',
];

export function gateLine(c: Comparison, broken: number, flaky: number): string {
  const reasons = c.fellOut
    .toSorted((a, b) => ORDER.indexOf(a.why) - ORDER.indexOf(b.why))
    .map((f) => `${f.why.replaceAll('_', ' ')} ${f.n}`);
  const rest = reasons.length ? `; not comparable ${c.notComparable.length} (${reasons.join(', ')})` : '';
  return `matched ${c.matched}: broken ${broken}, flaky ${flaky}, fixed ${c.fixed.length}${rest}`;
}

interface Found {
  readonly broken: readonly string[];
  readonly unconfirmed: readonly string[];
  readonly drop: number | null;
  readonly remeasured: ReadonlyMap<string, readonly boolean[]>;
}

function rulesOf(c: Comparison, candidate: Candidate, policy: GatePolicy, found: Found): GateRule[] {
  const rules: GateRule[] = [];
  const add = (rule: string, passed: boolean, text: string, ids: readonly string[] = []) =>
    rules.push({ rule, passed, text, ids });
  const confirmed = found.broken.filter((id) => !found.unconfirmed.includes(id));
  // "No trials ran" must fail: a gate that compared nothing has not looked.
  add('matched', c.matched > 0, `${c.matched} instance(s) finished validly on both sides`);
  const tolerated = policy.maxBroken ?? 0;
  add(
    'broken',
    confirmed.length <= tolerated,
    found.broken.length > 0 && found.remeasured.size === 0
      ? `nothing was measured again, so no instance is known to stay broken (at most ${tolerated})`
      : `${confirmed.length} broken in every re-measurement (at most ${tolerated})`,
    confirmed,
  );
  if (policy.maxDrop !== undefined)
    add(
      'max-drop',
      found.drop !== null && found.drop <= policy.maxDrop + 1e-12,
      found.drop === null
        ? 'the drop is unknown: nothing matched'
        : `drop ${percent(found.drop)} of ${c.matched} matched (at most ${percent(policy.maxDrop)}); first measurement ${pointDifference(c.difference!.points, c.difference!.interval)}, ${c.test?.name} ${pValue(c.test!.p)}`,
      found.broken,
    );
  else if (confirmed.length === 0 && significantLoss(c, policy, found))
    add('significance', false, `${c.test!.name} ${pValue(c.test!.p)} for fewer resolved`, found.broken);
  if (policy.minResolved !== undefined)
    add(
      'min-resolved',
      candidate.valid > 0 && candidate.resolved / candidate.valid >= policy.minResolved - 1e-12,
      `${rate(proportion(candidate.resolved, candidate.valid))} of valid (at least ${percent(policy.minResolved)})`,
    );
  if (policy.mustPass) {
    const lost = policy.mustPass.filter((id) => {
      const again = found.remeasured.get(id) ?? [];
      return candidate.results.get(id) !== true && !again.some(Boolean);
    });
    add(
      'must-pass',
      lost.length === 0,
      `${policy.mustPass.length - lost.length} of ${policy.mustPass.length} must-pass instances resolved`,
      lost,
    );
  }
  if (policy.maxInfra !== undefined)
    add(
      'max-infra',
      candidate.planned > 0 && candidate.infra / candidate.planned <= policy.maxInfra + 1e-12,
      `${rate(proportion(candidate.infra, candidate.planned))} of trials ended for infrastructure reasons (at most ${percent(policy.maxInfra)})`,
    );
  if (policy.maxCostNano !== undefined) {
    const { nano, atLeast } = candidate.cost;
    // A cost that is not known cannot be shown to keep a limit.
    add(
      'max-cost',
      nano !== null && !atLeast && nano <= policy.maxCostNano,
      `cost ${atLeast ? '≥ ' : ''}${formatCost(nano)} (at most ${formatCost(policy.maxCostNano)})`,
    );
  }
  const changed = c.notComparable.filter((x) => x.why === 'removed' || x.why === 'added');
  if (policy.setChanges === 'fail')
    add(
      'set-changes',
      changed.length === 0,
      `${changed.length} instance(s) are in one of the runs only`,
      changed.map((x) => x.instanceId),
    );
  return rules;
}

/** Without a re-measurement the paired test is all there is; with one, flaky instances have answered. */
const significantLoss = (c: Comparison, policy: GatePolicy, found: Found): boolean =>
  c.test !== null &&
  found.remeasured.size === 0 &&
  c.test.p < (policy.alpha ?? 0.05) &&
  (c.difference?.points ?? 0) < 0;

function verdictOf(
  c: Comparison,
  policy: GatePolicy,
  found: {
    broken: readonly string[];
    unconfirmed: readonly string[];
    flaky: readonly unknown[];
    failed: readonly GateRule[];
  },
): Verdict {
  const results = ['broken', 'max-drop', 'significance', 'min-resolved', 'must-pass'];
  if (found.failed.some((r) => results.includes(r.rule))) return 'regressed';
  const better = c.test !== null && c.test.p < (policy.alpha ?? 0.05) && (c.difference?.points ?? 0) > 0;
  if (better && found.broken.length === 0) return 'improved';
  return found.flaky.length > 0 && found.broken.length === 0 ? 'flaky' : 'inconclusive';
}

function warningsOf(c: Comparison, policy: GatePolicy, unconfirmed: readonly string[]): string[] {
  const changed = c.notComparable.filter((x) => x.why === 'removed' || x.why === 'added').length;
  const loud = [...new Set(c.differences.filter((d) => d.loud).map((d) => d.group))];
  return [
    ...c.warnings,
    ...(loud.length ? [`not the same conditions: ${loud.join(', ')}`] : []),
    ...(changed > 0 && (policy.setChanges ?? 'warn') === 'warn'
      ? [`${changed} instance(s) are in one of the runs only`]
      : []),
    ...(unconfirmed.length ? [`${unconfirmed.length} broken instance(s) were not measured again`] : []),
    ...(c.detectable !== null && policy.maxDrop !== undefined && c.detectable > policy.maxDrop
      ? [
          `a drop of ${percent(policy.maxDrop)} cannot be told from noise here: ${c.matched} instances show ${percent(c.detectable)} or more`,
        ]
      : []),
  ];
}
