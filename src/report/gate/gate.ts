/**
 * Whether a night may pass. Only matched, validly finished instances enter the drop, with the results of the first measurement: any mean over
 * instances that were chosen by their results is biased. Pure: the re-measurements and the record are given.
 */

import { compact } from '../../base/compact.ts';
import { percent } from '../../base/text/numbers.ts';
import type { RunData } from '../../store/records/runData.ts';
import type { Comparison } from '../compare/compareSides.ts';
import type { FellOut, Side } from '../compare/side.ts';
import { summarize } from '../measure/summary.ts';
import { pValue, rate } from '../render/document.ts';
import type { AlongRecord } from '../statistics/alongRecord.ts';
import { NIGHT_ERROR } from '../statistics/nightTests.ts';
import { proportion } from '../statistics/proportions.ts';
import {
  type Candidate,
  chanceOfDrop,
  confirmationOf,
  decisive,
  type GatePolicy,
  type GateRule,
  gateRulesOf,
  mustPassWarning,
  type Night,
  type Remeasured,
  rocksOf,
  rulesOf,
  setChanges,
} from './rules.ts';

type Verdict = 'regressed' | 'flaky' | 'improved' | 'inconclusive';

export type GateResult = ReturnType<typeof gate>;

/**
 * `tested`: against the newest night that no limit chose, where that is another one. `streaks`: how many of the newest results of an instance, up to
 * that night's, were all resolved.
 */
