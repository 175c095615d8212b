/**
 * The data of a run for reports and comparisons. The cores in src/report work only on these types, so the data can come from a database,
 * from files or from a test. Patches, messages and logs are large; attemptBodies.ts reads them.
 */
import { recordOf } from '../../base/isRecord.ts';
import type { ExitClass, ExitReason, Outcome, PatchSource, PatchState } from '../../outcome.ts';
import type { Store } from '../open.ts';
import { all, first } from '../query.ts';
import { safeSum } from '../safeSum.ts';
import { storedJson } from '../storedJson.ts';
import { type GoldStanding, goldStandings } from './calibration.ts';
import { type FirstResult, firstResultsOf } from './firstResults.ts';
import { costUnknown, type LedgerSums, tokenSums } from './modelCalls.ts';
import type { ArmRow, RunRow } from './runs.ts';
import {
  type StoredArm,
  type StoredConfig,
  type StoredManifest,
  storedArm,
  storedConfig,
  storedManifest,
} from './storedConfig.ts';

interface ReportRun {
  readonly id: number;
  readonly name: string;
  readonly status: string;
  readonly createdAt: string;
  readonly finishedAt: string | null;
  readonly config: StoredConfig;
  readonly configHash: string;
  readonly manifest: StoredManifest;
  readonly datasetSource: string;
  readonly datasetRevision: string | null;
  readonly datasetHash: string;
  readonly budgetNano: number | null;
  readonly emitEmpty: boolean;
  readonly imported: boolean;
}

export interface ReportArm {
  readonly name: string;
  readonly model: string;
  readonly config: StoredArm;
}

interface Flag {
  readonly rule: string;
  readonly step?: number;
  readonly evidence?: string;
}

/** A row of the view trial_results with what reports add, named as in TypeScript. */
export interface ReportTrial {
  readonly trialId: number;
  readonly arm: string;
  readonly model: string;
  readonly instanceId: string;
  readonly repo: string;
  readonly difficulty: string;
  /** sha256 of the dataset row. Runs on different rows of one instance cannot be compared. */
  readonly rowHash: string;
  readonly epoch: number;
  readonly state: 'pending' | 'leased' | 'running' | 'sealed';
  readonly weight: number;
  readonly position: number;
  readonly attemptId: number | null;
  /** Attempts made; 0 when none was. */
  readonly attempts: number;
  readonly exitReason: ExitReason | null;
  readonly exitClass: ExitClass | null;
  readonly exitDetail: string | null;
  readonly exitStatus: string | null;
  readonly notRunReason: string | null;
  readonly steps: number;
  readonly elapsedMs: number | null;
  readonly workingMs: number | null;
  readonly patchSource: PatchSource | null;
  readonly patchState: PatchState | null;
  readonly patchSha256: string | null;
  readonly patchEmpty: boolean;
  /** The verdict was imported without its patch. */
  readonly patchUnknown: boolean;
  readonly suspicion: readonly Flag[];
  readonly oomKills: number;
  readonly history: string | null;
  readonly imageDigest: string | null;
  readonly outcome: Outcome | null;
  readonly resolved: boolean | null;
  readonly resolvedStrict: boolean | null;
  readonly gradeSuspicion: readonly Flag[];
  readonly dialect: string | null;
  readonly specHash: string | null;
}

