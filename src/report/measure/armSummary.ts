/**
 * What a run says of one arm: planned, valid, coverage, resolved of valid with its interval, bounds over what is missing; and where
 * money, tokens and time went.
 */
import type { ReportArm, ReportTrial, RunData } from '../../store/records/reportQueries.ts';
import { type EpochEstimate, type PassRow, passTable } from '../statistics/epochs.ts';
import { quantile } from '../statistics/means.ts';
import { type Proportion, proportion } from '../statistics/proportions.ts';
import type { StratifiedEstimate } from '../statistics/stratified.ts';
import { type Accounting, accountingOf, type PricesOf } from './accounting.ts';
import { type Breakdown, breakdownOf } from './breakdown.ts';
import { type GoldScore, goldScore } from './gold.ts';
import { type DoubtedScore, doubtedScores } from './publishedDoubts.ts';
import { type RewardSummary, rewardSummary } from './rewardSummary.ts';
import { type Score, type ScoredTrial, scoredTrials, scoreOf } from './score.ts';
import { stratifiedOf } from './stratifiedSample.ts';
import { awaitsVerdict, flagsOf, isGraded } from './verdict.ts';

export interface SummaryOptions {
  /** Dollars per million tokens, to split the ledger by token kind; where unknown the split shows tokens only. */
  readonly pricesOf?: PricesOf;
  /** Seed of the bootstraps; stored in the output. */
  readonly seed?: number;
}

export const DEFAULT_SEED = 20250301;

/** Middle and long tail of what single trials took. */
interface Spread {
  readonly n: number;
  readonly p50: number | null;
  readonly p95: number | null;
}

interface Headline {
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
  /** Without instances that others found to be wrong; absent where none of them is in the run. */
  readonly doubted?: readonly DoubtedScore[];
  readonly estimate: EpochEstimate | null;
  /** Absent where the suite gives no rewards. */
  readonly reward?: RewardSummary;
  readonly passes: readonly PassRow[];
  /** Over everything planned: all missing failed, all missing resolved. */
  readonly bounds: { readonly worst: number; readonly best: number } | null;
}

/** Trials that a reader should look at. */
interface Notable {
  readonly flagged: {
    readonly trials: readonly { instanceId: string; epoch: number; rules: readonly string[] }[];
    readonly resolvedWithout: Proportion;
    readonly estimateWithout: EpochEstimate | null;
  };
  readonly retried: { readonly trials: number; readonly ids: readonly string[] };
  /** What the score was before results were tried again: a second chance moves it. Null where none was. */
  readonly firstAttempt: (Score & { readonly redone: number }) | null;
  readonly slowest: readonly {
    readonly instanceId: string;
    readonly epoch: number;
    readonly value: number;
    readonly why: string;
  }[];
  readonly stalled: readonly string[];
  /** Instances that the model or its provider refused. */
  readonly refused: readonly string[];
  /** Instances whose agent submitted nothing and left work in its tree; absent where there is none. */
  readonly unusedWork?: readonly string[];
  readonly oomKills: number;
}

export interface ArmSummary extends Headline, Breakdown, Notable {
  readonly arm: string;
  readonly model: string;
  /** Tasks that were left out because they cannot run here; absent where there is none. */
  readonly leftOut?: number;
  readonly stratified: StratifiedEstimate | null;
  readonly steps: Spread;
  readonly elapsedMs: Spread;
  readonly workingMs: Spread;
  readonly accounting: Accounting;
  readonly phases: readonly { name: string; totalMs: number }[];
}

const TOP = 5;

export function armSummary(data: RunData, { name, model }: ReportArm, options: SummaryOptions): ArmSummary {
  const trials = data.trials.filter((t) => t.arm === name);
  const rows = scoredTrials(trials);
  const epochs = new Set(trials.map((t) => t.epoch)).size;
  const ended = trials.filter((t) => t.exitReason !== null);
  const { unsupported } = data.run.manifest.dataset ?? {};
  const leftOut = Array.isArray(unsupported) ? unsupported.length : 0;
  const resolved = new Set(rows.filter((r) => r.resolved).map((r) => r.trial.trialId));
  const awaiting = new Set(rows.flatMap((r) => (awaitsVerdict(r.standing) ? [r.trial.trialId] : [])));
  return {
    arm: name,
    model,
    ...headlineOf(rows, epochs, data.gold),
    ...breakdownOf(rows, epochs),
    ...(leftOut > 0 && { leftOut }),
    stratified: stratifiedOf(rows, data.run.manifest),
    steps: spread(ended.map((t) => t.steps)),
    elapsedMs: spread(ended.map((t) => t.elapsedMs)),
    workingMs: spread(ended.map((t) => t.workingMs)),
    accounting: accountingOf(
      data,
      name,
      { resolved, awaiting },
      options.pricesOf,
      options.seed ?? DEFAULT_SEED,
    ),
    ...notableOf(rows, epochs, data.firstResults),
    phases: data.phases
      .filter((p) => p.arm === name)
      .map(({ name: phase, totalMs }) => ({ name: phase, totalMs })),
  };
}

