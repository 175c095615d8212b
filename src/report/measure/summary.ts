/**
 * What a run says, arm by arm: planned, valid, coverage, resolved of valid with its interval, bounds over what is missing; and where
 * money, tokens and time went. A pure function of the record; renderers stand beside it.
 */
import type { RunData } from '../../store/records/reportQueries.ts';
import { type EpochEstimate, type PassRow, passTable } from '../statistics/epochs.ts';
import { mean, quantile, sum } from '../statistics/means.ts';
import { type Proportion, proportion } from '../statistics/proportions.ts';
import { type StratifiedEstimate, type StratumResult, stratifiedEstimate } from '../statistics/stratified.ts';
import { type Accounting, accountingOf, type PricesOf } from './accounting.ts';
import { type GoldScore, goldScore } from './gold.ts';
import { type Score, scoreOf } from './score.ts';
import { flagsOf, isGraded, type Missing, standingOf } from './verdict.ts';

export const SUMMARY_SCHEMA = 1;

export interface Spread {
  readonly n: number;
  readonly p50: number | null;
  readonly p95: number | null;
}

export interface Slice extends Score {
  readonly key: string;
  readonly planned: number;
}

export interface TrialLine {
  readonly instanceId: string;
  readonly epoch: number;
  readonly value: number;
  readonly why: string;
}

export interface ArmSummary {
  readonly arm: string;
  readonly model: string;
  readonly graded: boolean;
  readonly epochs: number;
  readonly instances: number;
  readonly planned: number;
  readonly sealed: number;
  readonly valid: number;
  readonly coverage: Proportion;
  /** Of valid trials. With several epochs `estimate` is the headline: n x K is not a sample size. */
  readonly resolved: Proportion;
  readonly resolvedStrict: Proportion | null;
  /** The same over instances, where there are several epochs. */
  readonly estimateStrict: EpochEstimate | null;
  /** Without what gold fails on this machine; null where that was never measured. */
  readonly gold: GoldScore | null;
  readonly estimate: EpochEstimate | null;
  readonly passes: readonly PassRow[];
  /** Over everything planned: all missing failed, all missing resolved. */
  readonly bounds: { readonly worst: number; readonly best: number } | null;
  readonly missing: readonly { readonly why: Missing; readonly n: number; readonly ids: readonly string[] }[];
  readonly byExitReason: readonly (Score & {
    readonly reason: string;
    readonly class: string;
    readonly n: number;
  })[];
  readonly byOutcome: readonly { readonly outcome: string; readonly n: number }[];
  readonly byRepo: readonly Slice[];
  readonly byDifficulty: readonly Slice[];
  readonly stratified: StratifiedEstimate | null;
  readonly steps: Spread;
  readonly elapsedMs: Spread;
  readonly workingMs: Spread;
  readonly accounting: Accounting;
  readonly flagged: {
    readonly trials: readonly { instanceId: string; epoch: number; rules: readonly string[] }[];
    readonly resolvedWithout: Proportion;
    readonly estimateWithout: EpochEstimate | null;
  };
  readonly retried: { readonly trials: number; readonly ids: readonly string[] };
  /** What the score was before results were tried again: a second chance moves it. Null where none was. */
  readonly firstAttempt: (Score & { readonly redone: number }) | null;
  readonly slowest: readonly TrialLine[];
  readonly stalled: readonly string[];
  /** Instances that the model or its provider refused. */
  readonly refused: readonly string[];
  readonly oomKills: number;
  readonly phases: readonly { name: string; totalMs: number }[];
}

export interface Summary {
  readonly schema_version: typeof SUMMARY_SCHEMA;
  readonly run: string;
  readonly status: string;
  readonly createdAt: string;
  readonly finishedAt: string | null;
  readonly dataset: { readonly source: string; readonly revision: string | null; readonly hash: string };
  readonly budgetNano: number | null;
  readonly imported: boolean;
  readonly arms: readonly ArmSummary[];
  /** True when every planned trial is valid. */
  readonly complete: boolean;
  /** Trials started longest first, and not all of them are decided: what is there is no fair sample. */
  readonly longestFirst: boolean;
}