export function gate(
  comparison: Comparison,
  candidate: Candidate,
  policy: GatePolicy,
  remeasured: Remeasured = new Map(),
  streaks: ReadonlyMap<string, number> = new Map(),
  record: AlongRecord | null = null,
  tested: Comparison = comparison,
) {
  const again = (id: string) => remeasured.get(id) ?? [];
  const flaky = comparison.broken
    .filter((id) => again(id).some(Boolean))
    .map((id) => ({ instanceId: id, resolved: again(id).filter(Boolean).length, of: again(id).length }));
  const broken = comparison.broken.filter((id) => !again(id).some(Boolean));
  const drop = comparison.difference && comparison.matched > 0 ? -comparison.difference.points : null;
  const night: Night = {
    comparison,
    tested,
    candidate,
    policy,
    broken,
    lost: tested.broken.filter((id) => !again(id).some(Boolean)),
    drop,
    remeasured,
    record,
    unconfirmed: broken.filter((id) => again(id).length === 0),
    rocks: rocksOf(tested, remeasured, streaks, policy.alpha),
    confirmation: confirmationOf(tested, remeasured, policy.alpha),
    chance: policy.maxDrop === undefined ? null : chanceOfDrop(comparison, policy.maxDrop),
  };
  const rules = rulesOf(night);
  const passed = rules.every((r) => r.passed);
  return {
    verdict: verdictOf(night, rules, flaky.length > 0),
    passed,
    exitCode: passed ? (0 as const) : (1 as const),
    /** "matched 18: broken 1, flaky 1, fixed 1; not comparable 3 (infra 1, removed 1, added 1)" */
    line: gateLine(comparison, broken.length, flaky.length),
    /** Failed now, resolved by the reference, and failed in every re-measurement (or not measured again). */
    broken,
    /** Failed now, but resolved in some re-measurement. */
    flaky,
    /** Share of matched instances lost, by the first measurement: below 0 where more are resolved. */
    drop,
    rules,
    fixed: comparison.fixed,
    unconfirmed: night.unconfirmed,
    /** Broken in every re-measurement, and always resolved before: see `resultsOfARock`. */
    rocks: night.rocks,
    remeasured: remeasured.size > 0,
    /** Broken and fixed instances that failed again; null where too little broke for a test, or nothing was measured again. */
    confirmation: night.confirmation,
    matched: comparison.matched,
    notComparable: comparison.fellOut,
    /** The chance that a night on which nothing changed drops by more than `maxDrop`. */
    chance: night.chance,
    p: comparison.test?.p ?? null,
    test: comparison.test?.name ?? null,
    detectable: comparison.detectable,
    /** Absent where the record is too short. */
    ...(record && { record }),
    /** Absent where the tests look at the same night as the limits. */
    ...(tested !== comparison && { testedAgainst: tested.a.label }),
    /** Absent where neither night has rewards. */
    ...(comparison.reward && { reward: comparison.reward }),
    warnings: warningsOf(night),
  };
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

function gateLine(c: Comparison, broken: number, flaky: number): string {
  const reasons = c.fellOut
    .toSorted((a, b) => ORDER.indexOf(a.why) - ORDER.indexOf(b.why))
    .map((f) => `${f.why.replaceAll('_', ' ')} ${f.n}`);
  const rest = reasons.length ? `; not comparable ${c.notComparable.length} (${reasons.join(', ')})` : '';
  return `matched ${c.matched}: broken ${broken}, flaky ${flaky}, fixed ${c.fixed.length}${rest}`;
}

/** Rules that say something about results; a night that breaks only the others is not a worse one. */
const ABOUT_RESULTS = new Set([
  'broken',
  'max-drop',
  'max-reward-drop',
  'significance',
  'confirmed',
  'trend',
  'min-resolved',
  'must-pass',
]);

/**
 * Limits that look at results. A record without the nights that broke one keeps the lucky ones (with `--max-drop 3%` significance failed 16 % of
 * simulated nights of coins on which nothing changed), so the tests compare with a night that broke nothing else.
 */
export const LIMITS_ON_RESULTS: ReadonlySet<string> = new Set([
  'max-drop',
  'max-reward-drop',
  'min-resolved',
  'must-pass',
  'max-cost',
]);

/**
 * A night that one of these tests failed is left out of the record: a loss that was mended is no decay. Limits leave none out: they fail many
 * nights on which nothing changed, always low ones, and the rest would be too high. A night that is red by its trend stays.
 */
export const NOT_OF_THE_RECORD: ReadonlySet<string> = new Set([
  'broken',
  'significance',
  'confirmed',
  'infra-loss',
]);

function verdictOf(
  { tested: c, policy, broken }: Night,
  rules: readonly GateRule[],
  flaky: boolean,
): Verdict {
  if (rules.some((r) => !r.passed && ABOUT_RESULTS.has(r.rule))) return 'regressed';
  const found = decisive(c);
  const better = found !== null && found.p < (policy.alpha ?? NIGHT_ERROR) && found.points > 0;
  if (better && broken.length === 0) return 'improved';
  return flaky && broken.length === 0 ? 'flaky' : 'inconclusive';
}

function warningsOf({
  comparison: c,
  tested,
  candidate,
  policy,
  unconfirmed,
  chance,
  record,
}: Night): string[] {
  const changed = setChanges(c).length;
  const loud = [...new Set(c.differences.filter((d) => d.loud).map((d) => d.group))];
  return compact([
    ...c.warnings,
    loud.length > 0 && `not the same conditions: ${loud.join(', ')}`,
    changed > 0 &&
      (policy.setChanges ?? 'warn') === 'warn' &&
      `${changed} instance(s) are in one of the runs only`,
    tested !== c &&
      `the tests compare with ${tested.a.label}, the newest night that broke a limit at most: of nights that kept every limit more are lucky than chance allows`,
    mustPassWarning(policy, candidate.asked.size),
    luckyBaseline(record),
    unconfirmed.length > 0 && `${unconfirmed.length} broken instance(s) were not measured again`,
    c.detectable !== null &&
      policy.maxDrop !== undefined &&
      c.detectable > policy.maxDrop &&
      `a drop of ${percent(policy.maxDrop)} cannot be told from noise here: ${c.matched} instances show ${percent(c.detectable)} or more${chance === null ? '' : `; up to ${percent(chance)} of nights on which nothing changed drop by more than --max-drop`}`,
  ]);
}

/** One baseline in twenty is so lucky, and fails many a night on which nothing changed. A real loss right after it looks the same. */
function luckyBaseline(record: AlongRecord | null): string | false {
  const first = record?.first;
  if (!first || first.p >= NIGHT_ERROR) return false;
  return `${record.since} was lucky, or something was lost right after it: ${percent(first.resolved)} resolved then and ${percent(first.since)} in the ${record.nights - 1} nights since (${pValue(first.p)}); against those nights alone tonight is ${first.tonightP < NIGHT_ERROR ? 'worse' : 'not worse'} (${pValue(first.tonightP)}); \`baseline set\` one of them where nothing was lost`;
}

/** `required`: a night without a baseline is to fail. */
export function firstNight(
  candidate: Candidate,
  policy: GatePolicy,
  required: boolean,
  remeasured: Remeasured = new Map(),
): GateResult {
  const { valid, resolved } = candidate;
  const missing: GateRule = {
    rule: 'baseline',
    passed: false,
    text: 'no complete and graded run has this configuration and dataset',
    ids: [],
  };
  const limits = gateRulesOf({ candidate, policy, remeasured });
  const rules = required ? [missing, ...limits] : limits;
  const passed = rules.every((r) => r.passed);
  return {
    verdict: 'inconclusive',
    passed,
    exitCode: passed ? 0 : 1,
    rules,
    line: `no baseline yet: resolved ${rate(proportion(resolved, valid))} of valid`,
    broken: [],
    flaky: [],
    fixed: [],
    unconfirmed: [],
    rocks: [],
    remeasured: remeasured.size > 0,
    confirmation: null,
    matched: 0,
    notComparable: [],
    drop: null,
    chance: null,
    p: null,
    test: null,
    detectable: null,
    warnings: compact([mustPassWarning(policy, candidate.asked.size)]),
  };
}

const most = (scores: readonly boolean[]): boolean => scores.filter(Boolean).length * 2 > scores.length;

export function candidateOf(data: RunData, arm: string, side: Side): Candidate {
  const summary = summarize(data).arms.find((a) => a.arm === arm)!;
  return { ...candidateOfSide(side), planned: summary.planned, cost: summary.accounting.cost };
}

/** The candidate of a side that is a file: it knows no cost. */
export function candidateOfSide(side: Side): Candidate {
  const all = [...side.results.values()];
  const scores = all.flatMap((r) => r.scores);
  return {
    label: side.label,
    planned: all.length * side.epochs,
    valid: scores.length,
    resolved: scores.filter(Boolean).length,
    infra: all.reduce((sum, r) => sum + r.infra, 0),
    cost: { nano: null, atLeast: true },
    asked: new Set(side.results.keys()),
    results: new Map(all.filter((r) => r.scores.length > 0).map((r) => [r.instanceId, most(r.scores)])),
  };
}

/** Valid results of runs that measured instances again, all epochs together. */
export function remeasurementsOf(sides: readonly Side[]): Map<string, boolean[]> {
  const found = new Map<string, boolean[]>();
  for (const side of sides)
    for (const result of side.results.values())
      if (result.scores.length > 0)
        found.set(result.instanceId, [...(found.get(result.instanceId) ?? []), ...result.scores]);
  return found;
}
