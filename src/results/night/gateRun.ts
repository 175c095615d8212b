/** A night's verdict: compare with the baseline, measure again what changed, judge, and leave the artifacts a CI wants. */

import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { compact } from '../../base/compact.ts';
import { writeAtomically } from '../../base/files/atomicWrite.ts';
import { pathInside } from '../../base/files/pathInside.ts';
import { type Comparison, compareSides } from '../../report/compare/compareSides.ts';
import type { Side } from '../../report/compare/side.ts';
import { summaryFiles } from '../../report/exportSummary.ts';
import {
  candidateOf,
  candidateOfSide,
  firstNight,
  type GateResult,
  gate,
  LIMITS_ON_RESULTS,
  NOT_OF_THE_RECORD,
  remeasurementsOf,
} from '../../report/gate/gate.ts';
import { gateDocument, junitXml } from '../../report/gate/gateDocument.ts';
import { type Candidate, type GatePolicy, goldenToMeasure, toMeasureAgain } from '../../report/gate/rules.ts';
import { historyOf, type InstanceHistory, type NightResult, nightOf } from '../../report/measure/history.ts';
import { summarize } from '../../report/measure/summary.ts';
import { jsonText } from '../../report/render/document.ts';
import { renderMarkdown } from '../../report/render/renderers.ts';
import { type AlongRecord, alongRecord, NIGHTS_OF_A_RECORD } from '../../report/statistics/alongRecord.ts';
import { NIGHT_ERROR } from '../../report/statistics/nightTests.ts';
import type { McNemarTest } from '../../report/statistics/paired.ts';
import { type Tell, type Variables, variable } from '../../run/caller.ts';
import { pricesOfRun } from '../../run/record/tokenPrices.ts';
import { refuseShard } from '../../run/resultsRoot.ts';
import { UserError } from '../../run/userError.ts';
import type { Store } from '../../store/open.ts';
import {
  baselineRun,
  beginVerdict,
  type ComparableRow,
  comparableRuns,
  endVerdict,
  nightsOf,
  remeasurementsOfRun,
  resultsIn,
  resultsUpTo,
} from '../../store/records/baselines.ts';
import { findRun, type RunRow, type RunStatus } from '../../store/records/runs.ts';
import { type NamedSide, sidesOfRun } from '../compareSources.ts';

export const REMEASURE_DEFAULT = 3;

export interface GateRequest {
  /** The side that the limits and the verdict's lists compare with. */
  readonly a: NamedSide;
  readonly b: NamedSide;
  /** The side that the tests compare with; default: `a`. */
  readonly tested?: NamedSide | undefined;
  readonly policy: GatePolicy;
  readonly test: McNemarTest;
  readonly seed: number;
  readonly tell: Tell;
  /** The beginning of the record that is searched for a slow decay; null: with the first night. Default: with `a`. */
  readonly since?: RunRow | null;
  /** Nights that could have been `a` and are not. */
  readonly passedOver?: readonly PassedOver[];
  /** Called with ids that changed and were not measured again yet; measures them and resolves when that is recorded. */
  readonly remeasure?: (ids: readonly string[]) => Promise<void>;
  /** Needed to find re-measurements of `b` and earlier results. */
  readonly store?: Store;
  /** Whether the verdict is recorded, where `b` is a run of the store: a night whose gate failed is no later baseline by itself. */
  readonly record?: boolean;
}

export interface Gated {
  readonly comparison: Comparison;
  readonly result: GateResult;
  /** Instances of the verdict in the runs before this one. */
  readonly past: readonly InstanceHistory[];
  readonly passedOver: readonly PassedOver[];
  readonly exitCode: 0 | 1 | 3;
}

