/**
 * The data of a run for reports, comparisons and the viewer. The cores in src/report work only on these types, so the data can come from a database,
 * from files or from a test. Patches, messages and logs are large; attemptBodies.ts reads them.
 */
import { recordOf } from '../../base/isRecord.ts';
import type { ExitClass, ExitReason, Outcome, PatchSource, PatchState } from '../../outcome.ts';
import type { Store } from '../open.ts';
import { all, each, first, raw, storedJson, storedList } from '../query.ts';
import { type FirstResult, firstResultsOf, type GoldStanding, goldStandings } from './evaluations.ts';
import { type AttemptCost, type LedgerLine, moneyOf, type PhaseTotal, phaseTotals } from './modelCalls.ts';
import {
  type ArmRow,
  armsOf,
  type RunRow,
  type StoredArm,
  type StoredConfig,
  type StoredManifest,
  storedArm,
  storedConfig,
  storedManifest,
} from './runs.ts';
import { plausibleReward, WITH_RESULT } from './trials.ts';

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
  /** Tokens of a first request beside its task: instructions, tools, the words around the task. Absent where nothing is known of it. */
  readonly overheadTokens?: number;
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
  /** The agent submitted nothing, and its work tree had changes. */
  readonly workUnused?: boolean;
  /** The verdict was imported without its patch. */
  readonly patchUnknown: boolean;
  readonly suspicion: readonly Flag[];
  readonly oomKills: number;
  readonly history: string | null;
  readonly imageDigest: string | null;
  readonly outcome: Outcome | null;
  readonly resolved: boolean | null;
  readonly resolvedStrict: boolean | null;
  /** Between 0 and 1; absent where the suite gives none. */
  readonly reward?: number;
  /** The rewards by name, where there are several. */
  readonly rewards?: Readonly<Record<string, number>>;
  readonly gradeSuspicion: readonly Flag[];
  readonly harness: string | null;
  readonly specHash: string | null;
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
  /** The gate's last verdict about each arm; arms that it never judged are missing. */
  readonly verdicts: readonly {
    readonly arm: string;
    readonly baseline: string | null;
    readonly verdict: string;
    readonly exitCode: number;
    readonly failed: readonly string[];
  }[];
  /** Results of gold patches on this machine, from any run. */
  readonly gold: ReadonlyMap<string, GoldStanding>;
}

const isFlag = (item: unknown): item is Flag => typeof recordOf(item).rule === 'string';
const flag = (value: unknown): boolean | null => (value === null ? null : value === 1);

const verdictsOfGate = (db: Store, runId: number): RunData['verdicts'] =>
  all(db)<Omit<RunData['verdicts'][number], 'failed'> & { failed: string }>`
    SELECT v.arm, v.baseline, v.verdict, v.exit_code AS exitCode, v.failed FROM verdicts v JOIN arms a ON a.run_id = v.run_id AND a.name = v.arm
    WHERE v.id IN (SELECT max(id) FROM verdicts WHERE run_id = ${runId} GROUP BY arm) AND v.exit_code IS NOT NULL ORDER BY a.position`.map(
    (row) => ({ ...row, failed: storedList(row.failed, (item) => typeof item === 'string') }),
  );

/** `undefined` when there is no such run. */
export function loadRunData(db: Store, runId: number): RunData | undefined {
  type Stored = Omit<ReportRun, 'config' | 'manifest' | 'emitEmpty' | 'imported'>;
  const row = first(db)<Stored & Pick<RunRow, 'config' | 'manifest' | 'imported'> & { emitEmpty: number }>`
    SELECT id, name, status, created_at AS createdAt, finished_at AS finishedAt, config, config_hash AS configHash,
      manifest, dataset_source AS datasetSource, dataset_revision AS datasetRevision, dataset_hash AS datasetHash,
      budget_nano AS budgetNano, emit_empty AS emitEmpty, imported FROM runs WHERE id = ${runId}`;
  if (!row) return undefined;
  // One read transaction: the run may still be going on, and the parts must fit each other.
  const read = db.transaction(() => {
    const trials = trialsOf(db, runId);
    return {
      run: {
        ...row,
        config: storedConfig(row),
        manifest: storedManifest(row),
        emitEmpty: row.emitEmpty === 1,
        imported: row.imported === 1,
      },
      arms: armsOf(db, runId).map((arm) => ({
        name: arm.name,
        model: arm.model,
        config: storedArm(arm),
        ...overheadOf(db, arm.id),
      })),
      trials,
      ...moneyOf(db, row, trials),
      phases: phaseTotals(db, runId),
      firstResults: firstResultsOf(db, runId),
      verdicts: verdictsOfGate(db, runId),
      gold: new Map([...goldStandings(db)].map(([id, { standing }]) => [id, standing])),
    };
  });
  return read();
}

