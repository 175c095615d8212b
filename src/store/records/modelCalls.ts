/**
 * The money ledger: one row for every HTTP try, begun before the request leaves and ended before its answer is used; the calls of installed
 * programs; and what the calls and phases of attempts come to.
 */
import type { ExitReason } from '../../outcome.ts';
import { type Store, safeSum, TOKENS } from '../open.ts';
import { all, assignments, change, each, first, insert, raw, storedList } from '../query.ts';
import { inTurn } from '../writing.ts';
import { type ArmRow, armsOf, type RunRow } from './runs.ts';

interface ModelCallRow {
  id: number;
  attempt_id: number;
  step: number;
  try: number;
  /** The purpose of a call beside the agent's own turns. */
  label: string | null;
  /** Which call of an installed program it is a try of; null for the built-in agent. */
  call: number | null;
  state: 'in_flight' | 'ok' | 'failed' | 'aborted';
  started_at: string;
  latency_ms: number | null;
  status_code: number | null;
  error_code: string | null;
  error_message: string | null;
  model_asked: string;
  model_answered: string | null;
  response_id: string | null;
  fingerprint: string | null;
  finish_reason: string | null;
  usage: string | null;
  input_tokens: number | null;
  cache_read_tokens: number | null;
  cache_write_tokens: number | null;
  output_tokens: number | null;
  reasoning_tokens: number | null;
  price_version: string | null;
  cost_nano: number | null;
  provider_cost_nano: number | null;
  estimate_nano: number | null;
  request_bytes: number | null;
  notes: string;
  /** A reply that broke the rules of its dialect, as it came. */
  unreadable: string | null;
}

export type CallBegan = Pick<
  ModelCallRow,
  'attempt_id' | 'step' | 'try' | 'started_at' | 'model_asked' | 'estimate_nano'
> &
  Partial<Pick<ModelCallRow, 'label' | 'call'>>;

/** The row of a finished call. */
export type EndedCallRow = ModelCallRow & { state: 'ok' | 'failed' | 'aborted' };

/** The columns that the end of a call adds to its row. */
export type CallEnded = Omit<EndedCallRow, 'id' | keyof CallBegan>;

/** Money and tokens of several calls. `costNano` null: nothing is known; `unknownCalls` > 0: a lower bound. */
export interface LedgerSums {
  readonly calls: number;
  readonly costNano: number | null;
  readonly unknownCalls: number;
  readonly inputTokens: number;
  readonly cacheReadTokens: number;
  readonly cacheWriteTokens: number;
  readonly outputTokens: number;
  readonly reasoningTokens: number;
}

/** A call that has ended without a known cost; the view attempt_costs counts the same. */
export const costUnknown = (call: string): string =>
  `${call}.state <> 'in_flight' AND ${call}.cost_nano IS NULL`;

/**
 * SQL for the cost of an attempt, NULL when a part is unknown. Read from an index: the view attempt_costs would be added up for the whole
 * database.
 */
export const knownCost = (attempt: string): string =>
  `CASE WHEN EXISTS (SELECT 1 FROM model_calls u WHERE u.attempt_id = ${attempt} AND ${costUnknown('u')}) THEN NULL
     ELSE coalesce((SELECT ${safeSum('k.cost_nano')} FROM model_calls k WHERE k.attempt_id = ${attempt}), ${costWithoutCalls(attempt)}) END`;

/** SQL for the cost of an attempt that has no calls: one of ours made none, and an imported one did not record them. */
export const costWithoutCalls = (attempt: string): string =>
  `CASE WHEN EXISTS (SELECT 1 FROM attempts w JOIN trials wt ON wt.id = w.trial_id JOIN runs wr ON wr.id = wt.run_id
     WHERE w.id = ${attempt} AND wr.imported) THEN NULL ELSE 0 END`;