export async function runGate(request: GateRequest): Promise<Gated> {
  const { a, b, policy, store, test, seed, passedOver = [] } = request;
  for (const { from } of [a, b]) if (from) refuseShard(from.run, 'a gate judges whole runs');
  const comparison = compareSides(a.side, b.side, { test, seed });
  const unchosen = request.tested ?? a;
  const tested = unchosen === a ? comparison : compareSides(unchosen.side, b.side, { test, seed });
  const begun = request.record && store && b.from ? begin(store, b.from, a.side.label) : null;
  const candidate = b.from ? candidateOf(b.from.data, b.from.arm, b.side) : candidateOfSide(b.side);
  await measureAgain(request, [comparison, tested], candidate);
  const streaks = streaksOf(unchosen, tested, store);
  const result = gate(
    comparison,
    withCostAgain(candidate, b, store),
    policy,
    again(b, store),
    streaks,
    recordOf(request),
    tested,
  );
  const exitCode = gateExit(result, request.remeasure !== undefined);
  const failed = result.rules.flatMap((r) => (r.passed ? [] : [r.rule]));
  if (begun !== null) endVerdict(store!, begun, { verdict: result.verdict, exitCode, failed });
  return { comparison, result, past: pastOf(b, result, store), passedOver, exitCode };
}

const begin = (store: Store, { run, arm }: NonNullable<NamedSide['from']>, baseline: string): number =>
  beginVerdict(store, { run_id: run.id, arm, baseline, judged_at: new Date().toISOString() });

/** Measures in one run, so that what broke and what got fixed meet the same conditions, as often. */
async function measureAgain(
  { b, store, policy, tell, remeasure }: GateRequest,
  comparisons: readonly Comparison[],
  candidate: Candidate,
): Promise<void> {
  if (!remeasure) return;
  const known = again(b, store);
  const open = (ids: readonly string[]) => [...new Set(ids)].filter((id) => !known.has(id));
  const changed = open(comparisons.flatMap((comparison) => toMeasureAgain(comparison, policy.alpha)));
  const broken = open(comparisons.flatMap((comparison) => comparison.broken)).length;
  const golden = open(goldenToMeasure(policy, candidate)).filter((id) => !changed.includes(id));
  if (changed.length + golden.length === 0) return;
  const parts = compact([
    broken > 0 && `${broken} newly broken instance(s)`,
    changed.length > broken && `${changed.length - broken} that got fixed`,
    golden.length > 0 && `${golden.length} that must pass`,
  ]);
  tell({ level: 'info', text: `${parts.join(' and ')}; measuring them again before the verdict` });
  await remeasure([...changed, ...golden]);
}

/** Nights since the accepted baseline, and tonight. */
function recordOf({ a, b, store, policy, since = a.from?.run }: GateRequest): AlongRecord | null {
  if (!store || !b.from || since === undefined) return null;
  const { run, arm } = b.from;
  const found = (row: ComparableRow) => objectionsTo(row).flatMap((o) => o.failed);
  const nights = comparableRuns(store, run)
    .filter((row) => row.id >= (since?.id ?? 0) && row.graded === 1)
    .filter((row) => row.chosen === 1 || row.status === 'complete')
    .filter((row) => row.id === since?.id || !found(row).some((rule) => NOT_OF_THE_RECORD.has(rule)))
    .map((row) => row.id)
    .sort((x, y) => x - y)
    .slice(1 - NIGHTS_OF_A_RECORD);
  const runs = [...nights, run.id];
  const rows = resultsIn(store, run, arm, runs).map((row) => ({ night: runs.indexOf(row.run_id), row }));
  const scores = rows.map(({ night, row }) => ({ night, ...nightOf(row) }));
  return alongRecord(
    [...Map.groupBy(scores, (score) => score.instanceId).values()].map((own) =>
      own.flatMap(({ night, resolved }) => (resolved === null ? [] : [[night, resolved] as const])),
    ),
    {
      since: rows[0]?.row.run ?? run.name,
      nights: runs.length,
      error: policy.alpha ?? NIGHT_ERROR,
      fixed: runs[0] === a.from?.run.id,
    },
  );
}

/** The number of resolved results in a row, up to the reference's, of each instance that broke. */
function streaksOf(a: NamedSide, { broken }: Comparison, store: Store | undefined): Map<string, number> {
  if (!store || !a.from || broken.length === 0) return new Map();
  const rows = resultsUpTo(store, a.from.run, a.from.arm, broken).map(nightOf);
  return new Map([...Map.groupBy(rows, (r) => r.instanceId)].map(([id, own]) => [id, streakOf(own)]));
}

/** Newest first; a night without a verdict says nothing. */
function streakOf(results: readonly NightResult[]): number {
  const valid = results.filter((r) => r.resolved !== null);
  const failed = valid.findIndex((r) => !r.resolved);
  return failed === -1 ? valid.length : failed;
}