/** Trials of an arm whose first requests are looked at: they hold the same. */
const LOOKED_AT = 30;

/** A provider counts a request as a whole: the task has as large a part of its tokens as of its bytes. */
function overheadOf(db: Store, armId: number): Pick<ReportArm, 'overheadTokens'> {
  const shares = all(db)<{ tokens: number; bytes: number; task: number }>`
    SELECT c.input_tokens + coalesce(c.cache_read_tokens, 0) + coalesce(c.cache_write_tokens, 0) AS tokens, c.request_bytes AS bytes,
      octet_length(json_quote(json_extract(i.row, '$.problem_statement'))) AS task
    FROM (SELECT final_attempt_id, instance_pk FROM trials
      WHERE arm_id = ${armId} AND final_attempt_id IS NOT NULL ORDER BY position LIMIT ${LOOKED_AT}) t
    JOIN instances i ON i.id = t.instance_pk AND json_valid(i.row)
    JOIN model_calls c ON c.id = (SELECT min(id) FROM model_calls
      WHERE attempt_id = t.final_attempt_id AND state = 'ok' AND label IS NULL)`
    .filter(({ tokens, bytes, task }) => tokens > 0 && task > 0 && bytes > task)
    .map(({ tokens, bytes, task }) => tokens * (1 - task / bytes))
    .sort((a, b) => a - b);
  const middle = shares[Math.floor(shares.length / 2)];
  return middle === undefined ? {} : { overheadTokens: Math.round(middle) };
}

/** What decides the score of a trial. The length of a patch is in the head of its row: a comparison with '' would read it. */
const SCORED = `t.arm_id AS armId, t.instance_pk AS instancePk, t.epoch, t.state, t.not_run_reason AS notRunReason, f.exit_reason AS exitReason,
    f.exit_class AS exitClass, octet_length(f.model_patch) = 0 AS patchEmpty, e.outcome, e.resolved, ${plausibleReward('e')}, e.rewards`;

// Without the view trial_results: what belongs to an arm or an instance is the same text for many trials, and is read once.
const TRIALS =
  raw(`SELECT ${SCORED}, t.id AS trialId, t.position, f.id AS attemptId, (SELECT count(*) FROM attempts a WHERE a.trial_id = t.id) AS attempts,
    f.exit_detail AS exitDetail, f.exit_status AS exitStatus, coalesce(f.steps, 0) AS steps, f.elapsed_ms AS elapsedMs, f.working_ms AS workingMs,
    f.patch_source AS patchSource, f.patch_state AS patchState, f.patch_sha256 AS patchSha256,
    f.id IS NOT NULL AND octet_length(f.model_patch) IS NULL AS patchUnknown,
    octet_length(f.model_patch) = 0 AND length(f.captured_patch) > 0 AND f.work_image IS NULL
      AND coalesce(e.outcome, 'empty_patch') = 'empty_patch' AS workUnused,
    f.suspicion, coalesce(f.oom_kills, 0) AS oomKills, f.history, f.image_digest AS imageDigest,
    e.resolved_strict AS resolvedStrict, e.suspicion AS gradeSuspicion, e.harness, e.spec_hash AS specHash
  FROM ${WITH_RESULT}`);

/** The columns that decide the score of a trial, for lists that show many runs. */
export type ScoreRow = Pick<
  ReportTrial,
  'arm' | 'epoch' | 'state' | 'exitClass' | 'exitReason' | 'notRunReason'
> &
  Pick<ReportTrial, 'outcome' | 'resolved' | 'patchEmpty' | 'reward' | 'rewards' | 'instanceId'> & {
    readonly flagged: boolean;
  };

export function scoreRows(db: Store, runId: number): ScoreRow[] {
  const once = sharedTexts();
  const arms = new Map(armsOf(db, runId).map((arm) => [arm.id, arm.name]));
  type Row = Pick<TrialRow, 'epoch' | 'state' | 'exitClass' | 'exitReason' | 'notRunReason' | 'outcome'> &
    Pick<TrialRow, 'resolved' | 'patchEmpty' | 'reward' | 'rewards' | 'armId' | 'instancePk'>;
  const rows: ScoreRow[] = [];
  const found = each(db)<Row & { flagged: number }>`
    SELECT ${raw(SCORED)},
      coalesce(f.suspicion, '[]') <> '[]' OR coalesce(e.suspicion, '[]') <> '[]' AS flagged
    FROM ${raw(WITH_RESULT)}
    WHERE t.run_id = ${runId}`;
  for (const row of found)
    rows.push({
      arm: arms.get(row.armId)!,
      instanceId: String(row.instancePk),
      epoch: row.epoch,
      state: once(row.state),
      exitReason: once(row.exitReason),
      exitClass: once(row.exitClass),
      notRunReason: once(row.notRunReason),
      outcome: once(row.outcome),
      resolved: flag(row.resolved),
      patchEmpty: row.patchEmpty === 1,
      ...(row.reward !== null && { reward: row.reward, ...namedRewards(row.rewards) }),
      flagged: row.flagged === 1,
    });
  return rows;
}