/** Select list of the token counts of LedgerSums; `sum` says how a column becomes one number. */
const tokenSums = (sum: (column: string) => string): string =>
  ['input', 'cacheRead', 'cacheWrite', 'output', 'reasoning']
    .map((kind) => {
      const column = `${kind.replace(/[A-Z]/, (letter) => `_${letter.toLowerCase()}`)}_tokens`;
      return `coalesce(${sum(column)}, 0) AS ${kind}Tokens`;
    })
    .join(', ');

/**
 * Records a call before its request is sent, so that after a crash the record shows which calls may have been billed. The sender waits for the
 * disk too (onDisk.ts), so that this holds after a power cut.
 */
export const beginCall = (db: Store, call: CallBegan): number =>
  inTurn(db, () => insert(db, 'model_calls', { ...call, state: 'in_flight' }));

export const endCall = (db: Store, id: number, call: CallEnded): number =>
  inTurn(db, () => change(db)`UPDATE model_calls SET ${assignments(call)} WHERE id = ${id}`);

/** A call whose attempt ended before its answer came. */
export const loseCall = (db: Store, id: number): number =>
  lose(db, raw('id = ?', id), 'the attempt ended before the answer was there');

/** Marks calls of dead processes; their cost stays unknown. Returns how many there were. */
export const abandonCalls = (db: Store, attemptId: number): number =>
  lose(db, raw('attempt_id = ?', attemptId), 'the process died before the answer was recorded');

const lose = (db: Store, which: ReturnType<typeof raw>, why: string): number => change(db)`
  UPDATE model_calls SET state = 'aborted', notes = ${`["possibly billed: ${why}"]`}
  WHERE ${which} AND state = 'in_flight'`;

/** The label of calls that tests made. */
export const GRADING = 'grading';

/** Sums of the agent: calls of its tests are no part of its work. */
export const endedCalls = (db: Store, attemptId: number): EndedCallRow[] =>
  all(
    db,
  )`SELECT * FROM model_calls WHERE attempt_id = ${attemptId} AND state <> 'in_flight' AND label IS NOT ${GRADING} ORDER BY id`;

const CALL = [
  'step',
  'try',
  'state',
  'started_at',
  'latency_ms',
  'status_code',
  'error_code',
  'model_answered',
  'finish_reason',
  'input_tokens',
  'cache_read_tokens',
  'cache_write_tokens',
  'output_tokens',
  'reasoning_tokens',
  'cost_nano',
] as const satisfies readonly (keyof ModelCallRow)[];
export type CallRow = Pick<ModelCallRow, (typeof CALL)[number]>;

/** Calls of the agent itself. */
export const callsOf = (db: Store, attemptId: number) =>
  all(db)<CallRow>`
    SELECT ${raw(CALL.join(', '))} FROM model_calls WHERE attempt_id = ${attemptId} AND label IS NOT ${GRADING} ORDER BY step, try, id`;

/** Calls of an installed program; the built-in agent has none. */
export const callsOfProgram = (db: Store, attemptId: number) =>
  all(db)<CallRow & { call: number }>`
    SELECT ${raw(CALL.join(', '))}, call FROM model_calls WHERE attempt_id = ${attemptId} AND call IS NOT NULL ORDER BY id`;

/** Calls of tests that a dead process left. Returns how many there were. */
export const abandonGradingCalls = (db: Store, runId: number): number =>
  lose(
    db,
    raw(
      `label = '${GRADING}' AND attempt_id IN (SELECT a.id FROM attempts a JOIN trials t ON t.id = a.trial_id WHERE t.run_id = ?)`,
      runId,
    ),
    'the process died before the answer was recorded',
  );

/** Model calls of the tests of an attempt. */
export interface JudgeCallRow {
  attempt_id: number;
  at: string;
  key: string;
  dialect: string;
  operation: string;
  model: string;
  request: Buffer;
  status: number;
  headers: string;
  response: Buffer;
  reply: string;
}

export const insertJudgeCall = (db: Store, row: JudgeCallRow): number =>
  inTurn(db, () => insert(db, 'judge_calls', row));

