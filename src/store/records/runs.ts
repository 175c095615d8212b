/** Rows of `runs`, `arms` and `instances`: what was planned, with which settings; and the removal of a run. */

import { isRecord, recordOf } from '../../base/isRecord.ts';
import { StorageError, type Store, safeSum } from '../open.ts';
import { all, cell, change, column, first, insert, raw, storedJson } from '../query.ts';
import { together } from '../writing.ts';

export type RunStatus =
  | 'running'
  | 'paused'
  | 'complete'
  | 'incomplete'
  | 'budget'
  | 'interrupted'
  | 'failed';

export interface RunRow {
  id: number;
  name: string;
  status: RunStatus;
  created_at: string;
  finished_at: string | null;
  config: string;
  config_hash: string;
  manifest: string;
  dataset_source: string;
  dataset_revision: string | null;
  dataset_hash: string;
  budget_nano: number | null;
  emit_empty: number;
  imported: number;
}

export interface ArmRow {
  id: number;
  run_id: number;
  position: number;
  name: string;
  model: string;
  config: string;
}

export interface InstanceRow {
  id: number;
  run_id: number;
  position: number;
  instance_id: string;
  repo: string;
  difficulty: string;
  image: string;
  row_hash: string;
  row: string;
  weight: number;
}

type NewRun = Omit<RunRow, 'id' | 'status' | 'finished_at'>;

export interface RunPlan {
  readonly run: NewRun;
  readonly arms: readonly Omit<ArmRow, 'id' | 'run_id' | 'position'>[];
  /** The rows; a shard's with their place in the whole selection, and `places` of that. */
  readonly instances: readonly (Omit<InstanceRow, 'id' | 'run_id' | 'position'> & {
    readonly position?: number;
  })[];
  readonly places?: number;
  readonly epochs: number;
  /** Which trials there are; default: all of them. */
  readonly has?: (arm: string, instanceId: string, epoch: number) => boolean;
}

/** Writes run, arms, instances and trials in one transaction. Trials are interleaved: epoch, then instance, then arm. */
export function insertRun(db: Store, plan: RunPlan): RunRow {
  const id = together(db, () => {
    const runId = insert(db, 'runs', { ...plan.run, status: 'running' });
    const arms = plan.arms.map((arm, position) => ({
      name: arm.name,
      arm_id: insert(db, 'arms', { ...arm, run_id: runId, position }),
    }));
    const { places = plan.instances.length } = plan;
    const instances = plan.instances.map((row, i) => {
      const { position = i } = row;
      const instance_pk = insert(db, 'instances', { ...row, run_id: runId, position });
      return { id: row.instance_id, instance_pk, place: position };
    });
    for (let epoch = 1; epoch <= plan.epochs; epoch++)
      for (const { id, instance_pk, place } of instances)
        for (const [i, { name, arm_id }] of arms.entries()) {
          if (plan.has && !plan.has(name, id, epoch)) continue;
          const position = ((epoch - 1) * places + place) * arms.length + i;
          const trial = { run_id: runId, arm_id, instance_pk, epoch, position };
          insert(db, 'trials', { ...trial, state: 'pending' });
        }
    return runId;
  });
  return runById(db, id)!;
}

export const runById = (db: Store, id: number): RunRow | undefined =>
  first(db)`SELECT * FROM runs WHERE id = ${id}`;

export const runByName = (db: Store, name: string): RunRow | undefined =>
  first(db)`SELECT * FROM runs WHERE name = ${name}`;

/** A run by its name, a unique prefix of it, or "last". */
export function findRun(db: Store, selector: string): RunRow | { candidates: string[] } {
  if (selector === 'last') {
    // Re-measurements were not started by a person, so "last" skips them.
    const last = first(db)<RunRow>`
      SELECT * FROM runs WHERE json_extract(manifest, '$.remeasures') IS NULL ORDER BY id DESC LIMIT 1`;
    return last ?? { candidates: [] };
  }
  const exact = runByName(db, selector);
  if (exact) return exact;
  // An empty selector is the beginning of every name.
  if (selector === '') return { candidates: [] };
  const matches = all(db)<RunRow>`
    SELECT * FROM runs WHERE substr(name, 1, length(${selector})) = ${selector} ORDER BY id`;
  return matches.length === 1 ? matches[0]! : { candidates: matches.map((r) => r.name) };
}

