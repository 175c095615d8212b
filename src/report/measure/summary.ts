/**
 * The summary of one arm: planned, valid, coverage, resolved of valid with its interval, bounds over what is missing; and where
 * money, tokens and time went.
 */

import type { GoldStanding } from '../../store/records/evaluations.ts';
import type { ReportArm, ReportTrial, RunData } from '../../store/records/runData.ts';
import type { StoredManifest } from '../../store/records/runs.ts';
import { passTable } from '../statistics/epochs.ts';
import { mean, quantile, sum } from '../statistics/means.ts';
import { proportion } from '../statistics/proportions.ts';
import { type StratumResult, stratifiedEstimate } from '../statistics/stratified.ts';
import { accountingOf, type PricesOf } from './accounting.ts';
import doubts from './publishedDoubts.json' with { type: 'json' };
import { agentOf } from './runFacts.ts';
import {
  awaitsVerdict,
  flagsOf,
  isGraded,
  rewardSummary,
  type Scored,
  type ScoredTrial,
  scoredTrials,
  scoreOf,
} from './score.ts';

export interface SummaryOptions {
  /** Dollars per million tokens, to split the ledger by token kind; where unknown the split shows tokens only. */
  readonly pricesOf?: PricesOf;
  /** Seed of the bootstraps; stored in the output. */
  readonly seed?: number;
}

export const RESAMPLING_SEED = 20250301;

const TOP = 5;

export type ArmSummary = ReturnType<typeof armSummary>;

function armSummary(data: RunData, { name, model, config }: ReportArm, options: SummaryOptions) {
  const trials = data.trials.filter((t) => t.arm === name);
  const rows = scoredTrials(trials);
  const epochs = new Set(trials.map((t) => t.epoch)).size;
  const ended = trials.filter((t) => t.exitReason !== null);
  const { unsupported } = data.run.manifest.dataset ?? {};
  const leftOut = Array.isArray(unsupported) ? unsupported.length : 0;
  const resolved = new Set(rows.filter((r) => r.resolved).map((r) => r.trial.trialId));
  const awaiting = new Set(rows.flatMap((r) => (awaitsVerdict(r.standing) ? [r.trial.trialId] : [])));
  const seed = options.seed ?? RESAMPLING_SEED;
  return {
    arm: name,
    model,
    /** null: the built-in one. */
    agent: agentOf(config),
    ...headlineOf(rows, epochs, data.gold),
    ...breakdownOf(rows, epochs),
    /** Tasks that were left out because they cannot run here; absent where there is none. */
    ...(leftOut > 0 && { leftOut }),
    stratified: stratifiedOf(rows, data.run.manifest),
    steps: spread(ended.map((t) => t.steps)),
    elapsedMs: spread(ended.map((t) => t.elapsedMs)),
    workingMs: spread(ended.map((t) => t.workingMs)),
    accounting: accountingOf(data, name, { resolved, awaiting }, options.pricesOf, seed),
    ...notableOf(rows, epochs, data.firstResults),
    phases: data.phases
      .filter((p) => p.arm === name)
      .map(({ name: phase, totalMs }) => ({ name: phase, totalMs })),
  };
}

function headlineOf(rows: readonly ScoredTrial[], epochs: number, gold: RunData['gold']) {
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
    /** Of valid trials. With several epochs `estimate` is the headline: n x K is not a sample size. */
    resolved: whole.resolved,
    resolvedStrict: examined ? strict.resolved : null,
    /** The same over instances, where there are several epochs. */
    estimateStrict: examined ? strict.overInstances : null,
    /** The score without instances that gold fails on this machine; null where that was never measured. */
    gold: goldScore(rows, gold, epochs),
    /** The score without instances that others found to be wrong; absent where none of them is in the run. */
    ...(doubted.length > 0 && { doubted }),
    estimate: whole.overInstances,
    /** Absent where the suite gives no rewards. */
    ...(reward && { reward }),
    passes: epochs > 1 ? passTable(byInstance, epochs) : [],
    /** Over everything planned: all missing failed, all missing resolved. */
    bounds: rows.length
      ? { worst: resolved / rows.length, best: (resolved + rows.length - valid.length) / rows.length }
      : null,
  };
}