export interface SummaryOptions {
  /** Dollars per million tokens, to split the ledger by token kind; where unknown the split shows tokens only. */
  readonly pricesOf?: PricesOf;
  /** Seed of the bootstraps; stored in the output. */
  readonly seed?: number;
}

const TOP = 5;
export const DEFAULT_SEED = 20250301;

export function summarize(data: RunData, options: SummaryOptions = {}): Summary {
  const { run } = data;
  const arms = data.arms.map((arm) => armSummary(data, arm.name, arm.model, options));
  return {
    schema_version: SUMMARY_SCHEMA,
    run: run.name,
    status: run.status,
    createdAt: run.createdAt,
    finishedAt: run.finishedAt,
    dataset: { source: run.datasetSource, revision: run.datasetRevision, hash: run.datasetHash },
    budgetNano: run.budgetNano,
    imported: run.imported,
    arms,
    complete: arms.every((a) => a.valid === a.planned && a.planned > 0),
    longestFirst: run.config.run?.order === 'longest' && arms.some((a) => a.sealed < a.planned),
  };
}

function armSummary(data: RunData, arm: string, model: string, options: SummaryOptions): ArmSummary {
  const trials = data.trials.filter((t) => t.arm === arm);
  const graded = isGraded(trials);
  const rows = trials.map((trial) => {
    const standing = standingOf(trial, graded);
    return {
      trial,
      instanceId: trial.instanceId,
      standing,
      resolved: standing.valid && standing.resolved,
      valid: standing.valid,
    };
  });
  type Row = (typeof rows)[number];
  const epochs = new Set(trials.map((t) => t.epoch)).size;
  const score = (part: readonly Row[]): Score => scoreOf(part, epochs);
  const valid = rows.filter((r) => r.valid);
  const resolved = valid.filter((r) => r.resolved).length;
  const slices = (keyOf: (r: Row) => string): Slice[] =>
    [...Map.groupBy(rows, keyOf)]
      .map(([key, part]) => ({ key, planned: part.length, ...score(part) }))
      .sort((a, b) => b.planned - a.planned || (a.key < b.key ? -1 : 1));
  const byInstance = [...Map.groupBy(rows, (r) => r.trial.instanceId).values()].map((group) =>
    group.filter((r) => r.valid).map((r) => (r.resolved ? 1 : 0)),
  );
  // Only a resolved one can lose to the stricter rules; an empty patch was never examined, and stays a failure.
  const examined = valid.some((r) => r.trial.resolvedStrict !== null);
  const strict = valid.filter((r) => r.trial.resolvedStrict !== null || !r.resolved);
  const whole = score(rows);
  const strictScore = score(strict.map((r) => ({ ...r, resolved: r.trial.resolvedStrict === true })));
  const flagged = rows.filter((r) => flagsOf(r.trial).length > 0);
  const unflagged = score(rows.filter((r) => !flagged.includes(r)));
  const ended = rows.filter((r) => r.trial.exitReason !== null);
  return {
    arm,
    model,
    graded,
    epochs,
    instances: byInstance.length,
    planned: rows.length,
    sealed: rows.filter((r) => r.trial.state === 'sealed').length,
    valid: valid.length,
    coverage: proportion(valid.length, rows.length),
    resolved: whole.resolved,
    resolvedStrict: examined ? strictScore.resolved : null,
    estimateStrict: examined ? strictScore.overInstances : null,
    gold: goldScore(rows, data.gold, epochs),
    estimate: whole.overInstances,
    passes:
      epochs > 1
        ? passTable(
            byInstance.map((scores) => ({ n: scores.length, c: scores.filter(Boolean).length })),
            epochs,
          )
        : [],
    bounds: rows.length
      ? { worst: resolved / rows.length, best: (resolved + rows.length - valid.length) / rows.length }
      : null,
    missing: missingOf(rows.map((r) => ({ id: r.trial.instanceId, standing: r.standing }))),
    byExitReason: reasonsOf(rows, score),
    byOutcome: countsOf(rows.flatMap((r) => (r.trial.outcome ? [r.trial.outcome] : []))).map(
      ([outcome, n]) => ({ outcome, n }),
    ),
    byRepo: slices((r) => r.trial.repo || '(none)'),
    byDifficulty: slices((r) => r.trial.difficulty || '(none)'),
    stratified: stratifiedOf(rows, data.run.manifest),
    steps: spread(ended.map((r) => r.trial.steps)),
    elapsedMs: spread(known(ended.map((r) => r.trial.elapsedMs))),
    workingMs: spread(known(ended.map((r) => r.trial.workingMs))),
    accounting: accountingOf(data, arm, resolved, options.pricesOf, options.seed ?? DEFAULT_SEED, (id) =>
      valid.some((r) => r.trial.trialId === id && r.resolved),
    ),
    flagged: {
      trials: flagged.map((r) => ({
        instanceId: r.trial.instanceId,
        epoch: r.trial.epoch,
        rules: flagsOf(r.trial),
      })),
      resolvedWithout: unflagged.resolved,
      estimateWithout: unflagged.overInstances,
    },
    retried: retriedOf(rows.map((r) => r.trial)),
    firstAttempt: firstAttemptOf(trials, data, epochs),
    slowest: ended
      .filter((r) => r.trial.elapsedMs !== null)
      .sort((a, b) => b.trial.elapsedMs! - a.trial.elapsedMs!)
      .slice(0, TOP)
      .map(({ trial }) => ({
        instanceId: trial.instanceId,
        epoch: trial.epoch,
        value: trial.elapsedMs!,
        why: trial.exitReason!,
      })),
    stalled: rows
      .filter((r) => r.trial.exitReason === 'stalled')
      .map((r) => `${r.trial.instanceId}${r.trial.exitDetail ? ` (${r.trial.exitDetail})` : ''}`),
    refused: rows.filter((r) => r.trial.exitReason === 'model_refusal').map((r) => r.trial.instanceId),
    oomKills: rows.reduce((s, r) => s + r.trial.oomKills, 0),
    phases: data.phases.filter((p) => p.arm === arm).map(({ name, totalMs }) => ({ name, totalMs })),
  };
}