/** The earlier results of each changed instance: a change of a flaky instance means little. */
function pastOf(b: NamedSide, result: GateResult, store: Store | undefined): InstanceHistory[] {
  if (!store || !b.from) return [];
  const { run } = b.from;
  const changed = new Set([...result.broken, ...result.flaky.map((f) => f.instanceId), ...result.fixed]);
  const before = nightsOf(store, run.id).filter((n) => n.run_id < run.id && changed.has(n.instance_id));
  return historyOf(before.map(nightOf)).filter((h) => h.resolved.n > 0);
}

/**
 * The exit code of a verdict. An instance that could not be measured again (an outage, the end of the budget) is neither broken nor flaky,
 * so the night is incomplete (observed: tests/report/gate.test.ts).
 */
export function gateExit({ passed, unconfirmed }: GateResult, remeasured: boolean): 0 | 1 | 3 {
  if (!passed) return 1;
  return remeasured && unconfirmed.length > 0 ? 3 : 0;
}

/** Results of re-measurements of the same arm. */
const again = (b: NamedSide, store: Store | undefined): Map<string, boolean[]> =>
  remeasurementsOf(againOf(b, store).map(({ side }): Side => side));

function againOf({ from }: NamedSide, store: Store | undefined): NamedSide[] {
  if (!store || !from) return [];
  return remeasurementsOfRun(store, from.run.name)
    .flatMap((run) => sidesOfRun(store, run))
    .filter((side) => side.from!.arm === from.arm);
}

/** Measuring again is part of the night, and paid out of the same budget. */
function withCostAgain(candidate: Candidate, b: NamedSide, store: Store | undefined): Candidate {
  const costs = againOf(b, store).map(({ from }) => candidateOf(from!.data, from!.arm, b.side).cost);
  if (costs.length === 0) return candidate;
  const costAgain = costs.reduce(added);
  return { ...candidate, cost: added(candidate.cost, costAgain), costAgain };
}

/** The sum of two costs; an unknown cost only makes it "at least". */
const added = (a: Candidate['cost'], b: Candidate['cost']): Candidate['cost'] => ({
  nano: a.nano === null && b.nano === null ? null : (a.nano ?? 0) + (b.nano ?? 0),
  atLeast: [a, b].some(({ nano, atLeast }) => nano === null || atLeast),
});

/** A night that has no baseline: its limits are judged, and its verdict is recorded. `measure` runs instances again. */
export async function runFirstNight(
  store: Store,
  b: NamedSide,
  policy: GatePolicy,
  required: boolean,
  measure: GateRequest['remeasure'],
): Promise<GateResult> {
  const { run, data, arm } = b.from!;
  const of = { run_id: run.id, arm, baseline: null, judged_at: new Date().toISOString() };
  const begun = beginVerdict(store, of);
  const candidate = candidateOf(data, arm, b.side);
  const known = again(b, store);
  const golden = goldenToMeasure(policy, candidate).filter((id) => !known.has(id));
  if (golden.length > 0) await measure?.(golden);
  const paid = withCostAgain(candidate, b, store);
  const result = firstNight(paid, policy, required, again(b, store));
  // A missing baseline says nothing against the night as the next one's baseline.
  const failed = result.rules.flatMap((r) => (r.passed || r.rule === 'baseline' ? [] : [r.rule]));
  const exitCode = failed.length > 0 ? 1 : 0;
  endVerdict(store, begun, { verdict: result.verdict, exitCode, failed });
  return result;
}

/** The summaries, junit.xml, gate.json and gate.md; also for a failed night. Appends to a CI's step summary where there is one. */
export async function writeArtifacts(
  folder: string,
  b: NamedSide,
  { comparison, result, past, passedOver, exitCode }: Omit<Gated, 'comparison' | 'exitCode'> & Partial<Gated>,
  env: Variables,
): Promise<string[]> {
  const labels = { a: comparison?.a.label ?? null, b: b.side.label };
  const document = gateDocument(result, labels, past, passedOver);
  const files: [string, string][] = [
    ['gate.json', jsonText({ gate: { ...result, past, passedOver }, comparison: comparison ?? null })],
    ['gate.md', renderMarkdown(document)],
  ];
  if (b.from) {
    const summary = summarize(b.from.data, { pricesOf: pricesOfRun(b.from.data) });
    const failed = result.rules.flatMap((r) => (r.passed ? [] : [r.rule]));
    const given = {
      arm: b.from.arm,
      baseline: labels.a,
      verdict: result.verdict,
      failed,
      unconfirmed: result.unconfirmed.length,
    };
    files.push(
      ['junit.xml', junitXml(b.from.data, result, b.from.arm, !comparison)],
      ...summaryFiles(summary, [{ ...given, exitCode: exitCode ?? result.exitCode }]),
    );
  }
  for (const [name, content] of files) await writeAtomically(pathInside(folder, name), content);
  const step = variable(env, 'GITHUB_STEP_SUMMARY');
  if (step) appendFileSync(step, renderMarkdown(document));
  return files.map(([name]) => join(folder, name));
}