/** Trials that a reader should look at. */
function notableOf(rows: readonly ScoredTrial[], epochs: number, firstResults: RunData['firstResults']) {
  const trials = rows.map((r) => r.trial);
  const idsOf = (test: (trial: ReportTrial) => unknown) => trials.filter(test).map((t) => t.instanceId);
  const unusedWork = idsOf((t) => t.workUnused);
  const unknownErrors = idsOf((t) => t.exitReason === 'model_rejected' && t.exitDetail === 'UNKNOWN');
  const retried = idsOf((t) => t.attempts > 1);
  const isFlagged = ({ trial }: ScoredTrial) => flagsOf(trial).length > 0;
  const redone = trials.filter((t) => firstResults.has(t.trialId)).length;
  const firsts = trials.map((t): ReportTrial => {
    const first = firstResults.get(t.trialId);
    return first ? { ...t, ...first, state: 'sealed' } : t;
  });
  return {
    flagged: {
      trials: rows
        .filter(isFlagged)
        .map(({ trial }) => ({ instanceId: trial.instanceId, epoch: trial.epoch, rules: flagsOf(trial) })),
      ...scoreWithout(rows, epochs, isFlagged),
    },
    retried: { trials: retried.length, ids: [...new Set(retried)] },
    /** The score before results were tried again: a second chance moves it. Null where none was. */
    firstAttempt: redone === 0 ? null : { ...scoreOf(scoredTrials(firsts), epochs), redone },
    slowest: trials
      .filter((t) => t.exitReason !== null && t.elapsedMs !== null)
      .sort((a, b) => b.elapsedMs! - a.elapsedMs!)
      .slice(0, TOP)
      .map(({ instanceId, epoch, elapsedMs, exitReason }) => ({
        instanceId,
        epoch,
        value: elapsedMs!,
        why: exitReason!,
      })),
    stalled: trials
      .filter((t) => t.exitReason === 'stalled')
      .map((t) => `${t.instanceId}${t.exitDetail ? ` (${t.exitDetail})` : ''}`),
    /** Instances that the model or its provider refused. */
    refused: idsOf((t) => t.exitReason === 'model_refusal'),
    /** Instances that ended on an error of the provider which no table knows; absent where there is none. */
    ...(unknownErrors.length > 0 && { unknownErrors }),
    /** Instances whose agent submitted nothing and left work in its tree; absent where there is none. */
    ...(unusedWork.length > 0 && { unusedWork }),
    oomKills: sum(trials.map((t) => t.oomKills)),
  };
}

/** Middle and long tail of what single trials took. */
function spread(values: readonly (number | null)[]) {
  const known = values.filter((x) => x !== null);
  return { n: known.length, p50: quantile(known, 0.5), p95: quantile(known, 0.95) };
}

/** The score of the rows that are not `out`; over instances too, where there are several epochs. */
function scoreWithout<T extends Scored>(rows: readonly T[], epochs: number, out: (row: T) => boolean) {
  const { resolved, overInstances } = scoreOf(
    rows.filter((row) => !out(row)),
    epochs,
  );
  return { resolvedWithout: resolved, estimateWithout: overInstances };
}

/** Null where gold was never graded for any of these instances. Instances that were never calibrated here stay in the score. */
export function goldScore(
  trials: readonly Scored[],
  standings: ReadonlyMap<string, GoldStanding>,
  epochs: number,
) {
  const ids = [...new Set(trials.map((t) => t.instanceId))];
  const those = (standing: GoldStanding | undefined) => ids.filter((id) => standings.get(id) === standing);
  const [fails, flaky, unknown] = [those('fails'), those('flaky'), those(undefined).length];
  const untouched = those('untouched');
  if (unknown === ids.length) return null;
  const out = new Set([...fails, ...flaky, ...untouched]);
  return {
    passes: those('passes').length,
    fails,
    flaky,
    unknown,
    ...(untouched.length > 0 && { untouched }),
    ...scoreWithout(trials, epochs, ({ instanceId }) => out.has(instanceId)),
  };
}

/**
 * One score for each list that has instances of the run, and one without all of them where there are several. "whose gold patch fails its own
 * grader (scaleapi/SWE-bench_Pro-os#108)".
 */
export function doubtedScores(trials: readonly Scored[], epochs: number) {
  const here = new Set(trials.map(({ instanceId }) => instanceId));
  const lists = doubts
    .map(({ says, source, ids }) => ({ label: `${says} (${source})`, ids: ids.filter((id) => here.has(id)) }))
    .filter(({ ids }) => ids.length > 0);
  const all = { label: 'of either list', ids: [...new Set(lists.flatMap(({ ids }) => ids))] };
  return [...lists, ...(lists.length < 2 ? [] : [all])].map(({ label, ids }) => ({
    label,
    ids,
    ...scoreWithout(trials, epochs, ({ instanceId }) => ids.includes(instanceId)),
  }));
}