const known = (xs: readonly (number | null)[]): number[] => xs.filter((x) => x !== null);
const spread = (xs: readonly number[]): Spread => ({
  n: xs.length,
  p50: quantile(xs, 0.5),
  p95: quantile(xs, 0.95),
});

const countsOf = (keys: readonly string[]): [string, number][] =>
  [...Map.groupBy(keys, (k) => k)]
    .map(([k, group]): [string, number] => [k, group.length])
    .sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));

function missingOf(rows: readonly { id: string; standing: ReturnType<typeof standingOf> }[]) {
  const missing = rows.flatMap((r) => (r.standing.valid ? [] : [{ id: r.id, why: r.standing.why }]));
  return [...Map.groupBy(missing, (m) => m.why)]
    .map(([why, group]) => ({ why, n: group.length, ids: group.map((m) => m.id) }))
    .sort((a, b) => b.n - a.n);
}

/** Sums to what was planned: a trial without an attempt is listed under why it was not run. */
function reasonsOf<R extends { trial: RunData['trials'][number] }>(
  rows: readonly R[],
  score: (part: readonly R[]) => Score,
) {
  const keyOf = ({ trial }: R) =>
    trial.state === 'leased' || trial.state === 'running'
      ? 'running'
      : (trial.exitReason ?? trial.notRunReason ?? 'not started');
  return [...Map.groupBy(rows, keyOf)]
    .map(([reason, part]) => ({
      reason,
      class: reason === 'running' ? 'running' : (part[0]!.trial.exitClass ?? 'not_run'),
      n: part.length,
      ...score(part),
    }))
    .sort((a, b) => b.n - a.n || (a.reason < b.reason ? -1 : 1));
}