export interface PassedOver {
  readonly run: string;
  readonly why: string;
}

/** Rejects a wrong name before the night is paid for. */
export function requireBaseline(store: Store, name: string, run: Pick<RunRow, 'name'>): void {
  if (name === 'last' || baselineRun(store, name)) return;
  const found = findRun(store, name);
  if ('id' in found && found.name !== run.name) return;
  throw new UserError(`there is no baseline or other run "${name}"`, { next: { do: 'find_baseline' } });
}

/**
 * Undefined when nothing comparable exists. The newest one that nothing speaks against: else the night after a regression would be compared
 * with the regression, and pass. `passedOver`: newer ones, newest first. A person overrules it with `baseline set`, or by naming the run.
 */
export function findBaseline(
  store: Store,
  name: string,
  run: RunRow,
): {
  readonly baseline: RunRow | undefined;
  /** The newest one that broke limits on results at most: what the tests compare with. */
  readonly unchosen: RunRow | undefined;
  readonly passedOver: readonly PassedOver[];
  /** The run that a person accepted, by name or by `baseline set`; null where nobody did: then the record begins with its first night. */
  readonly accepted: RunRow | null;
} {
  const passedOver: PassedOver[] = [];
  if (name !== 'last') {
    const found = baselineRun(store, name) ?? findRun(store, name);
    const baseline = 'id' in found ? found : undefined;
    return { baseline, unchosen: baseline, passedOver, accepted: baseline ?? null };
  }
  const rows = comparableRuns(store, run);
  const accepted = rows.filter((row) => row.chosen === 1).sort((x, y) => y.id - x.id)[0] ?? null;
  const unchosen = rows.find((row) => objectionTo(row) === null || brokeLimitsAlone(row));
  for (const row of rows) {
    const why = objectionTo(row);
    if (why === null) return { baseline: row, unchosen, passedOver, accepted };
    passedOver.push({ run: row.name, why });
  }
  return { baseline: undefined, unchosen, passedOver, accepted };
}

const ENDED: Record<Exclude<RunStatus, 'complete'>, string> = {
  running: 'it has not ended',
  paused: 'it has not ended',
  incomplete: 'it is incomplete',
  budget: 'its budget ended it',
  interrupted: 'it was interrupted',
  failed: 'it failed',
};

function objectionTo(row: ComparableRow): string | null {
  if (row.graded === 0) return 'it is not graded';
  if (row.chosen === 1) return null;
  return row.status === 'complete' ? objectionOfGate(row) : ENDED[row.status];
}

function brokeLimitsAlone(row: ComparableRow): boolean {
  const found = objectionsTo(row);
  return (
    row.graded === 1 &&
    row.status === 'complete' &&
    found.length > 0 &&
    found.every((o) => o.exit_code === 1 && o.failed.every((rule) => LIMITS_ON_RESULTS.has(rule)))
  );
}

const objectionsTo = ({ objections }: ComparableRow) =>
  JSON.parse(objections ?? '[]') as { exit_code: number | null; failed: string[] }[];

function objectionOfGate(row: ComparableRow): string | null {
  const found = objectionsTo(row);
  if (found.length === 0) return null;
  const failed = found.filter((o) => o.exit_code === 1);
  if (failed.length > 0)
    return `its gate failed: ${[...new Set(failed.flatMap((o) => o.failed))].join(', ')}`;
  return found.some((o) => o.exit_code === null)
    ? 'its gate was not finished'
    : 'its gate is incomplete: not all that broke could be measured again';
}