export const hasRuns = (db: Store): boolean => first(db)`SELECT 1 FROM runs LIMIT 1` !== undefined;

export const listRuns = (db: Store): RunRow[] => all(db)`SELECT * FROM runs ORDER BY id`;

/** Without the texts, which are large. */
export type ShownRun = Omit<RunRow, 'config' | 'manifest' | 'emit_empty'> & {
  /** "2/5"; null for a whole run. */
  readonly shard: string | null;
};

const RUN = raw(
  `id, name, status, created_at, finished_at, dataset_source, dataset_revision, dataset_hash, config_hash, budget_nano, imported,
  iif(json_valid(manifest), (manifest ->> '$.shard.number') || '/' || (manifest ->> '$.shard.of'), NULL) AS shard`,
);

/** The newest first. */
export const shownRuns = (db: Store): ShownRun[] => all(db)`SELECT ${RUN} FROM runs ORDER BY id DESC`;

export const shownRun = (db: Store, id: number): ShownRun | undefined =>
  first(db)`SELECT ${RUN} FROM runs WHERE id = ${id}`;

/** A manifest may name every instance of a large dataset: one of more bytes than `most` is left out. */
export const runTexts = (db: Store, id: number, most: number) =>
  first(db)<Pick<RunRow, 'config' | 'manifest'>>`
    SELECT config, iif(octet_length(manifest) > ${most}, '', manifest) AS manifest FROM runs WHERE id = ${id}`!;

/** Changes when a finished run changes (a regrade, a resume), and is cheap to read: the key of cached summaries. */
export const runSignature = (db: Store, id: number): string =>
  cell(db)`
    SELECT (SELECT count(*) FROM trials WHERE run_id = r.id AND state = 'sealed') || ' ' ||
       ifnull((SELECT max(id) FROM evaluations WHERE run_id = r.id), '') FROM runs r WHERE r.id = ${id}`;

/** The arms of all runs. */
export const allArms = (db: Store): ArmRow[] => all(db)`SELECT * FROM arms ORDER BY id`;

export const armsOf = (db: Store, runId: number): ArmRow[] =>
  all(db)`SELECT * FROM arms WHERE run_id = ${runId} ORDER BY position`;

export const instancesOf = (db: Store, runId: number): InstanceRow[] =>
  all(db)`SELECT * FROM instances WHERE run_id = ${runId} ORDER BY position`;

export const instanceIdsOf = (db: Store, runId: number): string[] =>
  all(db)<{
    id: string;
  }>`SELECT instance_id AS id FROM instances WHERE run_id = ${runId} ORDER BY position`.map(({ id }) => id);

/** An instance without the text of its row, which is large. */
export type InstanceFacts = Omit<InstanceRow, 'row'>;

export const instanceFacts = (db: Store, runId: number): InstanceFacts[] =>
  all(db)`
    SELECT id, run_id, position, instance_id, repo, difficulty, image, row_hash, weight FROM instances WHERE run_id = ${runId} ORDER BY position`;

/** The normalised row of the dataset, JSON. */
export const rowTextOf = (db: Store, instancePk: number): string =>
  cell(db)`SELECT row FROM instances WHERE id = ${instancePk}`;

/** The suites that instances of a run name; null for those that name none. */
export const kindsOf = (db: Store, runId: number): (string | null)[] =>
  column(db)`SELECT DISTINCT json_extract(row, '$.kind') FROM instances WHERE run_id = ${runId}`;