function firstAttemptOf(
  trials: RunData['trials'],
  { firstResults }: RunData,
  epochs: number,
): ArmSummary['firstAttempt'] {
  const redone = trials.filter((t) => firstResults.has(t.trialId)).length;
  if (redone === 0) return null;
  const firsts = trials.map((t) => {
    const first = firstResults.get(t.trialId);
    return first ? { ...t, ...first, state: 'sealed' as const } : t;
  });
  const graded = isGraded(firsts);
  const rows = firsts.map((t) => {
    const standing = standingOf(t, graded);
    return {
      instanceId: t.instanceId,
      valid: standing.valid,
      resolved: standing.valid && standing.resolved,
    };
  });
  return { ...scoreOf(rows, epochs), redone };
}

function retriedOf(trials: readonly RunData['trials'][number][]) {
  const ids = trials.filter((t) => t.attempts > 1).map((t) => t.instanceId);
  return { trials: ids.length, ids: [...new Set(ids)] };
}

/** Only where the manifest says that the selection was a sample. A weight is how many instances of the stratum one stands for. */
function stratifiedOf(
  rows: readonly { trial: RunData['trials'][number]; valid: boolean; resolved: boolean }[],
  manifest: Readonly<Record<string, unknown>>,
): StratifiedEstimate | null {
  const fields = sampleFields(manifest);
  if (!fields) return null;
  // Epochs repeat an instance, which counts once, with its mean.
  const instances = [...Map.groupBy(rows, (r) => r.trial.instanceId).values()];
  const groups = Map.groupBy(
    instances,
    ([first]) => fields.map((f) => fieldOf(first!.trial, f)).join(' / ') || '(all)',
  );
  return stratifiedEstimate([
    ...[...groups].map(([key, members]) => {
      const means = members
        .map((m) => m.filter((r) => r.valid).map((r) => (r.resolved ? 1 : 0)))
        .filter((scores) => scores.length > 0)
        .map(mean);
      return {
        key,
        size: Math.round(members.reduce((s, [first]) => s + first!.trial.weight, 0)),
        n: means.length,
        resolved: sum(means),
      };
    }),
    ...unsampled(manifest),
  ]);
}

/** Strata of the dataset that the sample holds nothing of: the estimate must name them. */
function unsampled(manifest: Readonly<Record<string, unknown>>): StratumResult[] {
  const { strata } = (manifest.dataset ?? {}) as { strata?: unknown };
  const known = (Array.isArray(strata) ? strata : []) as { key: string[]; size: number; sampled: number }[];
  return known
    .filter((s) => s.sampled === 0)
    .map((s) => ({ key: s.key.join(' / '), size: s.size, n: 0, resolved: 0 }));
}

/** A column that the record does not keep still has its weight, which is the same within a stratum. */
const fieldOf = (trial: RunData['trials'][number], field: string): string =>
  field === 'repo' ? trial.repo : field === 'difficulty' ? trial.difficulty : `weight ${trial.weight}`;

/** `selection.sample` and `selection.stratify` of run.json; null when the selection was no sample. */
function sampleFields(manifest: Readonly<Record<string, unknown>>): string[] | null {
  const selection = manifest.selection as { sample?: unknown; stratify?: unknown } | undefined;
  if (typeof selection?.sample !== 'number') return null;
  const { stratify } = selection;
  const fields = typeof stratify === 'string' ? stratify.split(',') : Array.isArray(stratify) ? stratify : [];
  return fields.map((f) => String(f).trim()).filter(Boolean);
}