export const judgeCallsOf = (db: Store, attemptId: number): JudgeCallRow[] =>
  all(db)`SELECT * FROM judge_calls WHERE attempt_id = ${attemptId} ORDER BY id`;

/** Money of the tests of an attempt; undefined where they asked no model. */
export const gradingMoney = (
  db: Store,
  attemptId: number,
):
  | { calls: number; failedCalls: number; unknownCalls: number; costNano: number | null; models: string }
  | undefined =>
  first(db)`
    SELECT count(*) AS calls, sum(state <> 'ok') AS failedCalls, sum(${raw(costUnknown('model_calls'))}) AS unknownCalls,
      sum(cost_nano) AS costNano, group_concat(DISTINCT coalesce(model_answered, model_asked)) AS models
    FROM model_calls WHERE attempt_id = ${attemptId} AND label = ${GRADING} HAVING count(*) > 0`;

/** A call of an installed program: what it asked and what it got. */
export interface ProgramCallRow {
  attempt_id: number;
  call: number;
  step: number;
  label: string | null;
  thread: string;
  dialect: string;
  operation: 'generate' | 'stream' | 'count_tokens';
  model: string;
  first_message: number;
  reply_message: number | null;
  answer: 'whole' | 'cut' | 'refused' | 'error';
  status: number;
  headers: string;
  request: Buffer;
  response: Buffer;
  failure: string | null;
}

/** The facts of a program's call, without what was said. */
export type ProgramCallFacts = Pick<
  ProgramCallRow,
  'call' | 'step' | 'label' | 'thread' | 'first_message' | 'reply_message' | 'answer' | 'status'
>;

export const insertProgramCall = (db: Store, row: ProgramCallRow): number =>
  inTurn(db, () => insert(db, 'program_calls', row));

export const programCallsOf = (db: Store, attemptId: number): ProgramCallRow[] =>
  all(db)`SELECT * FROM program_calls WHERE attempt_id = ${attemptId} ORDER BY call`;

/** The calls in the order in which they came to their ends. */
export const programCallFacts = (db: Store, attemptId: number): ProgramCallFacts[] =>
  all(db)`SELECT call, step, label, thread, first_message, reply_message, answer, status FROM program_calls
     WHERE attempt_id = ${attemptId} ORDER BY rowid`;

/** The first call of the agent's own turns in a run, or in one arm of it. */
export const firstProgramCall = (
  db: Store,
  runId: number,
  armId: number | null,
):
  | (Pick<ProgramCallRow, 'attempt_id' | 'call' | 'dialect' | 'model' | 'request'> & { arm: number })
  | undefined =>
  first(db)`
    SELECT p.attempt_id, p.call, p.dialect, p.model, p.request, t.arm_id AS arm FROM program_calls p JOIN attempts a ON a.id = p.attempt_id JOIN trials t ON t.id = a.trial_id
     WHERE t.run_id = ${runId} AND t.arm_id = ifnull(${armId}, t.arm_id) ORDER BY t.arm_id, p.label IS NOT NULL, p.attempt_id, p.call LIMIT 1`;

// Sums of the calls and phases of attempts, for reports. Ended attempts have it written down; for any other one, and for one whose calls
// changed after its end, it is added up from its calls and phases.

/** Calls of attempts by answering model, as the columns of attempt_ledger. */
const LINE =
  raw(`c.attempt_id, coalesce(c.model_answered, c.model_asked) AS model, count(*) AS calls, sum(c.state <> 'ok') AS failed_calls,
  sum(${costUnknown('c')}) AS unknown_calls, ${safeSum('c.cost_nano')} AS cost_nano,
  ${TOKENS.map((column) => `${safeSum(`c.${column}`)} AS ${column}`).join(', ')},
  coalesce(${safeSum(`iif(c.cache_write_tokens > 0 AND json_valid(c.usage),
    c.usage ->> '$.cache_creation.ephemeral_1h_input_tokens', 0)`)}, 0.0) AS cache_write_1h_tokens,
  json_group_array(DISTINCT c.model_asked) FILTER (WHERE c.state = 'ok') AS asked,
  json_group_array(DISTINCT c.price_version) FILTER (WHERE c.price_version IS NOT NULL) AS price_versions`);