/** What one attempt cost, sealed or not. */
export interface AttemptCost extends LedgerSums {
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

/** Where the time went, summed over the attempts of an arm. */
interface PhaseTotal {
  readonly arm: string;
  readonly name: string;
  readonly totalMs: number;
  readonly attempts: number;
}

export interface RunData {
  readonly run: ReportRun;
  readonly arms: readonly ReportArm[];
  readonly trials: readonly ReportTrial[];
  readonly costs: readonly AttemptCost[];
  readonly ledger: readonly LedgerLine[];
  readonly phases: readonly PhaseTotal[];
  /** The first result of trials that ran again after one (`--redo-existing`, `resume --retry limit`), by trial. */
  readonly firstResults: ReadonlyMap<number, FirstResult>;
  /** Results of gold patches on this machine, from any run. */
  readonly gold: ReadonlyMap<string, GoldStanding>;
}

function list<T>(text: unknown, isItem: (item: unknown) => item is T): T[] {
  const value = typeof text === 'string' ? storedJson(text) : [];
  return Array.isArray(value) ? value.filter(isItem) : [];
}
const isText = (item: unknown): item is string => typeof item === 'string';
const isFlag = (item: unknown): item is Flag => typeof recordOf(item).rule === 'string';
const flag = (value: unknown): boolean | null => (value === null ? null : value === 1);

type Row = Record<string, unknown>;

/** `undefined` when there is no such run. */
export function loadRunData(db: Store, runId: number): RunData | undefined {
  const row = first<RunRow>(db, 'SELECT * FROM runs WHERE id = ?', runId);
  if (!row) return undefined;
  // One read transaction: the run may still be going on, and the parts must fit each other.
  const read = db.transaction(() => ({
    run: runOf(row),
    arms: all<ArmRow>(db, 'SELECT * FROM arms WHERE run_id = ? ORDER BY position', runId).map(armOf),
    trials: all<TrialRow>(db, TRIALS, runId).map(trialOf),
    costs: all<AttemptCost>(db, COSTS, runId),
    ledger: all<Row>(db, LEDGER, runId).map(
      (line) =>
        ({
          ...line,
          asked: list(line.asked, isText),
          priceVersions: list(line.priceVersions, isText),
        }) as unknown as LedgerLine,
    ),
    phases: all<PhaseTotal>(db, PHASES, runId),
    firstResults: firstResultsOf(db, runId),
    gold: new Map([...goldStandings(db)].map(([id, { standing }]) => [id, standing])),
  }));
  return read();
}

const runOf = (row: RunRow): ReportRun => ({
  id: row.id,
  name: row.name,
  status: row.status,
  createdAt: row.created_at,
  finishedAt: row.finished_at,
  config: storedConfig(row),
  configHash: row.config_hash,
  manifest: storedManifest(row),
  datasetSource: row.dataset_source,
  datasetRevision: row.dataset_revision,
  datasetHash: row.dataset_hash,
  budgetNano: row.budget_nano,
  emitEmpty: row.emit_empty === 1,
  imported: row.imported === 1,
});

const armOf = (row: ArmRow): ReportArm => ({ name: row.name, model: row.model, config: storedArm(row) });

const TRIALS = `SELECT v.trial_id AS trialId, v.arm, v.model, v.instance_id AS instanceId, v.repo, v.difficulty, i.row_hash AS rowHash,
    v.epoch, v.state, v.weight, v.position, v.attempt_id AS attemptId,
    (SELECT count(*) FROM attempts a WHERE a.trial_id = v.trial_id) AS attempts, v.exit_reason AS exitReason, v.exit_class AS exitClass,
    f.exit_detail AS exitDetail, v.exit_status AS exitStatus, v.not_run_reason AS notRunReason, coalesce(v.steps, 0) AS steps,
    v.elapsed_ms AS elapsedMs, v.working_ms AS workingMs, v.patch_source AS patchSource, v.patch_state AS patchState,
    v.patch_sha256 AS patchSha256, f.model_patch = '' AS patchEmpty, f.id IS NOT NULL AND f.model_patch IS NULL AS patchUnknown,
    v.suspicion, coalesce(v.oom_kills, 0) AS oomKills, f.history, f.image_digest AS imageDigest, v.outcome, v.resolved,
    v.resolved_strict AS resolvedStrict, v.grade_suspicion AS gradeSuspicion, e.dialect, e.spec_hash AS specHash
  FROM trial_results v JOIN trials t ON t.id = v.trial_id JOIN instances i ON i.id = t.instance_pk LEFT JOIN attempts f ON f.id = v.attempt_id LEFT JOIN evaluations e ON e.id = v.evaluation_id
  WHERE v.run_id = ? ORDER BY v.position`;

type Flags = 'patchEmpty' | 'patchUnknown' | 'resolved' | 'resolvedStrict';
type Lists = 'suspicion' | 'gradeSuspicion';
/** SQLite has no booleans and no lists. */
type TrialRow = Omit<ReportTrial, Flags | Lists> &
  Record<Flags, number | null> &
  Record<Lists, string | null>;

const trialOf = (row: TrialRow): ReportTrial => ({
  ...row,
  patchEmpty: row.patchEmpty === 1,
  patchUnknown: row.patchUnknown === 1,
  suspicion: list(row.suspicion, isFlag),
  resolved: flag(row.resolved),
  resolvedStrict: flag(row.resolvedStrict),
  gradeSuspicion: list(row.gradeSuspicion, isFlag),
});

const OF_RUN = `attempts a JOIN trials t ON t.id = a.trial_id JOIN arms m ON m.id = t.arm_id JOIN instances i ON i.id = t.instance_pk`;

// An imported attempt without calls did not record them, so its cost is unknown. One of ours without calls made none.
const COSTS = `SELECT a.id AS attemptId, t.id AS trialId, a.number, m.name AS arm, i.instance_id AS instanceId, t.epoch,
    a.exit_reason AS exitReason, coalesce(c.calls, 0) AS calls, CASE WHEN c.calls IS NULL AND NOT r.imported THEN 0 ELSE c.cost_nano END AS costNano,
    coalesce(c.unknown_calls, 0) AS unknownCalls, ${tokenSums((column) => `c.${column}`)}
  FROM ${OF_RUN} JOIN runs r ON r.id = t.run_id LEFT JOIN attempt_costs c ON c.attempt_id = a.id WHERE t.run_id = ? ORDER BY a.id`;

const LEDGER = `SELECT m.name AS arm, coalesce(c.model_answered, c.model_asked) AS model, count(*) AS calls,
    sum(c.state <> 'ok') AS failedCalls, ${safeSum('c.cost_nano')} AS costNano, sum(${costUnknown('c')}) AS unknownCalls,
    ${tokenSums((column) => safeSum(`c.${column}`))},
    coalesce(sum(iif(c.cache_write_tokens > 0 AND json_valid(c.usage),
      c.usage ->> '$.cache_creation.ephemeral_1h_input_tokens', 0)), 0) AS cacheWrite1hTokens,
    json_group_array(DISTINCT c.model_asked) FILTER (WHERE c.state = 'ok') AS asked,
    json_group_array(DISTINCT c.price_version) FILTER (WHERE c.price_version IS NOT NULL) AS priceVersions
  FROM model_calls c JOIN ${OF_RUN.replace('attempts a', 'attempts a ON a.id = c.attempt_id')} WHERE t.run_id = ?
  GROUP BY m.name, coalesce(c.model_answered, c.model_asked) ORDER BY m.position, model`;

const PHASES = `SELECT m.name AS arm, p.name, coalesce(${safeSum('p.duration_ms')}, 0) AS totalMs, count(DISTINCT a.id) AS attempts
  FROM phases p JOIN ${OF_RUN.replace('attempts a', 'attempts a ON a.id = p.attempt_id')} WHERE t.run_id = ? AND p.offset_ms >= 0
  GROUP BY m.name, p.name ORDER BY m.position, totalMs DESC`;