/** Images of trials that are still to run, each with the digests that earlier attempts of the run had under that name. */
export function imagesOfRun(db: Store, runId: number): Map<string, string[]> {
  const rows = all(db)<{ image: string; digest: string | null }>`
    WITH ran AS MATERIALIZED (SELECT t.instance_pk, a.image_digest FROM trials t JOIN attempts a ON a.trial_id = t.id
       WHERE t.run_id = ${runId} AND t.arm_id IN (SELECT m.id FROM arms m WHERE m.run_id = ${runId}
         AND json_extract(m.config, '$.environment.image') IS NULL))
     SELECT DISTINCT i.image, a.image_digest AS digest FROM instances i LEFT JOIN ran a ON a.instance_pk = i.id
     WHERE i.run_id = ${runId} AND i.image IN (SELECT p.image FROM trials t JOIN instances p ON p.id = t.instance_pk
       WHERE t.run_id = ${runId} AND t.state <> 'sealed')`;
  return new Map(
    [...Map.groupBy(rows, (r) => r.image)].map(([image, all]) => [
      image,
      all.flatMap(({ digest }) => (digest === null ? [] : [digest])),
    ]),
  );
}

export const setRunStatus = (
  db: Store,
  runId: number,
  status: RunStatus,
  finishedAt: string | null,
): number => change(db)`
  UPDATE runs SET status = ${status}, finished_at = ${finishedAt} WHERE id = ${runId}`;

export const setRunBudget = (db: Store, runId: number, budgetNano: number | null): number =>
  change(db)`UPDATE runs SET budget_nano = ${budgetNano} WHERE id = ${runId}`;

export const setRunConfig = (db: Store, runId: number, config: string, hash: string): number =>
  change(db)`UPDATE runs SET config = ${config}, config_hash = ${hash} WHERE id = ${runId}`;

/** The settings of attempts from now on. Earlier attempts keep theirs in their own row. */
export const setArmConfig = (db: Store, runId: number, name: string, config: string): number =>
  change(db)`UPDATE arms SET config = ${config} WHERE run_id = ${runId} AND name = ${name}`;

export interface Spent {
  /** Known cost: a lower bound while `unknownCalls` is not 0. */
  readonly nano: number;
  readonly unknownCalls: number;
  /** Also counts the estimates of calls of unknown cost. A budget is compared with this. */
  readonly committedNano: number;
}

/** Money of a run over every attempt, finished or not. The cost of an imported attempt without calls is unknown. */
export const spentNano = (db: Store, runId: number): Spent =>
  first(db)<Spent>`SELECT coalesce(${raw(safeSum('c.cost_nano'))}, 0) AS nano,
       coalesce(sum((c.state <> 'in_flight' OR c.id IS NULL AND r.imported) AND c.cost_nano IS NULL), 0) AS unknownCalls,
       coalesce(${raw(safeSum('coalesce(c.cost_nano, c.estimate_nano)'))}, 0) AS committedNano
     FROM runs r JOIN trials t ON t.run_id = r.id JOIN attempts a ON a.trial_id = t.id LEFT JOIN model_calls c ON c.attempt_id = a.id
     WHERE r.id = ${runId}`!;

// The recorded settings of a run and its arms, unchecked. An import or a set of predictions may lack sections or keys; the schema of a section
// gives the defaults.

/** Settings under their names in a configuration file. */
type Section = Readonly<Record<string, unknown>>;

export interface StoredArm {
  readonly agent?: Section;
  readonly environment?: Section;
  readonly model?: Section;
  readonly gateway?: Section;
}

export interface StoredConfig {
  readonly run?: Section;
  readonly grading?: Section;
  readonly images?: Section;
  readonly dataset?: Section;
  readonly suite?: Section;
  readonly arms?: readonly (StoredArm & { readonly name: string })[];
}