/** Writes down the sums of an attempt that has just ended. */
export function sumAttempt(db: Store, attemptId: number): void {
  for (const table of ['attempt_ledger', 'attempt_phases'])
    change(db)`DELETE FROM ${raw(table)} WHERE attempt_id = ${attemptId}`;
  change(db)`
    INSERT INTO attempt_ledger SELECT ${LINE} FROM model_calls c WHERE c.attempt_id = ${attemptId} GROUP BY 1, 2`;
  change(db)`INSERT INTO attempt_phases SELECT attempt_id, name, ${raw(safeSum('duration_ms'))} FROM phases
     WHERE attempt_id = ${attemptId} AND offset_ms >= 0 GROUP BY 1, 2`;
  change(db)`INSERT OR IGNORE INTO attempt_sums (attempt_id) VALUES (${attemptId})`;
}

/** A row of attempt_ledger. */
interface AttemptLine {
  readonly attempt_id: number;
  readonly trial_id: number;
  readonly model: string;
  readonly calls: number;
  readonly failed_calls: number;
  readonly unknown_calls: number;
  readonly cost_nano: number | null;
  readonly input_tokens: number | null;
  readonly cache_read_tokens: number | null;
  readonly cache_write_tokens: number | null;
  readonly output_tokens: number | null;
  readonly reasoning_tokens: number | null;
  readonly cache_write_1h_tokens: number;
  readonly asked: string;
  readonly price_versions: string;
}

const OF_RUN = raw(
  'trials t JOIN attempts a ON a.trial_id = t.id LEFT JOIN attempt_sums k ON k.attempt_id = a.id',
);

const linesOf = (runId: number) =>
  raw(
    `SELECT l.*, t.id AS trial_id FROM ${OF_RUN.text} JOIN attempt_ledger l ON l.attempt_id = k.attempt_id WHERE t.run_id = ?
    UNION ALL
    SELECT * FROM (SELECT ${LINE.text}, t.id AS trial_id FROM ${OF_RUN.text} JOIN model_calls c ON c.attempt_id = a.id
      WHERE t.run_id = ? AND k.attempt_id IS NULL GROUP BY 1, 2)`,
    runId,
    runId,
  );

/** The lines by attempt. */
const attemptLines = (db: Store, runId: number): Iterable<AttemptLine> =>
  each(db)`${linesOf(runId)} ORDER BY 1`;

/** The cost of each attempt of a run that asked a model. */
export function* moneyOfAttempts(db: Store, runId: number): Generator<Sums & { trialId: number }> {
  for (const line of attemptLines(db, runId)) {
    const sums = nothing();
    add(sums, line);
    yield { ...sums, trialId: line.trial_id };
  }
}

/** The money of one attempt; undefined where it asked no model. By its id: joined, SQLite would add up those of the whole database first. */
export const moneyOfAttempt = (db: Store, attemptId: number) =>
  first(db)<LedgerSums & { failedCalls: number }>`
    SELECT c.cost_nano AS costNano, c.unknown_calls AS unknownCalls, c.calls,
       (SELECT count(*) FROM model_calls f WHERE f.attempt_id = c.attempt_id AND f.state <> 'ok') AS failedCalls,
       ${raw(tokenSums((column) => `c.${column}`))} FROM attempt_costs c WHERE c.attempt_id = ${attemptId}`;

