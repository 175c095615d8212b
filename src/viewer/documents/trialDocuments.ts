/** Documents about trials: their money, the tally of a run, its trials page by page, the history of an instance. */
import { SEALED_CLASSES } from '../../outcome.ts';
import { standingOf } from '../../report/measure/score.ts';
import type { ShownTrial, ViewerQueries } from '../../store/records/viewerQueries.ts';
import { type MoneyDocument, TRIALS_PER_PAGE, type TrialDocument } from './documents.ts';
import { readFlags } from './lenient.ts';
import { rewardOfRows } from './pairs.ts';

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
const COUNTS = Object.keys(NO_MONEY).filter((key) => key !== 'costNano') as Exclude<
  keyof MoneyDocument,
  'costNano'
>[];

export function addMoney(parts: Iterable<MoneyDocument>): MoneyDocument {
  const sum = { ...NO_MONEY };
  for (const part of parts) {
    if (part.costNano !== null) sum.costNano = (sum.costNano ?? 0) + part.costNano;
    for (const count of COUNTS) sum[count] += part[count];
  }
  return sum;
}

type Attempt = { readonly id: number; readonly state: string };

export type ViewedRecord = ReturnType<typeof viewedRecord>;

/** The ledger of an ended attempt never changes again, so each is summed once; that keeps a live table of 500 x 200 steps cheap. */
export const viewedRecord = (queries: ViewerQueries) => ({
  ...queries,
  money: remember((id): MoneyDocument => ({ ...NO_MONEY, ...queries.cost(id) })),
  phasesOf: remember((id) => queries.phaseTotals(id)),
});

function remember<T>(read: (id: number) => T): (attempt: Attempt) => T {
  const ended = new Map<number, T>();
  return ({ id, state }) => {
    const known = ended.get(id);
    if (known !== undefined) return known;
    const fresh = read(id);
    if (state === 'ended') ended.set(id, fresh);
    return fresh;
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
const VALID = new Set(['resolved', 'unresolved', 'not_graded']);

const count = (names: Iterable<string>): [string, number][] =>
  [...Map.groupBy(names, (name) => name)]
    .map(([name, group]): [string, number] => [name, group.length])
    .sort(([a], [b]) => a.localeCompare(b));

/** As classCounts of the store: a trial that had its result and was asked for once more has not run yet. */
const classOf = ({ state, exit_class }: ShownTrial): string => {
  if (state === 'running' || state === 'leased') return 'running';
  return exit_class === null || (state === 'pending' && SEALED_CLASSES.has(exit_class))
    ? 'not_run'
    : exit_class;
};

export type Tally = ReturnType<typeof tally>;

export function tally(rows: readonly ShownTrial[]) {
  const isGraded = rows.some((row) => row.outcome !== null);
  const verdicts = rows.map((row) => verdictOf(row, isGraded));
  const resolved = rows.filter((_row, i) => verdicts[i] === 'resolved');
  const reward = rewardOfRows(rows.map((row, i) => ({ ...row, verdict: verdicts[i]! })));
  return {
    planned: rows.length,
    sealed: rows.filter((r) => r.state === 'sealed').length,
    running: rows.filter((r) => r.state === 'running' || r.state === 'leased').length,
    pending: rows.filter((r) => r.state === 'pending').length,
    /** Whose ending says something final about the model: the denominator of coverage. */
    valid: verdicts.filter((verdict) => VALID.has(verdict)).length,
    /** Of those, how many a grader has spoken about: the denominator of the resolved rate. */
    graded: verdicts.filter((verdict) => verdict === 'resolved' || verdict === 'unresolved').length,
    resolved: resolved.length,
    strict: resolved.filter((r) => r.resolved_strict !== 0).length,
    flagged: rows.filter((r) => suspicions(r).length > 0).length,
    classes: count(rows.map(classOf)),
    outcomes: count(rows.flatMap((r) => (r.outcome === null ? [] : [r.outcome]))),
    /** Over instances. */
    ...(reward && { reward }),
  };
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

/** Each trial with the money of all of its attempts: a retry costs too. */
export function trialsWithMoney(
  record: ViewedRecord,
  runId: number,
  rows: readonly ShownTrial[],
): TrialDocument[] {
  const attempts = Map.groupBy(record.attemptIds(runId), (attempt) => attempt.trial_id);
  // The whole run decides, not these rows, so that all pages of a run that is being graded agree.
  const graded = record.anyVerdict(runId) !== undefined;
  return rows.map((row) => {
    const money = addMoney((attempts.get(row.trial) ?? []).map(record.money));
    return trialDocument(row, money, graded);
  });
}

export type TrialPage = ReturnType<typeof trialPage>;

export function trialPage(record: ViewedRecord, runId: number, page: number) {
  const rows = record.trials(runId, TRIALS_PER_PAGE, page * TRIALS_PER_PAGE);
  return {
    run: runId,
    total: record.trialsPlanned(runId)!.n,
    rows: trialsWithMoney(record, runId, rows),
  };
}

export type HistoryRow = ReturnType<typeof history>[number];

export function history(record: ViewedRecord, instanceId: string) {
  return record.history(instanceId).map(({ run, created_at, ...row }) => {
    const money = addMoney(record.attemptsOf(row.trial).map((attempt) => record.money(attempt)));
    return {
      ...trialDocument(row, money, row.outcome !== null),
      run,
      runId: row.run_id,
      createdAt: created_at,
    };
  });
}
