/** Documents about runs: the list, one run with its slots and spend, its trials page by page, the history of an instance. */
import type { ExitClass, Outcome } from '../../outcome.ts';
import { standingOf } from '../../report/measure/verdict.ts';
import type {
  CostRow,
  EventRow,
  RunRow,
  TrialRow,
  ViewerQueries,
} from '../../store/records/viewerQueries.ts';
import {
  type ArmSummary,
  type HistoryRow,
  type Money,
  type RunDocument,
  type RunSummary,
  type Tally,
  TRIALS_PER_PAGE,
  type TrialDocument,
  type TrialPage,
} from './documents.ts';
import { readFlags } from './lenient.ts';

const NO_MONEY: Money = {
  costNano: null,
  unknownCalls: 0,
  calls: 0,
  failedCalls: 0,
  inputTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  outputTokens: 0,
  reasoningTokens: 0,
};

const moneyOf = (row: CostRow | undefined): Money =>
  row === undefined
    ? NO_MONEY
    : {
        costNano: row.cost_nano,
        unknownCalls: row.unknown_calls,
        calls: row.calls,
        failedCalls: row.failed_calls,
        inputTokens: row.input_tokens ?? 0,
        cacheReadTokens: row.cache_read_tokens ?? 0,
        cacheWriteTokens: row.cache_write_tokens ?? 0,
        outputTokens: row.output_tokens ?? 0,
        reasoningTokens: row.reasoning_tokens ?? 0,
      };

export function addMoney(parts: Iterable<Money>): Money {
  const sum = { ...NO_MONEY };
  for (const part of parts) {
    if (part.costNano !== null) sum.costNano = (sum.costNano ?? 0) + part.costNano;
    sum.unknownCalls += part.unknownCalls;
    sum.calls += part.calls;
    sum.failedCalls += part.failedCalls;
    sum.inputTokens += part.inputTokens;
    sum.cacheReadTokens += part.cacheReadTokens;
    sum.cacheWriteTokens += part.cacheWriteTokens;
    sum.outputTokens += part.outputTokens;
    sum.reasoningTokens += part.reasoningTokens;
  }
  return sum;
}

/** The ledger of an ended attempt never changes again, so each is summed once; that keeps a live table of 500 x 200 steps cheap. */
export interface Ledger {
  money(attempt: { id: number; state: string }): Money;
  phases(attempt: { id: number; state: string }): { name: string; n: number; ms: number }[];
}
export function createLedger(queries: ViewerQueries): Ledger {
  const money = new Map<number, Money>();
  const phases = new Map<number, { name: string; n: number; ms: number }[]>();
  const remember = <T>(cache: Map<number, T>, read: (id: number) => T) => {
    return (attempt: { id: number; state: string }): T => {
      const known = cache.get(attempt.id);
      if (known !== undefined) return known;
      const fresh = read(attempt.id);
      if (attempt.state === 'ended') cache.set(attempt.id, fresh);
      return fresh;
    };
  };
  return {
    money: remember(money, (id) => moneyOf(queries.cost(id))),
    phases: remember(phases, (id) => queries.phaseTotals(id)),
  };
}

/** What the report says of a trial, so that page and report never disagree. */
function verdictOf(row: TrialRow, graded: boolean): string {
  const standing = standingOf(
    {
      state: row.state as never,
      exitClass: row.exit_class as ExitClass | null,
      exitReason: row.exit_reason as never,
      notRunReason: row.not_run_reason,
      outcome: row.outcome as Outcome | null,
      resolved: row.resolved === null ? null : row.resolved === 1,
      patchEmpty: (row.patch_chars ?? 0) === 0,
    },
    graded,
  );
  return standing.valid ? (standing.resolved ? 'resolved' : 'unresolved') : standing.why;
}
const VALID = new Set(['resolved', 'unresolved', 'not_graded']);

const count = (names: Iterable<string>): [string, number][] => {
  const found = new Map<string, number>();
  for (const name of names) found.set(name, (found.get(name) ?? 0) + 1);
  return [...found].sort(([a], [b]) => a.localeCompare(b));
};

/** As store/trials.ts counts: a decided trial that was asked for once more has not run yet. */
const DECIDED = new Set(['agent', 'limit', 'model']);
const classOf = ({ state, exit_class }: TrialRow): string => {
  if (state === 'running' || state === 'leased') return 'running';
  return exit_class === null || (state === 'pending' && DECIDED.has(exit_class)) ? 'not_run' : exit_class;
};