/** The money of all attempts of a run together. */
export const runMoney = (
  db: Store,
  run: Pick<RunRow, 'id' | 'imported'>,
): LedgerSums & { failedCalls: number } =>
  first(db)`
    SELECT coalesce(sum(calls), 0) AS calls, coalesce(sum(failed_calls), 0) AS failedCalls,
      coalesce(${raw(safeSum('cost_nano'))}, CASE WHEN ${run.imported} OR count(*) > 0 THEN NULL ELSE 0 END) AS costNano,
      coalesce(sum(unknown_calls), 0) + CASE WHEN ${run.imported} THEN (SELECT count(*) FROM trials t JOIN attempts a ON a.trial_id = t.id
        WHERE t.run_id = ${run.id} AND NOT EXISTS (SELECT 1 FROM model_calls c WHERE c.attempt_id = a.id)) ELSE 0 END AS unknownCalls,
      ${raw(tokenSums((column) => `sum(${column})`))} FROM (${linesOf(run.id)})`!;

/** The time of a phase, summed over the attempts of an arm. */
export interface PhaseTotal {
  readonly arm: string;
  readonly name: string;
  readonly totalMs: number;
  readonly attempts: number;
}

// Sums that are written down are added up by themselves first: all lines together would be sorted by two texts, which takes twice as long.
export const phaseTotals = (db: Store, runId: number): PhaseTotal[] =>
  all(db)`SELECT m.name AS arm, p.name, coalesce(sum(p.ms), 0) AS totalMs, sum(p.attempts) AS attempts FROM (
       SELECT t.arm_id, s.name, sum(s.total_ms) AS ms, count(*) AS attempts FROM ${OF_RUN} JOIN attempt_phases s ON s.attempt_id = k.attempt_id
       WHERE t.run_id = ${runId} GROUP BY t.arm_id, s.name
       UNION ALL
       SELECT t.arm_id, p.name, ${raw(safeSum('p.duration_ms'))} AS ms, 1 AS attempts FROM ${OF_RUN} JOIN phases p ON p.attempt_id = a.id
       WHERE t.run_id = ${runId} AND k.attempt_id IS NULL AND p.offset_ms >= 0 GROUP BY a.id, p.name
     ) p JOIN arms m ON m.id = p.arm_id GROUP BY m.name, p.name ORDER BY m.position, totalMs DESC`;

/** The cost of one attempt, sealed or not. */
export interface AttemptCost extends LedgerSums {
  readonly failedCalls: number;
  readonly attemptId: number;
  readonly trialId: number;
  readonly number: number;
  readonly arm: string;
  readonly instanceId: string;
  readonly epoch: number;
  readonly exitReason: ExitReason | null;
}

/** The ledger summed by arm and answering model. */
export interface LedgerLine extends LedgerSums {
  readonly arm: string;
  /** The model that answered. */
  readonly model: string;
  /** Requested models of the answered calls. */
  readonly asked: readonly string[];
  readonly failedCalls: number;
  /** The part of what was written to a cache that is kept for an hour. */
  readonly cacheWrite1hTokens?: number;
  readonly priceVersions: readonly string[];
}

type Attempt = Pick<AttemptCost, 'attemptId' | 'trialId' | 'number' | 'exitReason'>;

type Mutable<T> = { -readonly [K in keyof T]: T[K] };
type Sums = Mutable<LedgerSums & Pick<AttemptCost, 'failedCalls'>>;

const nothing = (): Sums => ({
  calls: 0,
  failedCalls: 0,
  costNano: null,
  unknownCalls: 0,
  inputTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  outputTokens: 0,
  reasoningTokens: 0,
});

function add(sums: Sums, line: AttemptLine): void {
  sums.calls += line.calls;
  sums.failedCalls += line.failed_calls;
  if (line.cost_nano !== null) sums.costNano = (sums.costNano ?? 0) + line.cost_nano;
  sums.unknownCalls += line.unknown_calls;
  sums.inputTokens += line.input_tokens ?? 0;
  sums.cacheReadTokens += line.cache_read_tokens ?? 0;
  sums.cacheWriteTokens += line.cache_write_tokens ?? 0;
  sums.outputTokens += line.output_tokens ?? 0;
  sums.reasoningTokens += line.reasoning_tokens ?? 0;
}

