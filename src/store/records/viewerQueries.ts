/**
 * The read-only queries of the viewer. Rows are returned as stored; src/viewer turns them into documents. Safe beside a run that writes.
 */

import { dirname } from 'node:path';
import type { Store } from '../open.ts';
import { all, first, raw } from '../query.ts';
import {
  type CommandRow,
  type EventRow,
  type MessageRow,
  messagesOf,
  type PhaseRow,
  type StoredCommand,
  wholeCommand,
} from './attemptBodies.ts';
import { connectionLinesOf } from './connections.ts';
import type { EvaluationRow } from './evaluations.ts';
import {
  GRADING,
  gradingMoney,
  type LedgerSums,
  type ModelCallRow,
  moneyOfAttempts,
  type ProgramCallFacts,
  programCallFacts,
  runMoney,
  tokenSums,
} from './modelCalls.ts';
import { loadRunData, scoreRows } from './reportQueries.ts';
import { armsOf, instanceIdsOf, type RunRow, runByName } from './runs.ts';
import {
  type AttemptRow,
  attemptById,
  attemptsOf,
  newestVerdict,
  plausibleReward,
  type TrialResultRow,
  WITH_RESULT,
} from './trials.ts';

export type ShownRun = Omit<RunRow, 'config' | 'manifest' | 'emit_empty'> & {
  /** "2/5"; null for a whole run. */
  readonly shard: string | null;
};
/** A trial with its newest attempt, which may still run, or may not be a result, until the trial is sealed. */
export interface ShownTrial
  extends Omit<
      TrialResultRow,
      'trial_id' | 'attempt_id' | 'attempts' | 'run' | 'patch_sha256' | 'evaluation_id'
    >,
    Pick<AttemptRow, 'exit_detail' | 'history'> {
  trial: number;
  attempt: number | null;
  /** Attempts made. */
  attempts: number;
  attempt_state: AttemptRow['state'] | null;
  started_at: string | null;
  ended_at: string | null;
  patch_chars: number | null;
  /** NULL where the suite gives none. */
  reward: number | null;
}
type AttemptMoney = LedgerSums & { readonly failedCalls: number };
export type ShownEvent = Omit<EventRow, 'run_id'>;
export interface TrialHeadRow
  extends Pick<
    TrialResultRow,
    | 'run_id'
    | 'run'
    | 'arm'
    | 'model'
    | 'epoch'
    | 'state'
    | 'not_run_reason'
    | 'instance_id'
    | 'repo'
    | 'difficulty'
  > {
  trial: number;
  imported: number;
  final_attempt_id: number | null;
  image: string;
  row: string;
}
export type ShownEvaluation = Omit<
  EvaluationRow,
  'run_id' | 'trial_id' | 'instance_id' | 'model' | 'spec_hash' | 'image_digest'
>;
export type ShownMessage = Omit<MessageRow, 'attempt_id'>;
export type ViewedCommand = Omit<CommandRow, 'attempt_id' | 'replaced_bytes' | 'transport' | 'started_at'>;
type CommandOutlineRow = Pick<
  CommandRow,
  'step' | 'message_seq' | 'exit_code' | 'timed_out' | 'duration_ms' | 'command'
>;
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
export type { ProgramCallFacts };

type ShownPhase = Omit<PhaseRow, 'attempt_id'>;

const RUN = raw(
  `id, name, status, created_at, finished_at, dataset_source, dataset_revision, dataset_hash, config_hash, budget_nano, imported,
  iif(json_valid(manifest), (manifest ->> '$.shard.number') || '/' || (manifest ->> '$.shard.of'), NULL) AS shard`,
);

// A trial that is not sealed shows its newest attempt, so that a live table shows steps and cost.
const TRIAL =
  raw(`SELECT t.id AS trial, t.run_id, i.instance_id, i.repo, i.difficulty, i.weight, a.name AS arm, a.model, t.epoch, t.position,
  t.state, t.not_run_reason, f.id AS attempt, (SELECT count(*) FROM attempts x WHERE x.trial_id = t.id) AS attempts,
  f.state AS attempt_state, f.started_at, f.ended_at, f.exit_reason, f.exit_class, f.exit_status, f.exit_detail, f.elapsed_ms,
  CASE WHEN f.state = 'running' THEN (SELECT count(*) FROM messages m WHERE m.attempt_id = f.id AND m.role = 'assistant') ELSE f.steps END AS steps,
  f.working_ms, f.patch_source, f.patch_state, length(f.model_patch) AS patch_chars, f.history, f.oom_kills, f.suspicion,
  e.outcome, e.resolved, e.resolved_strict, ${plausibleReward('e')}, e.suspicion AS grade_suspicion
FROM trials t
JOIN arms a ON a.id = t.arm_id
JOIN instances i ON i.id = t.instance_pk
LEFT JOIN attempts f ON f.id = CASE WHEN t.state = 'sealed' THEN t.final_attempt_id
  ELSE (SELECT max(x.id) FROM attempts x WHERE x.trial_id = t.id) END
LEFT JOIN evaluations e ON e.id = ${newestVerdict('f')}`);