type OfArm = 'arm' | 'model';
type OfInstance = 'instanceId' | 'repo' | 'difficulty' | 'rowHash' | 'weight';
type Flags = 'patchEmpty' | 'workUnused' | 'patchUnknown' | 'resolved' | 'resolvedStrict';
type Lists = 'suspicion' | 'gradeSuspicion';
/** SQLite has no booleans and no lists. */
type TrialRow = Omit<ReportTrial, OfArm | OfInstance | Flags | Lists | 'reward' | 'rewards'> & {
  readonly reward: number | null;
  readonly rewards: string | null;
} & Record<Flags, number | null> &
  Record<Lists, string | null> & { readonly armId: number; readonly instancePk: number };

function trialsOf(db: Store, runId: number): ReportTrial[] {
  const once = sharedTexts();
  const arms = new Map(armsOf(db, runId).map((arm) => [arm.id, arm]));
  const instances = new Map(
    all(db)<Pick<ReportTrial, OfInstance> & { id: number }>`
      SELECT id, instance_id AS instanceId, repo, difficulty, row_hash AS rowHash, weight
      FROM instances WHERE run_id = ${runId}`.map(({ id, repo, difficulty, ...own }) => [
      id,
      { ...own, repo: once(repo), difficulty: once(difficulty) },
    ]),
  );
  const trials: ReportTrial[] = [];
  for (const row of each(db)<TrialRow>`${TRIALS} WHERE t.run_id = ${runId}`)
    trials.push(trialOf(row, arms.get(row.armId)!, instances.get(row.instancePk)!, once));
  return trials.sort((a, b) => a.position - b.position);
}

/** Every key is written out: copying what is left of a row takes three times as long, which 50,000 trials show. */
const trialOf = (
  row: TrialRow,
  arm: ArmRow,
  instance: Pick<ReportTrial, OfInstance>,
  once: ReturnType<typeof sharedTexts>,
): ReportTrial => ({
  trialId: row.trialId,
  arm: arm.name,
  model: arm.model,
  instanceId: instance.instanceId,
  repo: instance.repo,
  difficulty: instance.difficulty,
  rowHash: instance.rowHash,
  epoch: row.epoch,
  state: once(row.state),
  weight: instance.weight,
  position: row.position,
  attemptId: row.attemptId,
  attempts: row.attempts,
  exitReason: once(row.exitReason),
  exitClass: once(row.exitClass),
  exitDetail: row.exitDetail,
  exitStatus: once(row.exitStatus),
  notRunReason: row.notRunReason,
  steps: row.steps,
  elapsedMs: row.elapsedMs,
  workingMs: row.workingMs,
  patchSource: once(row.patchSource),
  patchState: once(row.patchState),
  patchSha256: row.patchSha256,
  patchEmpty: row.patchEmpty === 1,
  ...(row.workUnused === 1 && { workUnused: true }),
  patchUnknown: row.patchUnknown === 1,
  suspicion: flagsIn(row.suspicion),
  oomKills: row.oomKills,
  history: once(row.history),
  imageDigest: once(row.imageDigest),
  outcome: once(row.outcome),
  resolved: flag(row.resolved),
  resolvedStrict: flag(row.resolvedStrict),
  ...(row.reward !== null && { reward: row.reward, ...namedRewards(row.rewards) }),
  gradeSuspicion: flagsIn(row.gradeSuspicion),
  harness: once(row.harness),
  specHash: once(row.specHash),
});

/** Nothing where there is only one. */
function namedRewards(text: string | null): { rewards?: Readonly<Record<string, number>> } {
  const entries = Object.entries(recordOf(storedJson(text ?? '')));
  const known = entries.filter((entry): entry is [string, number] => typeof entry[1] === 'number');
  return known.length > 1 ? { rewards: Object.fromEntries(known) } : {};
}

const NO_FLAGS: readonly Flag[] = [];
const flagsIn = (text: string | null): readonly Flag[] =>
  text === '[]' || text === null ? NO_FLAGS : storedList(text, isFlag);

/** SQLite gives a text of its own for every row; of those that few words make up, one each is enough. */
function sharedTexts(): <T extends string | null>(text: T) => T {
  const known = new Map<string, string>();
  return <T extends string | null>(text: T): T => {
    if (text === null) return text;
    const first = known.get(text);
    if (first === undefined) known.set(text, text);
    return (first ?? text) as T;
  };
}
