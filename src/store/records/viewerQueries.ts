/**
 * What the viewer reads: read-only SQL over a results root, one function a question. Rows come back as they are stored;
 * src/viewer turns them into documents. Nothing here writes, so it is safe beside a run that does.
 */
import type { Database } from 'better-sqlite3';
import type { EvaluationRow as StoredEvaluation } from './evaluations.ts';
import type { CommandRow as StoredCommand } from './steps.ts';
import type { AttemptRow } from './trials.ts';

export interface RunRow {
  id: number;
  name: string;
  status: string;
  created_at: string;
  finished_at: string | null;
  dataset_source: string;
  dataset_revision: string | null;
  dataset_hash: string;
  config_hash: string;
  budget_nano: number | null;
  imported: number;
}
export interface ArmRow {
  id: number;
  run_id: number;
  name: string;
  model: string;
}
export interface TrialRow {
  trial: number;
  run_id: number;
  instance_id: string;
  repo: string;
  difficulty: string;
  weight: number;
  arm: string;
  model: string;
  epoch: number;
  position: number;
  state: string;
  not_run_reason: string | null;
  attempt: number | null;
  attempts: number;
  attempt_state: string | null;
  started_at: string | null;
  ended_at: string | null;
  exit_reason: string | null;
  exit_class: string | null;
  exit_status: string | null;
  exit_detail: string | null;
  steps: number | null;
  elapsed_ms: number | null;
  working_ms: number | null;
  patch_source: string | null;
  patch_state: string | null;
  patch_chars: number | null;
  history: string | null;
  oom_kills: number | null;
  suspicion: string | null;
  outcome: string | null;
  resolved: number | null;
  resolved_strict: number | null;
  grade_suspicion: string | null;
}
export interface CostRow {
  attempt_id: number;
  calls: number;
  failed_calls: number;
  cost_nano: number | null;
  unknown_calls: number;
  input_tokens: number | null;
  cache_read_tokens: number | null;
  cache_write_tokens: number | null;
  output_tokens: number | null;
  reasoning_tokens: number | null;
}
export interface SlotRow {
  attempt: number;
  trial: number;
  instance_id: string;
  arm: string;
  epoch: number;
  slot: number | null;
  started_at: string;
  /** Messages of the assistant so far: `attempts.steps` is written at the end only. */
  steps: number;
  phase: string | null;
  phase_offset_ms: number | null;
}
export interface EventRow {
  seq: number;
  at: string;
  type: string;
  data: string;
}
export interface TrialHeadRow {
  trial: number;
  run_id: number;
  run: string;
  arm: string;
  model: string;
  epoch: number;
  state: string;
  not_run_reason: string | null;
  final_attempt_id: number | null;
  instance_id: string;
  repo: string;
  difficulty: string;
  image: string;
  row: string;
}
export type EvaluationRow = Omit<
  StoredEvaluation,
  'run_id' | 'trial_id' | 'instance_id' | 'model' | 'spec_hash' | 'image_digest'
>;
export interface MessageRow {
  seq: number;
  role: string;
  content: string;
  data: string;
  created_at: string;
}
export type CommandRow = Omit<StoredCommand, 'attempt_id' | 'replaced_bytes' | 'transport' | 'started_at'>;
export interface CommandOutlineRow {
  step: number;
  message_seq: number | null;
  exit_code: number;
  timed_out: number;
  duration_ms: number;
}
export interface CallRow {
  step: number;
  try: number;
  state: string;
  started_at: string;
  latency_ms: number | null;
  status_code: number | null;
  error_code: string | null;
  model_answered: string | null;
  finish_reason: string | null;
  input_tokens: number | null;
  cache_read_tokens: number | null;
  cache_write_tokens: number | null;
  output_tokens: number | null;
  reasoning_tokens: number | null;
  cost_nano: number | null;
}
export interface PhaseRow {
  seq: number;
  name: string;
  offset_ms: number;
  duration_ms: number | null;
}

const RUN = `SELECT id, name, status, created_at, finished_at, dataset_source, dataset_revision, dataset_hash, config_hash,
  budget_nano, imported FROM runs`;

