/**
 * The large parts of attempts, read by exports: predictions, messages and commands for trajectories, logs and reports of the grader.
 * Each function reads one at a time.
 */
import type { TrajectorySource } from '../../formats/trajectory.ts';
import type { ExitClass, ExitReason } from '../../outcome.ts';
import { type Store, statement } from '../open.ts';
import { all, first, storedJson } from '../query.ts';
import { type ProgramCallFacts, programCallFacts } from './modelCalls.ts';
import { type StoredArm, storedArm } from './runs.ts';
import { type CommandRow, commandsOf, type MessageRow, messagesOf } from './steps.ts';

type Row = Record<string, unknown>;

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
  all(
    db,
    `SELECT m.name AS arm, m.model, i.instance_id AS instanceId, t.epoch, t.state, f.exit_class AS exitClass, f.exit_reason AS exitReason,
         f.exit_status AS exitStatus, t.not_run_reason AS notRunReason, f.model_patch AS modelPatch
       FROM trials t JOIN arms m ON m.id = t.arm_id JOIN instances i ON i.id = t.instance_pk
       LEFT JOIN attempts f ON f.id = t.final_attempt_id WHERE t.run_id = ? ORDER BY t.position`,
    runId,
  );

/** Everything a trajectory file of one attempt is made of. */
export interface AttemptRecord extends TrajectorySource {
  readonly attemptId: number;
  readonly config: StoredArm;
  readonly messages: readonly MessageRow[];
  readonly commands: readonly CommandRow[];
  readonly programCalls: readonly ProgramCallFacts[];
}

const ATTEMPTS = `SELECT a.id AS attemptId, a.number, t.final_attempt_id = a.id AS final, r.name AS run, m.name AS arm, i.instance_id AS instanceId, t.epoch,
    a.started_at AS startedAt, a.ended_at AS endedAt, a.exit_reason AS exitReason, a.exit_class AS exitClass, a.exit_status AS exitStatus,
    a.error_message AS errorMessage, a.submission, a.steps, CASE WHEN c.calls IS NULL THEN 0 ELSE c.cost_nano END AS costNano,
    coalesce(c.unknown_calls, 0) AS unknownCalls, coalesce(a.config, m.config) AS config
  FROM attempts a JOIN trials t ON t.id = a.trial_id JOIN arms m ON m.id = t.arm_id JOIN instances i ON i.id = t.instance_pk JOIN runs r ON r.id = t.run_id LEFT JOIN (SELECT * FROM attempt_costs WHERE attempt_id = @id) c ON true`;

const recordOf = (db: Store, row: Row): AttemptRecord => ({
  ...(row as unknown as AttemptRecord),
  final: row.final === 1,
  config: storedArm(row as { config: string }),
  messages: messagesOf(db, row.attemptId as number),
  commands: commandsOf(db, row.attemptId as number),
  programCalls: programCallFacts(db, row.attemptId as number),
});

export function attemptRecord(db: Store, attemptId: number): AttemptRecord | undefined {
  // Costs of this attempt alone: joined by its id, SQLite would add up those of the whole database first.
  const row = first<Row>(db, `${ATTEMPTS} WHERE a.id = @id`, { id: attemptId });
  return row && recordOf(db, row);
}

/** Ended attempts of a run, one at a time: bodies are large. */
export function* attemptRecords(db: Store, runId: number): Generator<AttemptRecord> {
  const ids = all<{ id: number }>(
    db,
    `SELECT a.id FROM attempts a JOIN trials t ON t.id = a.trial_id WHERE t.run_id = ? AND a.state = 'ended' ORDER BY t.position, a.number`,
    runId,
  );
  for (const { id } of ids) yield attemptRecord(db, id)!;
}

/** The grader's report and log of one trial's final patch, with the row's date, for submissions. */
export interface GradingBody {
  readonly trialId: number;
  readonly instanceId: string;
  readonly modelPatch: string;
  /** Of the dataset row; '' when it has none. */
  readonly createdAt: string;
  /** The harness's report.json, as text. */
  readonly report: string | null;
  /** Test output, gzip. */
  readonly log: Uint8Array | null;
}

