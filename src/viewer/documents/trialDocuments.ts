/** Documents about trials: their verdicts and money, page by page, and the history of an instance. */
import { dirname } from 'node:path';
import { standingOf } from '../../report/measure/score.ts';
import { isDead, reportData } from '../../run/standing.ts';
import type { Store } from '../../store/open.ts';
import { version } from '../../store/query.ts';
import { moneyOfAttempt, moneyOfAttempts } from '../../store/records/modelCalls.ts';
import { runSignature, shownRun } from '../../store/records/runs.ts';
import {
  hasVerdict,
  type ShownTrial,
  taskBeginnings,
  trialsOfInstance,
  trialsOnPage,
  trialsPlanned,
} from '../../store/records/trialPages.ts';
import { attemptsOf } from '../../store/records/trials.ts';
import { type MoneyDocument, TRIALS_PER_PAGE, type TrialDocument } from './documents.ts';
import { readFlags } from './lenient.ts';

const NO_MONEY: MoneyDocument = {
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

function addMoney(parts: readonly MoneyDocument[]): MoneyDocument {
  const sum = { ...NO_MONEY };
  for (const { costNano, ...counts } of parts) {
    if (costNano !== null) sum.costNano = (sum.costNano ?? 0) + costNano;
    for (const count of Object.keys(NO_MONEY) as (keyof MoneyDocument)[])
      if (count !== 'costNano') sum[count] += counts[count];
  }
  return sum;
}

export type ViewedRecord = ReturnType<typeof viewedRecord>;

/** Readings of a whole run are kept until the run changes. */
export function viewedRecord(db: Store) {
  const root = dirname(db.name);
  const keyOf = (id: number): string => {
    const run = shownRun(db, id);
    if (!run || run.status === 'running' || run.status === 'paused')
      return `${version(db)} ${run && isDead(root, run)}`;
    return `${run.status} ${run.finished_at} ${runSignature(db, id)}`;
  };
  const kept = <T>(read: (runId: number) => T): ((runId: number) => T) => {
    const known = new Map<number, { key: string; value: T }>();
    return (id) => {
      const key = keyOf(id);
      const found = known.get(id);
      if (found?.key === key) return found.value;
      const value = read(id);
      known.set(id, { key, value });
      return value;
    };
  };
  return {
    db,
    root,
    kept,
    money: (attempt: number): MoneyDocument => ({ ...NO_MONEY, ...moneyOfAttempt(db, attempt) }),
    /** By trial, of all its attempts: a retry costs too. */
    moneyOfTrials: kept((id) => {
      const found = new Map<number, MoneyDocument>();
      for (const { trialId, ...money } of moneyOfAttempts(db, id))
        found.set(trialId, addMoney([found.get(trialId) ?? NO_MONEY, money]));
      return found;
    }),
    reportData: (id: number) => reportData(db, id),
  };
}

/** The verdict by the rule of the report, so that page and report never disagree. */
function verdictOf(row: ShownTrial, graded: boolean): string {
  const standing = standingOf(
    {
      state: row.state,
      exitClass: row.exit_class,
      exitReason: row.exit_reason,
      notRunReason: row.not_run_reason,
      outcome: row.outcome,
      resolved: row.resolved === null ? null : row.resolved === 1,
      patchEmpty: (row.patch_chars ?? 0) === 0,
    },
    graded,
  );
  return standing.valid ? (standing.resolved ? 'resolved' : 'unresolved') : standing.why;
}
const suspicions = (row: ShownTrial): string[] => [
  ...new Set([...readFlags(row.suspicion), ...readFlags(row.grade_suspicion)].map((flag) => flag.rule)),
];

function trialDocument(row: ShownTrial, money: MoneyDocument, graded: boolean): TrialDocument {
  const { suspicion: _suspicion, grade_suspicion: _grade, run_id: _run, reward, ...rest } = row;
  const flags = suspicions(row);
  if ((row.oom_kills ?? 0) > 0) flags.push('oom');
  if (row.history === 'failed') flags.push('history unsealed');
  if (row.attempts > 1) flags.push('retried');
  if (money.unknownCalls > 0) flags.push('cost unknown');
  if (row.resolved === 1 && row.resolved_strict === 0) flags.push('not strict');
  return { ...rest, ...(reward !== null && { reward }), verdict: verdictOf(row, graded), flags, money };
}

export function trialDocuments(
  record: ViewedRecord,
  runId: number,
  limit: number,
  offset = 0,
): TrialDocument[] {
  const run = shownRun(record.db, runId);
  const dead = run !== undefined && isDead(record.root, run);
  // The whole run decides, not these rows, so that all pages of a run that is being graded agree.
  const graded = hasVerdict(record.db, runId);
  const money = record.moneyOfTrials(runId);
  return trialsOnPage(record.db, runId, limit, offset).map((row) =>
    trialDocument(dead ? stopped(row) : row, money.get(row.trial) ?? NO_MONEY, graded),
  );
}

/** The trial of a run whose process is gone. */
const stopped = (row: ShownTrial): ShownTrial =>
  row.state === 'running' || row.state === 'leased'
    ? { ...row, state: 'pending', attempt_state: row.attempt_state && 'ended', not_run_reason: 'interrupted' }
    : row;

export type TrialPage = ReturnType<typeof trialPage>;

export function trialPage(record: ViewedRecord, runId: number, page: number) {
  const [limit, offset] = [TRIALS_PER_PAGE, page * TRIALS_PER_PAGE];
  const tasks = new Map(
    taskBeginnings(record.db, runId, limit, offset).map(({ trial, begins }) => [trial, firstLine(begins)]),
  );
  return {
    run: runId,
    total: trialsPlanned(record.db, runId),
    rows: trialDocuments(record, runId, limit, offset).map((row): TrialDocument => {
      const task = tasks.get(row.trial);
      return task ? { ...row, task } : row;
    }),
  };
}

const LONGEST_LINE = 160;

/** The first line that says something; a heading without its marks. */
function firstLine(text: unknown): string {
  if (typeof text !== 'string') return '';
  const line = text.split('\n').find((one) => /[\p{L}\p{N}]/u.test(one)) ?? '';
  return line
    .replace(/^[#*\s]+/, '')
    .trim()
    .slice(0, LONGEST_LINE);
}

export type HistoryRow = ReturnType<typeof history>[number];

export const history = (record: ViewedRecord, instanceId: string) =>
  trialsOfInstance(record.db, instanceId).map(({ run, created_at, ...row }) => ({
    ...trialDocument(
      row,
      addMoney(attemptsOf(record.db, row.trial).map(({ id }) => record.money(id))),
      hasVerdict(record.db, row.run_id),
    ),
    run,
    runId: row.run_id,
    createdAt: created_at,
  }));