// A trial that is not sealed shows its newest attempt, so that a live table shows steps and cost.
const TRIAL = `SELECT t.id AS trial, t.run_id, i.instance_id, i.repo, i.difficulty, i.weight, a.name AS arm, a.model, t.epoch, t.position,
  t.state, t.not_run_reason, f.id AS attempt, (SELECT count(*) FROM attempts x WHERE x.trial_id = t.id) AS attempts,
  f.state AS attempt_state, f.started_at, f.ended_at, f.exit_reason, f.exit_class, f.exit_status, f.exit_detail, f.elapsed_ms,
  CASE WHEN f.state = 'running' THEN (SELECT count(*) FROM messages m WHERE m.attempt_id = f.id AND m.role = 'assistant') ELSE f.steps END AS steps,
  f.working_ms, f.patch_source, f.patch_state, length(f.model_patch) AS patch_chars, f.history, f.oom_kills, f.suspicion,
  e.outcome, e.resolved, e.resolved_strict, e.suspicion AS grade_suspicion
FROM trials t
JOIN arms a ON a.id = t.arm_id
JOIN instances i ON i.id = t.instance_pk
LEFT JOIN attempts f ON f.id = CASE WHEN t.state = 'sealed' THEN t.final_attempt_id
  ELSE (SELECT max(x.id) FROM attempts x WHERE x.trial_id = t.id) END
LEFT JOIN evaluations e ON e.id = (
  SELECT max(v.id) FROM evaluations v WHERE v.trial_id = t.id AND v.patch_sha256 = f.patch_sha256)`;

const COST = `SELECT attempt_id, count(*) AS calls, sum(state = 'failed') AS failed_calls, sum(cost_nano) AS cost_nano,
  sum(state <> 'in_flight' AND cost_nano IS NULL) AS unknown_calls, sum(input_tokens) AS input_tokens,
  sum(cache_read_tokens) AS cache_read_tokens, sum(cache_write_tokens) AS cache_write_tokens,
  sum(output_tokens) AS output_tokens, sum(reasoning_tokens) AS reasoning_tokens
FROM model_calls WHERE attempt_id = ? GROUP BY attempt_id`;

const EVALUATION = `SELECT id, attempt_id, dialect, outcome, resolved, resolved_strict, report, log, apply_method, exit_code,
  infra_reason, suspicion, error_message, network, source, started_at, duration_ms, patch_sha256 FROM evaluations`;

export interface ViewerQueries {
  /** Changes whenever another connection commits: what live updates poll. */
  dataVersion(): number;
  lastEvent(): number;
  runs(): RunRow[];
  run(id: number): (RunRow & { config: string; manifest: string }) | undefined;
  runByName(name: string): number | undefined;
  arms(runId: number): ArmRow[];
  trialCount(runId: number): number;
  isGraded(runId: number): boolean;
  /** Cheap to read, changes when a finished run changes (a regrade, a resume): the key of cached summaries. */
  runSignature(runId: number): string;
  phaseTotals(attemptId: number): { name: string; n: number; ms: number }[];
  trials(runId: number, limit: number, offset: number): TrialRow[];
  history(instanceId: string): (TrialRow & { run: string; created_at: string })[];
  attemptIds(runId: number): { id: number; trial_id: number; state: string; ended_at: string | null }[];
  cost(attemptId: number): CostRow | undefined;
  slots(runId: number): SlotRow[];
  events(runId: number, limit: number): EventRow[];
  lastEventsByType(runId: number): EventRow[];
  trialHead(trialId: number): TrialHeadRow | undefined;
  attemptsOf(trialId: number): AttemptRow[];
  attempt(id: number): AttemptRow | undefined;
  evaluationsOf(trialId: number): Omit<EvaluationRow, 'log'>[];
  evaluation(id: number): EvaluationRow | undefined;
  messageOutline(attemptId: number): { seq: number; role: string; chars: number; created_at: string }[];
  messages(attemptId: number, from: number, to: number): MessageRow[];
  commandOutline(attemptId: number): CommandOutlineRow[];
  commands(attemptId: number, fromSeq: number, toSeq: number): CommandRow[];
  calls(attemptId: number): CallRow[];
  phases(attemptId: number): PhaseRow[];
  instanceIds(): string[];
}

