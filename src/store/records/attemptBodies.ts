/**
 * The large parts of attempts, read by exports: predictions, messages and commands for trajectories, logs and reports of the grader.
 * Each function reads one at a time.
 */

import type { TrajectorySource } from '../../formats/trajectory.ts';
import type { ExitClass, ExitReason } from '../../outcome.ts';
import { pack, unpackBytes, unpackText, withContent, withoutContent } from '../longText.ts';
import type { Store } from '../open.ts';
import { all, cell, change, column, first, insert, put, raw, storedJson } from '../query.ts';
import { fromParts, inOutputParts } from '../repeatedOutput.ts';
import { inTurn } from '../writing.ts';
import { moneyOfAttempt, type ProgramCallFacts, programCallFacts } from './modelCalls.ts';
import { type StoredArm, storedArm } from './runs.ts';

/** The prediction of a trial's final attempt, of any exit class. */
export interface PredictionRow {
  readonly arm: string;
  readonly model: string;
  readonly instanceId: string;
  readonly epoch: number;
  readonly state: string;
  readonly exitClass: ExitClass | null;
  readonly exitReason: ExitReason | null;
  readonly exitStatus: string | null;
  readonly notRunReason: string | null;
  readonly modelPatch: string | null;
}

export const predictionRows = (db: Store, runId: number): PredictionRow[] =>
  all(db)`
    SELECT m.name AS arm, m.model, i.instance_id AS instanceId, t.epoch, t.state, f.exit_class AS exitClass, f.exit_reason AS exitReason,
         f.exit_status AS exitStatus, t.not_run_reason AS notRunReason, f.model_patch AS modelPatch
       FROM trials t JOIN arms m ON m.id = t.arm_id JOIN instances i ON i.id = t.instance_pk
       LEFT JOIN attempts f ON f.id = t.final_attempt_id WHERE t.run_id = ${runId} ORDER BY t.position`;

/** Everything a trajectory file of one attempt is made of. */
export interface AttemptRecord extends TrajectorySource {
  readonly attemptId: number;
  readonly config: StoredArm;
  readonly messages: readonly MessageRow[];
  readonly commands: readonly CommandRow[];
  readonly programCalls: readonly ProgramCallFacts[];
}

export function attemptRecord(db: Store, attemptId: number): AttemptRecord | undefined {
  type Row = Omit<AttemptRecord, 'final' | 'config'> & { final: number; config: string };
  const row = first(db)<Row>`
    SELECT a.id AS attemptId, a.number, t.final_attempt_id = a.id AS final, r.name AS run, m.name AS arm,
      i.instance_id AS instanceId, t.epoch, a.started_at AS startedAt, a.ended_at AS endedAt, a.exit_reason AS exitReason,
      a.exit_class AS exitClass, a.exit_status AS exitStatus, a.error_message AS errorMessage, a.submission, a.steps,
      coalesce(a.config, m.config) AS config
    FROM attempts a JOIN trials t ON t.id = a.trial_id JOIN arms m ON m.id = t.arm_id
    JOIN instances i ON i.id = t.instance_pk JOIN runs r ON r.id = t.run_id
    WHERE a.id = ${attemptId}`;
  if (!row) return undefined;
  const { costNano, unknownCalls } = moneyOfAttempt(db, attemptId) ?? { costNano: 0, unknownCalls: 0 };
  const commands = commandsOf(db, attemptId);
  return {
    ...row,
    costNano,
    unknownCalls,
    final: row.final === 1,
    config: storedArm(row),
    messages: messagesOf(db, attemptId, undefined, commands),
    commands,
    programCalls: programCallFacts(db, attemptId),
  };
}

/** `changed`: a call or phase came after its end. */
export const endedAttempts = (db: Store, runId: number): { id: number; final: 0 | 1; changed: 0 | 1 }[] =>
  all(db)`
    SELECT a.id, t.final_attempt_id IS a.id AS final, NOT EXISTS (SELECT 1 FROM attempt_sums s WHERE s.attempt_id = a.id) AS changed
    FROM attempts a JOIN trials t ON t.id = a.trial_id WHERE t.run_id = ${runId} AND a.state = 'ended' ORDER BY t.position, a.number`;