/** Trials are chosen before they are joined: a page of a large run would join all its trials first. */
const onPage = (runId: number, limit: number, offset: number) =>
  raw(
    't.id IN (SELECT id FROM trials WHERE run_id = ? ORDER BY position, id LIMIT ? OFFSET ?)',
    runId,
    limit,
    offset,
  );

const EVALUATION =
  raw(`id, attempt_id, harness, outcome, resolved, resolved_strict, ${plausibleReward('evaluations')}, rewards, report, apply_method, exit_code,
  infra_reason, suspicion, error_message, network, source, started_at, duration_ms, patch_sha256`);

export type ViewerQueries = ReturnType<typeof viewerQueries>;

export const viewerQueries = (db: Store) => ({
  db,
  root: dirname(db.name),
  /** Changes whenever another connection commits: what live updates poll. */
  dataVersion: () => db.pragma('data_version', { simple: true }) as number,
  /** Changes with this connection's own writes too. */
  version: () =>
    `${db.pragma('data_version', { simple: true })} ${first(db)<{ n: number }>`SELECT total_changes() AS n`!.n}`,
  runData: (runId: number) => loadRunData(db, runId),
  scoreRows: (runId: number) => scoreRows(db, runId),
  moneyOf: (run: Pick<RunRow, 'id'>) => moneyOfAttempts(db, run.id),
  runMoney: (run: Pick<RunRow, 'id' | 'imported'>) => runMoney(db, run),

  runs: () => all(db)<ShownRun>`SELECT ${RUN} FROM runs ORDER BY id DESC`,
  run: (runId: number) => first(db)<ShownRun>`SELECT ${RUN} FROM runs WHERE id = ${runId}`,
  /** A manifest may name every instance of a large dataset: one of more bytes than `most` is left out. */
  runTexts: (runId: number, most: number) => first(db)<{ config: string; manifest: string }>`
    SELECT config, iif(octet_length(manifest) > ${most}, '', manifest) AS manifest FROM runs WHERE id = ${runId}`,
  runNamed: (name: string) => runByName(db, name),
  arms: (runId: number) => armsOf(db, runId),
  /** Changes when a finished run changes (a regrade, a resume), and is cheap to read: the key of cached summaries. */
  runSignature: (runId: number) => first(db)<{ sealed: number; evaluation: number | null }>`
    SELECT (SELECT count(*) FROM trials WHERE run_id = r.id AND state = 'sealed') AS sealed,
       (SELECT max(id) FROM evaluations WHERE run_id = r.id) AS evaluation FROM runs r WHERE r.id = ${runId}`,
  events: (runId: number, limit: number) => all(db)<ShownEvent>`
    SELECT seq, at, type, data FROM events WHERE run_id = ${runId} ORDER BY seq DESC LIMIT ${limit}`,
  newestOf: (runId: number, types: readonly string[]) => first(db)<ShownEvent>`
    SELECT seq, at, type, data FROM events WHERE run_id = ${runId} AND type IN (SELECT value FROM json_each(${JSON.stringify(types)}))
    ORDER BY seq DESC LIMIT 1`,
  newestEvent: () => first(db)<{ seq: number | null }>`SELECT max(seq) AS seq FROM events`,

  trials: (runId: number, limit: number, offset: number) => all(db)<ShownTrial>`
    ${TRIAL} WHERE ${onPage(runId, limit, offset)}
    ORDER BY t.position, t.id`,
  instanceIds: (runId: number) => instanceIdsOf(db, runId),
  /** The beginnings of the tasks of a page of trials. */
  taskBeginnings: (runId: number, limit: number, offset: number) => all(db)<{
    trial: number;
    begins: unknown;
  }>`
    SELECT t.id AS trial, CASE WHEN json_valid(i.row) THEN substr(json_extract(i.row, '$.problem_statement'), 1, 600) END AS begins
    FROM trials t JOIN instances i ON i.id = t.instance_pk
    WHERE ${onPage(runId, limit, offset)}`,
  trialsPlanned: (runId: number) => first(db)<{ n: number }>`
    SELECT count(*) AS n FROM trials WHERE run_id = ${runId}`,
  anyVerdict: (runId: number) => first(db)<{ outcome: string }>`
    SELECT e.outcome FROM ${raw(WITH_RESULT)} WHERE t.run_id = ${runId} AND e.id IS NOT NULL LIMIT 1`,
  history: (instanceId: string) => all(db)<ShownTrial & { run: string; created_at: string }>`
    SELECT h.*, r.name AS run, r.created_at FROM (${TRIAL} WHERE i.instance_id = ${instanceId}) h JOIN runs r ON r.id = h.run_id ORDER BY r.id, h.arm, h.epoch`,
  trialHead: (trialId: number) => first(db)<TrialHeadRow>`
    SELECT t.id AS trial, t.run_id, r.name AS run, r.imported, a.name AS arm, a.model, t.epoch, t.state, t.not_run_reason, t.final_attempt_id,
       i.instance_id, i.repo, i.difficulty, i.image, i.row
     FROM trials t JOIN runs r ON r.id = t.run_id JOIN arms a ON a.id = t.arm_id JOIN instances i ON i.id = t.instance_pk WHERE t.id = ${trialId}`,
  attemptsOf: (trialId: number) => attemptsOf(db, trialId),
  attemptIds: (runId: number) => all(db)<{ id: number }>`
    SELECT a.id FROM trials t JOIN attempts a ON a.trial_id = t.id WHERE t.run_id = ${runId} ORDER BY a.id`,
  attemptEnds: (runId: number) => all(db)<{ id: number; at: string }>`
    SELECT a.id, a.ended_at AS at FROM trials t JOIN attempts a ON a.trial_id = t.id WHERE t.run_id = ${runId} AND a.ended_at IS NOT NULL ORDER BY a.id`,
  evaluationsOf: (trialId: number) => all(db)<Omit<ShownEvaluation, 'log'>>`
    SELECT ${EVALUATION} FROM evaluations WHERE trial_id = ${trialId} ORDER BY id`,
  evaluation: (id: number) => first(db)<ShownEvaluation>`
    SELECT ${EVALUATION}, log FROM evaluations WHERE id = ${id}`,

  attempt: (attemptId: number) => attemptById(db, attemptId),
  cost: (attemptId: number) => first(db)<AttemptMoney>`
    SELECT c.cost_nano AS costNano, c.unknown_calls AS unknownCalls, c.calls,
       (SELECT count(*) FROM model_calls f WHERE f.attempt_id = c.attempt_id AND f.state <> 'ok') AS failedCalls,
       ${raw(tokenSums((column) => `c.${column}`))} FROM attempt_costs c WHERE c.attempt_id = ${attemptId}`,
  connections: (attemptId: number) => connectionLinesOf(db, attemptId),
  engineStays: (attemptId: number) => all(db)<{
    engine: string;
    beganAt: string;
    endedAt: string | null;
    how: string | null;
  }>`
    SELECT engine, began_at AS beganAt, ended_at AS endedAt, how FROM leases WHERE attempt_id = ${attemptId} ORDER BY id`,
  messageOutline: (attemptId: number) => all(db)<
    Pick<ShownMessage, 'seq' | 'role' | 'created_at'> & { chars: number; head: string }
  >`
    SELECT seq, role, length(content) AS chars, substr(content, 1, 64) AS head, created_at FROM message_texts WHERE attempt_id = ${attemptId} ORDER BY seq`,
  messages: (attemptId: number, from: number, to: number) =>
    messagesOf(db, attemptId, raw('seq >= ? AND seq < ?', from, to)),
  commandOutline: (attemptId: number) => all(db)<CommandOutlineRow>`
    SELECT step, message_seq, exit_code, timed_out, duration_ms, substr(command, 1, 6000) AS command FROM commands WHERE attempt_id = ${attemptId} ORDER BY step, idx`,
  commands: (attemptId: number, from: number, to: number) =>
    all(db)<StoredCommand<ViewedCommand>>`
    SELECT step, idx, message_seq, command, output, output_bytes, exit_code, timed_out, total_bytes, omitted_bytes, oom_killed, duration_ms
     FROM commands WHERE attempt_id = ${attemptId} AND message_seq >= ${from} AND message_seq < ${to} ORDER BY step, idx`.map(
      wholeCommand<ViewedCommand>,
    ),
  /** The model's answers, where the record holds no commands: records of other tools. */
  answers: (attemptId: number) => messagesOf(db, attemptId, raw(`role = 'assistant'`)),
  calls: (attemptId: number) => all(db)<CallRow>`
    SELECT ${raw(CALL.join(', '))} FROM model_calls WHERE attempt_id = ${attemptId} AND label IS NOT ${GRADING} ORDER BY step, try, id`,
  /** Money of the model calls of its tests. */
  grading: (attemptId: number) => gradingMoney(db, attemptId),
  /** Calls of an installed program; the built-in agent has none. */
  callsOfProgram: (attemptId: number) => all(db)<CallRow & { call: number }>`
    SELECT ${raw(CALL.join(', '))}, call FROM model_calls WHERE attempt_id = ${attemptId} AND call IS NOT NULL ORDER BY id`,
  phases: (attemptId: number) => all(db)<ShownPhase>`
    SELECT seq, name, offset_ms, duration_ms FROM phases WHERE attempt_id = ${attemptId} ORDER BY seq`,
  programCalls: (attemptId: number) => programCallFacts(db, attemptId),
});
