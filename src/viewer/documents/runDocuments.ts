/** Documents about runs: the list, and one run with its slots and spend. */
import type { ShownEvent, ShownRun, ShownTrial, ViewerQueries } from '../../store/records/viewerQueries.ts';
import { addMoney, type Ledger } from './attemptMoney.ts';
import {
  type ArmDocument,
  type RunDocument,
  type RunSummary,
  TRIALS_PER_PAGE,
  type TrialDocument,
} from './documents.ts';
import { lenientJson } from './lenient.ts';
import { tally, trialsWithMoney } from './trialDocuments.ts';

export function runSummary(
  queries: ViewerQueries,
  ledger: Ledger,
  run: ShownRun,
  rows: readonly ShownTrial[],
): RunSummary {
  return {
    id: run.id,
    name: run.name,
    status: run.status,
    createdAt: run.created_at,
    finishedAt: run.finished_at,
    imported: run.imported === 1,
    dataset: run.dataset_source,
    datasetRevision: run.dataset_revision,
    datasetHash: run.dataset_hash,
    configHash: run.config_hash,
    arms: queries.arms(run.id).map(({ name, model }) => ({ name, model })),
    tally: tally(rows),
    money: addMoney(queries.attemptIds(run.id).map((attempt) => ledger.money(attempt))),
    budgetNano: run.budget_nano,
  };
}

const SERIES_POINTS = 600;

function seriesOf(queries: ViewerQueries, ledger: Ledger, runId: number, rows: readonly ShownTrial[]) {
  const trials = new Map(rows.map((row) => [row.trial, row]));
  const ended = queries
    .attemptIds(runId)
    .filter((attempt) => attempt.ended_at !== null)
    .sort((a, b) => a.ended_at!.localeCompare(b.ended_at!));
  let [costNano, sealed, resolved] = [0, 0, 0];
  const points = ended.map((attempt, i) => {
    const trial = trials.get(attempt.trial_id);
    costNano += ledger.money(attempt).costNano ?? 0;
    if (trial?.state === 'sealed' && trial.attempt === attempt.id) {
      sealed += 1;
      resolved += trial.resolved ?? 0;
    }
    return { at: attempt.ended_at!, costNano, ended: i + 1, sealed, resolved };
  });
  // A line on a screen has no room for more.
  const every = Math.ceil(points.length / SERIES_POINTS);
  return points.filter((_point, i) => i % every === 0 || i === points.length - 1);
}

function armsOf(trials: readonly ShownTrial[], documents: readonly TrialDocument[]): ArmDocument[] {
  const names = [...new Set(trials.map((row) => row.arm))];
  return names.map((arm) => ({
    arm,
    model: trials.find((row) => row.arm === arm)!.model,
    tally: tally(trials.filter((row) => row.arm === arm)),
    money: addMoney(documents.filter((row) => row.arm === arm).map((row) => row.money)),
  }));
}

const HELD = new Set(['breaker', 'paused']);
const FREE = new Set(['resumed', 'run_started', 'run_ended']);

/** The newest of these events says whether the run is held. */
function breakerOf(events: readonly ShownEvent[]): RunDocument['breaker'] {
  const last = events
    .filter((event) => HELD.has(event.type) || FREE.has(event.type))
    .sort((a, b) => b.seq - a.seq)[0];
  if (!last) return null;
  return { open: HELD.has(last.type), reason: reasonOf(last.data), at: last.at };
}

/** An event that cannot be read is shown as it is: the viewer must open whatever the database holds. */
function reasonOf(data: string): string {
  const event = lenientJson(data);
  return typeof event === 'object' && event !== null && 'reason' in event ? String(event.reason) : data;
}

export function runDocument(queries: ViewerQueries, ledger: Ledger, runId: number): RunDocument | undefined {
  const run = queries.run(runId);
  if (!run) return undefined;
  const rows = queries.trials(runId, -1, 0);
  const documents = trialsWithMoney(queries, ledger, runId, rows);
  const totals = new Map<string, { n: number; ms: number }>();
  for (const attempt of queries.attemptIds(runId))
    for (const { name, n, ms } of ledger.phases(attempt)) {
      const known = totals.get(name) ?? { n: 0, ms: 0 };
      totals.set(name, { n: known.n + n, ms: known.ms + ms });
    }
  const slots = queries.slots(runId).map((row) => ({
    slot: row.slot,
    trial: row.trial,
    attempt: row.attempt,
    instanceId: row.instance_id,
    arm: row.arm,
    epoch: row.epoch,
    steps: row.steps,
    phase: row.phase,
    phaseSince:
      row.phase_offset_ms === null
        ? null
        : new Date(Date.parse(row.started_at) + row.phase_offset_ms).toISOString(),
    startedAt: row.started_at,
    costNano: ledger.money({ id: row.attempt, state: 'running' }).costNano,
  }));
  return {
    summary: runSummary(queries, ledger, run, rows),
    arms: armsOf(rows, documents),
    config: run.config,
    manifest: run.manifest,
    trialPages: Math.max(1, Math.ceil(rows.length / TRIALS_PER_PAGE)),
    slots,
    series: run.imported === 1 ? [] : seriesOf(queries, ledger, runId, rows),
    phases: [...totals].map(([name, total]) => ({ name, ...total })).sort((a, b) => b.ms - a.ms),
    breaker: breakerOf(queries.lastEventsByType(runId)),
    pulls: {
      now: slots.filter((slot) => slot.phase === 'pull').length,
      done: totals.get('pull')?.n ?? 0,
      ms: totals.get('pull')?.ms ?? 0,
    },
    events: queries.events(runId, 50),
  };
}