/** Ended attempts of a run, one at a time: bodies are large. */
export function* attemptRecords(db: Store, runId: number): Generator<AttemptRecord> {
  const ids = column(db)<number>`
    SELECT a.id FROM attempts a JOIN trials t ON t.id = a.trial_id WHERE t.run_id = ${runId} AND a.state = 'ended' ORDER BY t.position, a.number`;
  for (const id of ids) yield attemptRecord(db, id)!;
}

/** The grader's report and log of one trial's final patch, with the row's date, for submissions. */
export interface GradingBody {
  readonly trialId: number;
  readonly instanceId: string;
  readonly modelPatch: string;
  /** The creation time in the dataset row; '' when it has none. */
  readonly createdAt: string;
  /** The harness's report.json, as text. */
  readonly report: string | null;
  /** Test output, gzip. */
  readonly log: Uint8Array | null;
}

/** One at a time: logs are large. */
export function* gradingBodies(db: Store, trialIds: readonly number[]): Generator<GradingBody> {
  for (const id of trialIds)
    yield first(db)<GradingBody>`
      SELECT v.trial_id AS trialId, v.instance_id AS instanceId, coalesce(f.model_patch, '') AS modelPatch,
        coalesce(json_extract(i.row, '$.created_at'), '') AS createdAt, e.report, e.log
      FROM trial_results v JOIN trials t ON t.id = v.trial_id JOIN instances i ON i.id = t.instance_pk
      LEFT JOIN attempts f ON f.id = v.attempt_id LEFT JOIN evaluations e ON e.id = v.evaluation_id
      WHERE v.trial_id = ${id}`!;
}

/** The part of the manifest that is known only later: which models answered, which images ran, what was changed. */
export function observedIn(db: Store, runId: number) {
  const ofRun = raw('JOIN trials t ON t.id = a.trial_id WHERE t.run_id = ?', runId);
  const countsOf = (name: 'history' | 'transport') =>
    Object.fromEntries(
      all(db)<{ name: string; n: number }>`
        SELECT a.${raw(name)} AS name, count(*) AS n FROM attempts a ${ofRun} AND a.${raw(name)} IS NOT NULL
        GROUP BY 1 ORDER BY 1`.map((r) => [r.name, r.n]),
    );
  const images = all(db)<{ id: string; digest: string }>`
    SELECT DISTINCT i.instance_id AS id, a.image_digest AS digest FROM attempts a JOIN trials t ON t.id = a.trial_id
    JOIN instances i ON i.id = t.instance_pk WHERE t.run_id = ${runId} AND a.image_digest IS NOT NULL ORDER BY i.position`;
  return {
    models: all(db)<{ asked: string; answered: string | null; fingerprint: string | null; calls: number }>`
      SELECT c.model_asked AS asked, c.model_answered AS answered, c.fingerprint, count(*) AS calls
      FROM model_calls c JOIN attempts a ON a.id = c.attempt_id ${ofRun} AND c.state = 'ok'
      GROUP BY 1, 2, 3 ORDER BY 1, 2, 3`,
    price_versions: column(db)<string>`
      SELECT DISTINCT c.price_version FROM model_calls c JOIN attempts a ON a.id = c.attempt_id ${ofRun}
      AND c.price_version IS NOT NULL ORDER BY 1`,
    image_digests: Object.fromEntries(
      [...Map.groupBy(images, (r) => r.id)].map(([id, rows]) => [id, rows.map((r) => r.digest)]),
    ),
    histories: countsOf('history'),
    transports: countsOf('transport'),
    harnesses: column(db)<string>`
      SELECT DISTINCT harness FROM evaluations WHERE run_id = ${runId} ORDER BY 1`,
    /** Trials that took more than one attempt, with why each earlier one ended. */
    tried_again: all(db)<{ arm: string; instance_id: string; epoch: number; ended: string }>`
      SELECT m.name AS arm, i.instance_id, t.epoch, json_group_array(a.exit_reason) AS ended
      FROM attempts a JOIN trials t ON t.id = a.trial_id JOIN arms m ON m.id = t.arm_id
      JOIN instances i ON i.id = t.instance_pk WHERE t.run_id = ${runId} AND a.state = 'ended'
      AND a.id IS NOT t.final_attempt_id GROUP BY t.id ORDER BY t.position`.map((r) => ({
      ...r,
      ended: JSON.parse(r.ended) as string[],
    })),
    verdicts: all(db)<{ source: string; network: string | null; count: number }>`
      SELECT source, network, count(*) AS count FROM evaluations WHERE run_id = ${runId} GROUP BY 1, 2 ORDER BY 1, 2`,
    changes: all(db)<{ at: string; data: string }>`
      SELECT at, data FROM events WHERE run_id = ${runId} AND type IN ('config_changed', 'limit_changed')
      ORDER BY seq`.map((r) => ({ at: r.at, change: storedJson(r.data) ?? null })),
  };
}