export function tally(rows: readonly TrialRow[]): Tally {
  const isGraded = rows.some((row) => row.outcome !== null);
  const verdicts = rows.map((row) => verdictOf(row, isGraded));
  const resolved = rows.filter((_row, i) => verdicts[i] === 'resolved');
  return {
    planned: rows.length,
    sealed: rows.filter((r) => r.state === 'sealed').length,
    running: rows.filter((r) => r.state === 'running' || r.state === 'leased').length,
    pending: rows.filter((r) => r.state === 'pending').length,
    valid: verdicts.filter((verdict) => VALID.has(verdict)).length,
    graded: verdicts.filter((verdict) => verdict === 'resolved' || verdict === 'unresolved').length,
    resolved: resolved.length,
    strict: resolved.filter((r) => r.resolved_strict !== 0).length,
    flagged: rows.filter((r) => suspicions(r).length > 0).length,
    classes: count(rows.map(classOf)),
    outcomes: count(rows.flatMap((r) => (r.outcome === null ? [] : [r.outcome]))),
  };
}

const suspicions = (row: TrialRow): string[] => [
  ...new Set([...readFlags(row.suspicion), ...readFlags(row.grade_suspicion)].map((flag) => flag.rule)),
];

function trialDocument(row: TrialRow, money: Money, graded: boolean): TrialDocument {
  const { suspicion: _suspicion, grade_suspicion: _grade, run_id: _run, ...rest } = row;
  const flags = suspicions(row);
  if ((row.oom_kills ?? 0) > 0) flags.push('oom');
  if (row.history === 'failed') flags.push('history unsealed');
  if (row.attempts > 1) flags.push('retried');
  if (money.unknownCalls > 0) flags.push('cost unknown');
  if (row.resolved === 1 && row.resolved_strict === 0) flags.push('not strict');
  return { ...rest, verdict: verdictOf(row, graded), flags, money };
}

/** Each trial with the money of all of its attempts: a retry costs too. */
function trialsWithMoney(
  queries: ViewerQueries,
  ledger: Ledger,
  runId: number,
  rows: readonly TrialRow[],
): TrialDocument[] {
  const parts = new Map<number, Money[]>();
  for (const attempt of queries.attemptIds(runId))
    parts.set(attempt.trial_id, [...(parts.get(attempt.trial_id) ?? []), ledger.money(attempt)]);
  // Of the run, not of these rows: a page of a run that is being graded reads as the others.
  const graded = queries.isGraded(runId);
  return rows.map((row) => trialDocument(row, addMoney(parts.get(row.trial) ?? []), graded));
}

export function trialPage(queries: ViewerQueries, ledger: Ledger, runId: number, page: number): TrialPage {
  const rows = queries.trials(runId, TRIALS_PER_PAGE, page * TRIALS_PER_PAGE);
  return {
    run: runId,
    total: queries.trialCount(runId),
    rows: trialsWithMoney(queries, ledger, runId, rows),
  };
}

export function history(queries: ViewerQueries, ledger: Ledger, instanceId: string): HistoryRow[] {
  return queries.history(instanceId).map(({ run, created_at, ...row }) => {
    const money = addMoney(queries.attemptsOf(row.trial).map((attempt) => ledger.money(attempt)));
    return {
      ...trialDocument(row, money, row.outcome !== null),
      run,
      runId: row.run_id,
      createdAt: created_at,
    };
  });
}

export function runSummary(
  queries: ViewerQueries,
  ledger: Ledger,
  run: RunRow,
  rows: readonly TrialRow[],
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

function seriesOf(queries: ViewerQueries, ledger: Ledger, runId: number, rows: readonly TrialRow[]) {
  const trials = new Map(rows.map((row) => [row.trial, row]));
  const ended = queries
    .attemptIds(runId)
    .filter((attempt) => attempt.ended_at !== null)
    .sort((a, b) => a.ended_at!.localeCompare(b.ended_at!));
  let [costNano, sealed, resolved] = [0, 0, 0];
  return ended.map((attempt, i) => {
    const trial = trials.get(attempt.trial_id);
    costNano += ledger.money(attempt).costNano ?? 0;
    if (trial?.state === 'sealed' && trial.attempt === attempt.id) {
      sealed += 1;
      resolved += trial.resolved ?? 0;
    }
    return { at: attempt.ended_at!, costNano, ended: i + 1, sealed, resolved };
  });
}

function armsOf(trials: readonly TrialRow[], documents: readonly TrialDocument[]): ArmSummary[] {
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
export function breakerOf(events: readonly EventRow[]): RunDocument['breaker'] {
  const last = events
    .filter((event) => HELD.has(event.type) || FREE.has(event.type))
    .sort((a, b) => b.seq - a.seq)[0];
  if (!last) return null;
  return { open: HELD.has(last.type), reason: reasonOf(last.data), at: last.at };
}

function reasonOf(data: string): string {
  try {
    const parsed: unknown = JSON.parse(data);
    if (typeof parsed === 'object' && parsed !== null && 'reason' in parsed) return String(parsed.reason);
  } catch {
    // Shown as it is: the viewer must open whatever the database holds.
  }
  return data;
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
    series: seriesOf(queries, ledger, runId, rows),
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