/** The cost of each attempt, and the same by arm and model. One line at a time: a large run has a hundred thousand. */
export function moneyOf(
  db: Store,
  run: Pick<RunRow, 'id' | 'imported'>,
  trials: readonly Pick<AttemptCost, 'trialId' | 'arm' | 'instanceId' | 'epoch' | 'exitReason'>[],
): { costs: AttemptCost[]; ledger: LedgerLine[] } {
  const trialOf = new Map(trials.map((trial) => [trial.trialId, trial]));
  const attempts = new Map<number, Mutable<AttemptCost>>();
  // All that is asked of a final attempt, which most are, is in an index, and why it ended is known of its trial.
  const rows = each(db)<Attempt & { final: 0 | 1 }>`
    SELECT a.id AS attemptId, t.id AS trialId, a.number, a.id IS t.final_attempt_id AS final,
      iif(a.id IS t.final_attempt_id, NULL, a.exit_reason) AS exitReason FROM trials t JOIN attempts a ON a.trial_id = t.id WHERE t.run_id = ${run.id}`;
  for (const attempt of rows) {
    const { arm, instanceId, epoch, exitReason: finalReason } = trialOf.get(attempt.trialId)!;
    const { attemptId, trialId, number } = attempt;
    const exitReason = attempt.final === 1 ? finalReason : attempt.exitReason;
    attempts.set(attemptId, { attemptId, trialId, number, exitReason, arm, instanceId, epoch, ...nothing() });
  }
  const entries = new Map<string, Entry>();
  for (const line of attemptLines(db, run.id)) {
    const attempt = attempts.get(line.attempt_id)!;
    add(attempt, line);
    const key = `${attempt.arm}\0${line.model}`;
    const entry = entries.get(key) ?? entryOf(attempt.arm, line.model);
    entries.set(key, entry);
    add(entry.sums, line);
    entry.cacheWrite1hTokens += line.cache_write_1h_tokens;
    entry.asked.add(line.asked);
    entry.priceVersions.add(line.price_versions);
  }
  // Sorted here: SQLite would take five times as long. By the places of trials, since resampling draws by the order of these rows: which attempt
  // began first must move no interval.
  const places = new Map(trials.map(({ trialId }, place) => [trialId, place]));
  const placeOf = ({ trialId }: AttemptCost): number => places.get(trialId)!;
  const costs = [...attempts.values()].sort((a, b) => placeOf(a) - placeOf(b) || a.number - b.number);
  // An imported attempt without calls did not record them, so its cost is unknown. An attempt of ours without calls made none.
  if (!run.imported) for (const cost of costs) if (cost.calls === 0) cost.costNano = 0;
  return { costs, ledger: ledgerOf([...entries.values()], armsOf(db, run.id)) };
}

const entryOf = (arm: string, model: string) => ({
  arm,
  model,
  sums: nothing(),
  cacheWrite1hTokens: 0,
  asked: new Set<string>(),
  priceVersions: new Set<string>(),
});
type Entry = ReturnType<typeof entryOf>;

function ledgerOf(entries: readonly Entry[], arms: readonly ArmRow[]): LedgerLine[] {
  const position = new Map(arms.map((arm) => [arm.name, arm.position]));
  return entries
    .map(
      ({ sums, asked, priceVersions, ...entry }): LedgerLine => ({
        ...entry,
        ...sums,
        asked: textsIn(asked),
        priceVersions: textsIn(priceVersions),
      }),
    )
    .sort((a, b) => position.get(a.arm)! - position.get(b.arm)! || (a.model < b.model ? -1 : 1));
}

/** Lists of texts joined, each text once. */
const textsIn = (lists: Iterable<string>): string[] => [
  ...new Set([...lists].flatMap((text) => storedList(text, isText))),
];

const isText = (item: unknown): item is string => typeof item === 'string';