/** Only where the manifest says that the selection was a sample. A weight is how many instances of the stratum one stands for. */
function stratifiedOf(rows: readonly ScoredTrial[], manifest: StoredManifest) {
  const fields = sampleFields(manifest);
  if (!fields) return null;
  // Epochs repeat an instance, which counts once, with its mean.
  const instances = [...Map.groupBy(rows, (r) => r.trial.instanceId).values()];
  const groups = Map.groupBy(
    instances,
    ([first]) => fields.map((f) => fieldOf(first!, f)).join(' / ') || '(all)',
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
function unsampled(manifest: StoredManifest): StratumResult[] {
  const strata = manifest.dataset?.strata;
  const known = (Array.isArray(strata) ? strata : []) as { key: string[]; size: number; sampled: number }[];
  return known
    .filter((s) => s.sampled === 0)
    .map((s) => ({ key: s.key.join(' / '), size: s.size, n: 0, resolved: 0 }));
}

/** A column that the record does not keep still has its weight, which is the same within a stratum. */
const fieldOf = ({ trial }: ScoredTrial, field: string): string =>
  field === 'repo' ? trial.repo : field === 'difficulty' ? trial.difficulty : `weight ${trial.weight}`;

/** `selection.sample` and `selection.stratify` of run.json; null when the selection was not a sample. */
function sampleFields(manifest: StoredManifest): string[] | null {
  const { selection } = manifest;
  if (typeof selection?.sample !== 'number') return null;
  const { stratify } = selection;
  const fields = typeof stratify === 'string' ? stratify.split(',') : Array.isArray(stratify) ? stratify : [];
  return fields.map((f) => String(f).trim()).filter(Boolean);
}

export type Slice = ArmSummary['byRepo'][number];

function breakdownOf(rows: readonly ScoredTrial[], epochs: number) {
  const missing = rows.flatMap(({ instanceId: id, standing }) =>
    standing.valid ? [] : [{ id, why: standing.why }],
  );
  const reasonOf = ({ trial }: ScoredTrial): string =>
    trial.state === 'leased' || trial.state === 'running'
      ? 'running'
      : (trial.exitReason ?? trial.notRunReason ?? 'not started');
  const outcomes = rows.map(({ trial }) => trial.outcome).filter((outcome) => outcome !== null);
  const slices = (keyOf: (trial: ReportTrial) => string) =>
    [...Map.groupBy(rows, ({ trial }) => keyOf(trial) || '(none)')]
      .map(([key, part]) => ({ key, planned: part.length, ...scoreOf(part, epochs) }))
      .sort((a, b) => b.planned - a.planned || (a.key < b.key ? -1 : 1));
  return {
    missing: [...Map.groupBy(missing, (m) => m.why)]
      .map(([why, group]) => ({ why, n: group.length, ids: group.map((m) => m.id) }))
      .sort((a, b) => b.n - a.n),
    /** Sums to what was planned: a trial without an attempt is listed under why it was not run. */
    byExitReason: [...Map.groupBy(rows, reasonOf)]
      .map(([reason, part]) => ({
        reason,
        class: reason === 'running' ? ('running' as const) : (part[0]!.trial.exitClass ?? 'not_run'),
        n: part.length,
        ...scoreOf(part, epochs),
      }))
      .sort((a, b) => b.n - a.n || (a.reason < b.reason ? -1 : 1)),
    byOutcome: [...Map.groupBy(outcomes, (outcome) => outcome)]
      .map(([outcome, group]) => ({ outcome, n: group.length }))
      .sort((a, b) => b.n - a.n || (a.outcome < b.outcome ? -1 : 1)),
    byRepo: slices((trial) => trial.repo),
    byDifficulty: slices((trial) => trial.difficulty),
  };
}

const SUMMARY_SCHEMA = 1;

export interface Summary {
  readonly schema_version: typeof SUMMARY_SCHEMA;
  readonly run: string;
  readonly status: string;
  readonly createdAt: string;
  readonly finishedAt: string | null;
  readonly dataset: { readonly source: string; readonly revision: string | null; readonly hash: string };
  readonly budgetNano: number | null;
  readonly imported: boolean;
  /** The run is one of the shards of another, which has so many instances; absent for a whole one. */
  readonly shard?: { readonly number: number; readonly of: number; readonly instances: number };
  readonly arms: readonly ArmSummary[];
  /** True when every planned trial is valid. */
  readonly complete: boolean;
  /** Trials started longest first, and not all of them are decided: what is there is no fair sample. */
  readonly longestFirst: boolean;
}

export function summarize(data: RunData, options: SummaryOptions = {}): Summary {
  const { run } = data;
  const { shard } = run.manifest;
  const arms = data.arms.map((arm) => armSummary(data, arm, options));
  return {
    schema_version: SUMMARY_SCHEMA,
    run: run.name,
    status: run.status,
    createdAt: run.createdAt,
    finishedAt: run.finishedAt,
    dataset: { source: run.datasetSource, revision: run.datasetRevision, hash: run.datasetHash },
    budgetNano: run.budgetNano,
    imported: run.imported,
    ...(shard && { shard: { number: shard.number, of: shard.of, instances: shard.instances } }),
    arms,
    complete: arms.every((a) => a.valid === a.planned && a.planned > 0),
    longestFirst: run.config.run?.order === 'longest' && arms.some((a) => a.sealed < a.planned),
  };
}
