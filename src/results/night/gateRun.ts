/** A night's verdict: compare with the baseline, measure again what changed, judge, and leave the artifacts a CI wants. */

import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
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
  remeasurementsOf,
} from '../../report/gate/gate.ts';
import { gateDocument, junitXml } from '../../report/gate/gateDocument.ts';
import type { GatePolicy } from '../../report/gate/rules.ts';
import { toMeasureAgain } from '../../report/gate/rules.ts';
import { historyOf, type InstanceHistory, type NightResult, nightOf } from '../../report/measure/history.ts';
import { summarize } from '../../report/measure/summary.ts';
import { jsonText } from '../../report/render/document.ts';
import { renderMarkdown } from '../../report/render/renderers.ts';
import type { McNemarTest } from '../../report/statistics/paired.ts';
import { type Tell, type Variables, variable } from '../../run/caller.ts';
import { pricesOfRun } from '../../run/record/tokenPrices.ts';
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
  resultsUpTo,
} from '../../store/records/baselines.ts';
import { findRun, type RunRow, type RunStatus } from '../../store/records/runs.ts';
import { type NamedSide, sidesOfRun } from '../compareSources.ts';

export interface GateRequest {
  readonly a: NamedSide;
  readonly b: NamedSide;
  readonly policy: GatePolicy;
  readonly test: McNemarTest;
  readonly seed: number;
  readonly tell: Tell;
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
  const comparison = compareSides(a.side, b.side, { test, seed });
  const begun = request.record && store && b.from ? begin(store, b.from, a.side.label) : null;
  await measureAgain(request, comparison);
  const candidate = b.from ? candidateOf(b.from.data, b.from.arm, b.side) : candidateOfSide(b.side);
  const result = gate(comparison, candidate, policy, again(b, store), streaksOf(a, comparison, store));
  const exitCode = gateExit(result, request.remeasure !== undefined);
  const failed = result.rules.flatMap((r) => (r.passed ? [] : [r.rule]));
  if (begun !== null) endVerdict(store!, begun, { verdict: result.verdict, exitCode, failed });
  return { comparison, result, past: pastOf(b, result, store), passedOver, exitCode };
}

const begin = (store: Store, { run, arm }: NonNullable<NamedSide['from']>, baseline: string): number =>
  beginVerdict(store, { run_id: run.id, arm, baseline, judged_at: new Date().toISOString() });

/** In one run, so that what broke and what got fixed meet the same conditions, as often. */
async function measureAgain(
  { b, store, policy, tell, remeasure }: GateRequest,
  comparison: Comparison,
): Promise<void> {
  if (!remeasure) return;
  const known = again(b, store);
  const open = toMeasureAgain(comparison, policy.alpha).filter((id) => !known.has(id));
  const broken = comparison.broken.filter((id) => !known.has(id)).length;
  if (open.length === 0) return;
  const fixed = open.length - broken;
  tell({
    level: 'info',
    text: `${broken} newly broken instance(s)${fixed > 0 ? ` and ${fixed} that got fixed` : ''}; measuring them again before the verdict`,
  });
  await remeasure(open);
}

/** How many results in a row, up to the reference's, are resolved; for what broke. */
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

/** How often each changed instance was resolved in earlier runs: a change of a flaky instance means little. */
function pastOf(b: NamedSide, result: GateResult, store: Store | undefined): InstanceHistory[] {
  if (!store || !b.from) return [];
  const { run } = b.from;
  const changed = new Set([...result.broken, ...result.flaky.map((f) => f.instanceId), ...result.fixed]);
  const before = nightsOf(store, run.id).filter((n) => n.run_id < run.id && changed.has(n.instance_id));
  return historyOf(before.map(nightOf)).filter((h) => h.resolved.n > 0);
}

/**
 * The exit code of a verdict. An instance that could not be measured again (an outage, the end of the budget) is neither broken nor flaky,
 * so the night is incomplete.
 */
export function gateExit({ passed, unconfirmed }: GateResult, remeasured: boolean): 0 | 1 | 3 {
  if (!passed) return 1;
  return remeasured && unconfirmed.length > 0 ? 3 : 0;
}

/** Results of re-measurements of the same arm. */
function again(b: NamedSide, store: Store | undefined): Map<string, boolean[]> {
  if (!store || !b.from) return new Map();
  const { run, arm } = b.from;
  const sides = remeasurementsOfRun(store, run.name)
    .flatMap((r) => sidesOfRun(store, r))
    .filter((s) => s.from!.arm === arm)
    .map((s): Side => s.side);
  return remeasurementsOf(sides);
}

/** A night that has no baseline: its limits are judged, and its verdict is recorded. */
export function runFirstNight(store: Store, b: NamedSide, policy: GatePolicy, required: boolean): GateResult {
  const { run, data, arm } = b.from!;
  const result = firstNight(candidateOf(data, arm, b.side), policy, required);
  const of = { run_id: run.id, arm, baseline: null, judged_at: new Date().toISOString() };
  // That there is no baseline yet says nothing against the night as the next one's baseline.
  const failed = result.rules.flatMap((r) => (r.passed || r.rule === 'baseline' ? [] : [r.rule]));
  const exitCode = failed.length > 0 ? 1 : 0;
  endVerdict(store, beginVerdict(store, of), { verdict: result.verdict, exitCode, failed });
  return result;
}

/** The summaries, junit.xml, gate.json and gate.md; also for a failed night. Appends to a CI's step summary where there is one. */
export async function writeArtifacts(
  folder: string,
  b: NamedSide,
  { comparison, result, past, passedOver }: Omit<Gated, 'comparison' | 'exitCode'> & Partial<Gated>,
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
    files.push(
      ['junit.xml', junitXml(b.from.data, result, b.from.arm, !comparison)],
      ...summaryFiles(summary),
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
): { readonly baseline: RunRow | undefined; readonly passedOver: readonly PassedOver[] } {
  const passedOver: PassedOver[] = [];
  if (name !== 'last') {
    const found = baselineRun(store, name) ?? findRun(store, name);
    return { baseline: 'id' in found ? found : undefined, passedOver };
  }
  for (const row of comparableRuns(store, run)) {
    const why = objectionTo(row);
    if (why === null) return { baseline: row, passedOver };
    passedOver.push({ run: row.name, why });
  }
  return { baseline: undefined, passedOver };
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

function objectionOfGate({ objections }: ComparableRow): string | null {
  if (objections === null) return null;
  const found = JSON.parse(objections) as { exit_code: number | null; failed: string[] }[];
  const failed = found.filter((o) => o.exit_code === 1);
  if (failed.length > 0)
    return `its gate failed: ${[...new Set(failed.flatMap((o) => o.failed))].join(', ')}`;
  return found.some((o) => o.exit_code === null)
    ? 'its gate was not finished'
    : 'its gate is incomplete: not all that broke could be measured again';
}