export function viewerQueries(db: Database): ViewerQueries {
  const all = <T>(sql: string) => {
    const statement = db.prepare(sql);
    return (...args: unknown[]) => statement.all(...args) as T[];
  };
  const one = <T>(sql: string) => {
    const statement = db.prepare(sql);
    return (...args: unknown[]) => statement.get(...args) as T | undefined;
  };
  const runByName = one<{ id: number }>('SELECT id FROM runs WHERE name = ?');
  const lastEvent = one<{ seq: number | null }>('SELECT max(seq) AS seq FROM events');
  const trialCount = one<{ n: number }>('SELECT count(*) AS n FROM trials WHERE run_id = ?');
  const anyVerdict = one<{ n: number }>(
    `SELECT 1 AS n FROM (${TRIAL} WHERE t.run_id = ?) WHERE outcome IS NOT NULL LIMIT 1`,
  );
  const signature = one<{ sealed: number; evaluation: number | null }>(
    `SELECT sum(state = 'sealed') AS sealed, (SELECT max(id) FROM evaluations WHERE run_id = ?) AS evaluation FROM trials WHERE run_id = ?`,
  );
  const instanceIds = all<{ id: string }>('SELECT DISTINCT instance_id AS id FROM instances ORDER BY 1');
  const evaluationsOf = all<EvaluationRow>(
    `${EVALUATION.replace(' log,', ' NULL AS log,')} WHERE trial_id = ? ORDER BY id`,
  );
  return {
    dataVersion: () => db.pragma('data_version', { simple: true }) as number,
    lastEvent: () => lastEvent()?.seq ?? 0,
    runs: all(`${RUN} ORDER BY id DESC`),
    run: one(`${RUN.replace(' FROM', ', config, manifest FROM')} WHERE id = ?`),
    runByName: (name) => runByName(name)?.id,
    arms: all('SELECT id, run_id, name, model FROM arms WHERE run_id = ? ORDER BY position'),
    trialCount: (runId) => trialCount(runId)?.n ?? 0,
    isGraded: (runId) => anyVerdict(runId) !== undefined,
    trials: all(`${TRIAL} WHERE t.run_id = ? ORDER BY t.position, t.id LIMIT ? OFFSET ?`),
    history: all(
      `SELECT h.*, r.name AS run, r.created_at FROM (${TRIAL} WHERE i.instance_id = ?) h JOIN runs r ON r.id = h.run_id ORDER BY r.id, h.arm, h.epoch`,
    ),
    runSignature: (runId) => JSON.stringify(signature(runId, runId)),
    phaseTotals: all(
      'SELECT name, count(*) AS n, coalesce(sum(duration_ms), 0) AS ms FROM phases WHERE attempt_id = ? AND offset_ms >= 0 GROUP BY name',
    ),
    attemptIds: all(
      'SELECT a.id, a.trial_id, a.state, a.ended_at FROM attempts a JOIN trials t ON t.id = a.trial_id WHERE t.run_id = ? ORDER BY a.id',
    ),
    cost: one(COST),
    slots: all(
      `SELECT a.id AS attempt, t.id AS trial, i.instance_id, ar.name AS arm, t.epoch, a.slot, a.started_at,
         (SELECT count(*) FROM messages m WHERE m.attempt_id = a.id AND m.role = 'assistant') AS steps,
         p.name AS phase, p.offset_ms AS phase_offset_ms
       FROM trials t JOIN attempts a ON a.trial_id = t.id AND a.state = 'running'
       JOIN arms ar ON ar.id = t.arm_id JOIN instances i ON i.id = t.instance_pk
       LEFT JOIN phases p ON p.attempt_id = a.id AND p.seq = (SELECT max(q.seq) FROM phases q WHERE q.attempt_id = a.id)
       WHERE t.run_id = ? ORDER BY a.slot, a.id`,
    ),
    events: all('SELECT seq, at, type, data FROM events WHERE run_id = ? ORDER BY seq DESC LIMIT ?'),
    lastEventsByType: all(
      'SELECT max(seq) AS seq, at, type, data FROM events WHERE run_id = ? GROUP BY type ORDER BY 1 DESC',
    ),
    trialHead: one(
      `SELECT t.id AS trial, t.run_id, r.name AS run, a.name AS arm, a.model, t.epoch, t.state, t.not_run_reason, t.final_attempt_id,
         i.instance_id, i.repo, i.difficulty, i.image, i.row
       FROM trials t JOIN runs r ON r.id = t.run_id JOIN arms a ON a.id = t.arm_id JOIN instances i ON i.id = t.instance_pk WHERE t.id = ?`,
    ),
    attemptsOf: all('SELECT * FROM attempts WHERE trial_id = ? ORDER BY number'),
    attempt: one('SELECT * FROM attempts WHERE id = ?'),
    evaluationsOf,
    evaluation: one(`${EVALUATION} WHERE id = ?`),
    messageOutline: all(
      'SELECT seq, role, length(content) AS chars, created_at FROM messages WHERE attempt_id = ? ORDER BY seq',
    ),
    messages: all(
      'SELECT seq, role, content, data, created_at FROM messages WHERE attempt_id = ? AND seq >= ? AND seq < ? ORDER BY seq',
    ),
    commandOutline: all(
      'SELECT step, message_seq, exit_code, timed_out, duration_ms FROM commands WHERE attempt_id = ? ORDER BY step, idx',
    ),
    commands: all(
      `SELECT step, idx, message_seq, command, output, exit_code, timed_out, total_bytes, omitted_bytes, oom_killed, duration_ms
       FROM commands WHERE attempt_id = ? AND message_seq >= ? AND message_seq < ? ORDER BY step, idx`,
    ),
    calls: all(
      `SELECT step, try, state, started_at, latency_ms, status_code, error_code, model_answered, finish_reason, input_tokens,
         cache_read_tokens, cache_write_tokens, output_tokens, reasoning_tokens, cost_nano
       FROM model_calls WHERE attempt_id = ? ORDER BY step, try, id`,
    ),
    phases: all('SELECT seq, name, offset_ms, duration_ms FROM phases WHERE attempt_id = ? ORDER BY seq'),
    instanceIds: () => instanceIds().map((row) => row.id),
  };
}