// Messages, commands and phases of an attempt, written as they happen.

export interface MessageRow {
  attempt_id: number;
  seq: number;
  role: string;
  content: string;
  data: string;
  created_at: string;
}

/** A command of the record, with what it printed. */
export interface PrintedCommand {
  readonly id: number;
  readonly output: Buffer;
}

/** `short`: JSON of the same message whose content is 0. `shows`: the command whose output it shows. */
export function insertMessage(db: Store, row: MessageRow, short?: string, shows?: PrintedCommand): number {
  const parts = shows && inOutputParts(row.content, shows.output);
  const content = pack(parts ?? row.content);
  const data = pack(short === undefined ? row.data : withoutContent(row.data, short, row.content));
  const stored = {
    ...row,
    content: content.value,
    content_bytes: content.bytes,
    data: data.value,
    data_bytes: data.bytes,
    output_id: parts === undefined ? null : (shows?.id ?? null),
  };
  return inTurn(db, () => put(db, 'messages', stored));
}

/** A row as it lies in the table. */
type StoredMessage = Omit<MessageRow, 'content' | 'data'> & {
  content: string | Uint8Array;
  data: string | Uint8Array;
  content_bytes: number | null;
  data_bytes: number | null;
  output_id: number | null;
};

/** The attempt's messages, or those that `which` says. Outputs that `commands` hold are not read again. */
export function messagesOf(
  db: Store,
  attemptId: number,
  which = raw('true'),
  commands: readonly PrintedCommand[] = [],
): MessageRow[] {
  const known = new Map(commands.map(({ id, output }) => [id, output]));
  const rows = all(db)<StoredMessage>`
    SELECT * FROM messages WHERE attempt_id = ${attemptId} AND ${which} ORDER BY seq`;
  return rows.map(({ content_bytes, data_bytes, output_id, ...row }) => {
    const text = unpackText(row.content, content_bytes);
    const output = output_id === null ? undefined : (known.get(output_id) ?? outputOf(db, output_id));
    const content = output === undefined ? text : fromParts(text, output);
    return { ...row, content, data: withContent(unpackText(row.data, data_bytes), content) };
  });
}

/** Those of its messages with numbers in a range. */
export const messagesBetween = (db: Store, attemptId: number, from: number, to: number): MessageRow[] =>
  messagesOf(db, attemptId, raw('seq >= ? AND seq < ?', from, to));

/** The model's answers, where the record holds no commands: records of other tools. */
export const answersOf = (db: Store, attemptId: number): MessageRow[] =>
  messagesOf(db, attemptId, raw(`role = 'assistant'`));

export type MessageHead = Pick<MessageRow, 'seq' | 'role' | 'created_at'> & { chars: number; head: string };

export const messageHeads = (db: Store, attemptId: number): MessageHead[] =>
  all(db)`
    SELECT seq, role, length(content) AS chars, substr(content, 1, 64) AS head, created_at FROM message_texts WHERE attempt_id = ${attemptId} ORDER BY seq`;

function outputOf(db: Store, commandId: number): Buffer | undefined {
  const row = first(db)<{ output: Uint8Array; output_bytes: number | null }>`
    SELECT output, output_bytes FROM commands WHERE id = ${commandId}`;
  return row && unpackBytes(row.output, row.output_bytes);
}

export interface CommandRow {
  attempt_id: number;
  step: number;
  idx: number;
  message_seq: number | null;
  command: string;
  output: Buffer;
  exit_code: number | null;
  timed_out: number;
  total_bytes: number;
  omitted_bytes: number;
  replaced_bytes: number;
  oom_killed: number;
  transport: string;
  started_at: string;
  duration_ms: number;
}

export function insertCommand(db: Store, row: CommandRow): number {
  const output = pack(row.output);
  const stored = { ...row, output: output.value, output_bytes: output.bytes };
  return inTurn(db, () => insert(db, 'commands', stored));
}