function headlineOf(rows: readonly ScoredTrial[], epochs: number, gold: RunData['gold']): Headline {
  const valid = rows.filter((r) => r.valid);
  const resolved = valid.filter((r) => r.resolved).length;
  const whole = scoreOf(rows, epochs);
  const reward = rewardSummary(rows);
  // Only a resolved one can lose to the stricter rules; an empty patch was never examined, and stays a failure.
  const examined = valid.some((r) => r.trial.resolvedStrict !== null);
  const strict = scoreOf(
    valid
      .filter((r) => r.trial.resolvedStrict !== null || !r.resolved)
      .map((r) => ({ ...r, resolved: r.trial.resolvedStrict === true })),
    epochs,
  );
  const byInstance = [...Map.groupBy(rows, (r) => r.instanceId).values()].map((group) => {
    const tried = group.filter((r) => r.valid);
    return { n: tried.length, c: tried.filter((r) => r.resolved).length };
  });
  const doubted = doubtedScores(rows, epochs);
  return {
    graded: isGraded(rows.map((r) => r.trial)),
    epochs,
    instances: byInstance.length,
    planned: rows.length,
    sealed: rows.filter((r) => r.trial.state === 'sealed').length,
    valid: valid.length,
    coverage: proportion(valid.length, rows.length),
    resolved: whole.resolved,
    resolvedStrict: examined ? strict.resolved : null,
    estimateStrict: examined ? strict.overInstances : null,
    gold: goldScore(rows, gold, epochs),
    ...(doubted.length > 0 && { doubted }),
    estimate: whole.overInstances,
    ...(reward && { reward }),
    passes: epochs > 1 ? passTable(byInstance, epochs) : [],
    bounds: rows.length
      ? { worst: resolved / rows.length, best: (resolved + rows.length - valid.length) / rows.length }
      : null,
  };
}

function notableOf(
  rows: readonly ScoredTrial[],
  epochs: number,
  firstResults: RunData['firstResults'],
): Notable {
  const trials = rows.map((r) => r.trial);
  const unused = trials.filter((t) => t.workUnused).map((t) => t.instanceId);
  const isFlagged = ({ trial }: ScoredTrial) => flagsOf(trial).length > 0;
  const unflagged = scoreOf(
    rows.filter((r) => !isFlagged(r)),
    epochs,
  );
  const retried = trials.filter((t) => t.attempts > 1).map((t) => t.instanceId);
  return {
    flagged: {
      trials: rows
        .filter(isFlagged)
        .map(({ trial }) => ({ instanceId: trial.instanceId, epoch: trial.epoch, rules: flagsOf(trial) })),
      resolvedWithout: unflagged.resolved,
      estimateWithout: unflagged.overInstances,
    },
    retried: { trials: retried.length, ids: [...new Set(retried)] },
    firstAttempt: firstAttemptOf(trials, firstResults, epochs),
    slowest: slowestOf(trials),
    stalled: trials
      .filter((t) => t.exitReason === 'stalled')
      .map((t) => `${t.instanceId}${t.exitDetail ? ` (${t.exitDetail})` : ''}`),
    refused: trials.filter((t) => t.exitReason === 'model_refusal').map((t) => t.instanceId),
    ...(unused.length > 0 && { unusedWork: unused }),
    oomKills: trials.reduce((s, t) => s + t.oomKills, 0),
  };
}

const slowestOf = (trials: readonly ReportTrial[]): Notable['slowest'] =>
  trials
    .filter((t) => t.exitReason !== null && t.elapsedMs !== null)
    .sort((a, b) => b.elapsedMs! - a.elapsedMs!)
    .slice(0, TOP)
    .map(({ instanceId, epoch, elapsedMs, exitReason }) => ({
      instanceId,
      epoch,
      value: elapsedMs!,
      why: exitReason!,
    }));

function firstAttemptOf(
  trials: readonly ReportTrial[],
  firstResults: RunData['firstResults'],
  epochs: number,
): Notable['firstAttempt'] {
  const redone = trials.filter((t) => firstResults.has(t.trialId)).length;
  if (redone === 0) return null;
  const firsts = trials.map((t): ReportTrial => {
    const first = firstResults.get(t.trialId);
    return first ? { ...t, ...first, state: 'sealed' } : t;
  });
  return { ...scoreOf(scoredTrials(firsts), epochs), redone };
}

function spread(values: readonly (number | null)[]): Spread {
  const known = values.filter((x) => x !== null);
  return { n: known.length, p50: quantile(known, 0.5), p95: quantile(known, 0.95) };
}