/** One at a time: logs are large. */
export function* gradingBodies(db: Store, trialIds: readonly number[]): Generator<GradingBody> {
  const body = statement(
    db,
    `SELECT v.trial_id AS trialId, v.instance_id AS instanceId, coalesce(f.model_patch, '') AS modelPatch,
       coalesce(json_extract(i.row, '$.created_at'), '') AS createdAt, e.report, e.log
     FROM trial_results v JOIN trials t ON t.id = v.trial_id JOIN instances i ON i.id = t.instance_pk
     LEFT JOIN attempts f ON f.id = v.attempt_id LEFT JOIN evaluations e ON e.id = v.evaluation_id WHERE v.trial_id = ?`,
  );
  for (const id of trialIds) yield body.get(id) as GradingBody;
}

/** The part of the manifest that is known only later: which models answered, which images ran, what was changed. */
interface Observed {
  readonly models: readonly {
    asked: string;
    answered: string | null;
    fingerprint: string | null;
    calls: number;
  }[];
  readonly price_versions: readonly string[];
  readonly image_digests: Readonly<Record<string, readonly string[]>>;
  readonly histories: Readonly<Record<string, number>>;
  readonly transports: Readonly<Record<string, number>>;
  readonly dialects: readonly string[];
  /** Trials that took more than one attempt, with why each earlier one ended. */
  readonly tried_again: readonly { arm: string; instance_id: string; epoch: number; ended: string[] }[];
  readonly verdicts: readonly { source: string; network: string | null; count: number }[];
  readonly changes: readonly { at: string; change: unknown }[];
}

const OF_RUN = 'JOIN trials t ON t.id = a.trial_id WHERE t.run_id = ?';

export function observedIn(db: Store, runId: number): Observed {
  const list = <T>(sql: string) => all<T>(db, sql, runId);
  const countsOf = (column: string) =>
    Object.fromEntries(
      list<{ name: string; n: number }>(
        `SELECT a.${column} AS name, count(*) AS n FROM attempts a ${OF_RUN} AND a.${column} IS NOT NULL GROUP BY 1 ORDER BY 1`,
      ).map((r) => [r.name, r.n]),
    );
  const images = list<{ id: string; digest: string }>(
    `SELECT DISTINCT i.instance_id AS id, a.image_digest AS digest FROM attempts a JOIN trials t ON t.id = a.trial_id
     JOIN instances i ON i.id = t.instance_pk WHERE t.run_id = ? AND a.image_digest IS NOT NULL ORDER BY i.position`,
  );
  return {
    models: list(
      `SELECT c.model_asked AS asked, c.model_answered AS answered, c.fingerprint, count(*) AS calls
       FROM model_calls c JOIN attempts a ON a.id = c.attempt_id ${OF_RUN} AND c.state = 'ok' GROUP BY 1, 2, 3 ORDER BY 1, 2, 3`,
    ),
    price_versions: list<{ v: string }>(
      `SELECT DISTINCT c.price_version AS v FROM model_calls c JOIN attempts a ON a.id = c.attempt_id ${OF_RUN} AND c.price_version IS NOT NULL ORDER BY 1`,
    ).map((r) => r.v),
    image_digests: Object.fromEntries(
      [...Map.groupBy(images, (r) => r.id)].map(([id, rows]) => [id, rows.map((r) => r.digest)]),
    ),
    histories: countsOf('history'),
    transports: countsOf('transport'),
    dialects: list<{ d: string }>(
      'SELECT DISTINCT dialect AS d FROM evaluations WHERE run_id = ? ORDER BY 1',
    ).map((r) => r.d),
    tried_again: list<{ arm: string; instance_id: string; epoch: number; ended: string }>(
      `SELECT m.name AS arm, i.instance_id, t.epoch, json_group_array(a.exit_reason) AS ended FROM attempts a JOIN trials t ON t.id = a.trial_id
       JOIN arms m ON m.id = t.arm_id JOIN instances i ON i.id = t.instance_pk
       WHERE t.run_id = ? AND a.state = 'ended' AND a.id IS NOT t.final_attempt_id GROUP BY t.id ORDER BY t.position`,
    ).map((r) => ({ ...r, ended: JSON.parse(r.ended) as string[] })),
    verdicts: list(
      'SELECT source, network, count(*) AS count FROM evaluations WHERE run_id = ? GROUP BY 1, 2 ORDER BY 1, 2',
    ),
    changes: list<{ at: string; data: string }>(
      `SELECT at, data FROM events WHERE run_id = ? AND type IN ('config_changed', 'limit_changed') ORDER BY seq`,
    ).map((r) => ({ at: r.at, change: storedJson(r.data) ?? null })),
  };
}