/** run.json at the start of the run: program, machine, templates and so on. For an import, what its files contain. */
export interface StoredManifest {
  readonly program?: Section;
  readonly machine?: Section;
  /** The engine that the containers ran in; null where none answered. */
  readonly docker?: Section | null;
  readonly dataset?: Section;
  readonly selection?: Section;
  readonly statistics?: Section;
  readonly grading?: Section;
  readonly split?: unknown;
  /** Digest of each image at the start; null where it was not there yet. */
  readonly images?: Readonly<Record<string, string | null>>;
  readonly shard?: RecordedShard;
  /** The shards that the run was made of, with what each machine said of itself. */
  readonly joined?: { readonly shards: readonly StoredManifest[] };
  /** The templates by arm. */
  readonly templates?: Section;
  /** The models by arm. */
  readonly models?: Section;
  readonly [more: string]: unknown;
}

/** The configuration for reading: settings that cannot be read are left out. */
export const storedConfig = (run: Pick<RunRow, 'config'>): StoredConfig => objectIn(run.config);

export const storedArm = (arm: Pick<ArmRow, 'config'>): StoredArm => objectIn(arm.config);

export const storedManifest = (run: Pick<RunRow, 'manifest'>): StoredManifest => objectIn(run.manifest);

/** The part of a run that this one is (`run --shard 2/5`), with what the whole has. */
export interface RecordedShard {
  readonly number: number;
  readonly of: number;
  readonly instances: number;
  readonly rows_sha256: string;
}

/** Null for a whole run. A list of many runs asks it of each: a manifest is large, and most say nothing of shards. */
export function shardOf(run: Pick<RunRow, 'manifest'>): RecordedShard | null {
  if (!run.manifest.includes('"shard":')) return null;
  const { shard } = storedManifest(run);
  const { number = 0, of = 0, instances } = shard ?? {};
  const isOne =
    [number, of, instances].every(Number.isSafeInteger) && number >= 1 && number <= of && of < 1e5;
  return shard && isOne ? shard : null;
}

export const shardName = ({ number, of }: Pick<RecordedShard, 'number' | 'of'>): string => `${number}/${of}`;

/** Stands wherever figures of a shard are shown. */
export const partOfWhole = (shard: Omit<RecordedShard, 'rows_sha256'>): string =>
  `a part: shard ${shardName(shard)} of a run of ${shard.instances} instances. These figures are of this shard alone; join makes the run of all`;

/** For work by these settings (resume, grading, an exported configuration), which must not go on with the defaults instead. */
export const wholeConfig = (run: Pick<RunRow, 'config'>): StoredConfig => wholeIn(run.config, 'run');

export const wholeArm = (arm: Pick<ArmRow, 'config'>): StoredArm => wholeIn(arm.config, 'arm');

const objectIn = (text: string): Section => recordOf(storedJson(text));

function wholeIn(text: string, what: string): Section {
  const value = storedJson(text);
  if (isRecord(value)) return value;
  throw new StorageError(
    'corrupt',
    `the stored configuration of the ${what} cannot be read; nothing was started. Take the database from its newest backup`,
  );
}

/** Removes a run with everything that was recorded of it: one whose import failed, or one that a person deletes. */
export function removeRun(db: Store, runId: number): void {
  const empty = (tables: string, where: ReturnType<typeof raw>) => {
    for (const table of tables.split(' ')) change(db)`DELETE FROM ${raw(table)} WHERE ${where}`;
  };
  const ofRun = raw('run_id = ?', runId);
  const attempts = 'SELECT id FROM attempts WHERE trial_id IN (SELECT id FROM trials WHERE run_id = ?)';
  // From the leaves to the root, so that no row refers to a deleted one.
  together(db, () => {
    empty('verdicts evaluations events live_states controls', ofRun);
    empty(
      'leases messages model_calls judge_calls commands connections phases program_calls attempt_sums attempt_ledger attempt_phases',
      raw(`attempt_id IN (${attempts})`, runId),
    );
    change(db)`UPDATE trials SET final_attempt_id = NULL, state = 'pending' WHERE run_id = ${runId}`;
    empty('attempts', raw(`id IN (${attempts})`, runId));
    empty('trials instances arms', ofRun);
    empty('runs', raw('id = ?', runId));
  });
}