export const linkCommand = (db: Store, commandId: number, messageSeq: number): number =>
  inTurn(db, () => change(db)`UPDATE commands SET message_seq = ${messageSeq} WHERE id = ${commandId}`);

type KeptCommand = CommandRow & { id: number };

/** All of them, or those that `which` says. */
const commandsThat = (db: Store, attemptId: number, which = raw('true')): KeptCommand[] =>
  all(db)<KeptCommand & { output_bytes: number | null }>`
    SELECT * FROM commands WHERE attempt_id = ${attemptId} AND ${which} ORDER BY step, idx, id`.map(
    ({ output_bytes, ...row }) => ({ ...row, output: unpackBytes(row.output, output_bytes) }),
  );

export const commandsOf = (db: Store, attemptId: number): KeptCommand[] => commandsThat(db, attemptId);

/** Those that messages with numbers in a range show. */
export const commandsBetween = (db: Store, attemptId: number, from: number, to: number): KeptCommand[] =>
  commandsThat(db, attemptId, raw('message_seq >= ? AND message_seq < ?', from, to));

type Shown = 'step' | 'message_seq' | 'exit_code' | 'timed_out' | 'duration_ms' | 'command';

/** `command`: its beginning. */
export const commandHeads = (db: Store, attemptId: number) =>
  all(db)<Pick<CommandRow, Shown>>`
    SELECT step, message_seq, exit_code, timed_out, duration_ms, substr(command, 1, 6000) AS command FROM commands WHERE attempt_id = ${attemptId} ORDER BY step, idx`;

export interface PhaseRow {
  attempt_id: number;
  seq: number;
  name: string;
  offset_ms: number;
  duration_ms: number | null;
}

export const beginPhase = (db: Store, row: Omit<PhaseRow, 'duration_ms'>): number =>
  inTurn(db, () => put(db, 'phases', row));

export const phaseRowsOf = (db: Store, attemptId: number): Omit<PhaseRow, 'attempt_id'>[] =>
  all(db)`SELECT seq, name, offset_ms, duration_ms FROM phases WHERE attempt_id = ${attemptId} ORDER BY seq`;

/** Where it was, in a run on several engines. */
export const engineStays = (db: Store, attemptId: number) =>
  all(db)<{ engine: string; beganAt: string; endedAt: string | null; how: string | null }>`
    SELECT engine, began_at AS beganAt, ended_at AS endedAt, how FROM leases WHERE attempt_id = ${attemptId} ORDER BY id`;

/** How long a trial waited for its slot before the attempt began. The time lies before the attempt's clock and counts against no limit. */
export const recordQueue = (db: Store, attemptId: number, waitedMs: number): number =>
  insert(db, 'phases', {
    attempt_id: attemptId,
    seq: -1,
    name: 'queue',
    offset_ms: -waitedMs,
    duration_ms: waitedMs,
  });

export const endPhase = (db: Store, attemptId: number, seq: number, durationMs: number): number =>
  inTurn(
    db,
    () => change(db)`
    UPDATE phases SET duration_ms = ${durationMs} WHERE attempt_id = ${attemptId} AND seq = ${seq}`,
  );

export interface EventRow {
  seq: number;
  run_id: number;
  at: string;
  type: string;
  data: string;
}

export const insertEvent = (db: Store, runId: number, at: string, type: string, data: object): number =>
  inTurn(db, () => insert(db, 'events', { run_id: runId, at, type, data: JSON.stringify(data) }));

/** The newest of a run first. */
export const newestEvents = (db: Store, runId: number, limit: number) =>
  all(db)<Omit<EventRow, 'run_id'>>`
    SELECT seq, at, type, data FROM events WHERE run_id = ${runId} ORDER BY seq DESC LIMIT ${limit}`;

export const newestOf = (db: Store, runId: number, types: readonly string[]) =>
  first(db)<Omit<EventRow, 'run_id'>>`
    SELECT seq, at, type, data FROM events WHERE run_id = ${runId} AND type IN (SELECT value FROM json_each(${JSON.stringify(types)}))
    ORDER BY seq DESC LIMIT 1`;

/** Of all runs. */
export const newestEvent = (db: Store): number => cell(db)`SELECT ifnull(max(seq), 0) FROM events`;
