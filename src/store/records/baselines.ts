/** Baselines: names for runs that later runs are compared with, the newest run that can be one, and what the gate said about a run. */
import type { Store } from '../open.ts';
import { all, change, first, insert, raw } from '../query.ts';
import { knownCost } from './modelCalls.ts';
import { armsOf, type RunRow, runByName } from './runs.ts';
import { IS_RESULT, type TrialResultRow } from './trials.ts';

interface BaselineRow {
  name: string;
  run_id: number;
  run: string;
  set_at: string;
}

export const setBaseline = (db: Store, name: string, runId: number, at: string): number =>
  change(db)`
    INSERT INTO baselines (name, run_id, set_at) VALUES (${name}, ${runId}, ${at}) ON CONFLICT (name) DO UPDATE SET run_id = excluded.run_id, set_at = excluded.set_at`;

export const removeBaseline = (db: Store, name: string): boolean =>
  change(db)`DELETE FROM baselines WHERE name = ${name}` === 1;

export const listBaselines = (db: Store): BaselineRow[] =>
  all(db)`
    SELECT b.name, b.run_id, r.name AS run, b.set_at FROM baselines b JOIN runs r ON r.id = b.run_id ORDER BY b.name`;

export const baselineRun = (db: Store, name: string): RunRow | undefined =>
  first(db)`SELECT r.* FROM baselines b JOIN runs r ON r.id = b.run_id WHERE b.name = ${name}`;

/** A run before another one with the same configuration and dataset, and what decides whether it can be its baseline. */
export interface ComparableRow extends RunRow {
  /** Whether anything of it was graded. */
  graded: number;
  /** A person made it a baseline, under whatever name. */
  chosen: number;
  /** JSON: the newest verdict of each arm that is not one of a passed gate, as { exit_code, failed }. Null where there is none. */
  objections: string | null;
}

/**
 * Runs before this one with the same configuration and dataset, newest first; those of the same selected rows come before others of the same
 * source. Runs that measured another one again are left out, and shards.
 */
export const comparableRuns = (db: Store, run: RunRow): ComparableRow[] =>
  all(db)`
    SELECT r.*, EXISTS (SELECT 1 FROM evaluations e WHERE e.run_id = r.id) AS graded,
       EXISTS (SELECT 1 FROM baselines b WHERE b.run_id = r.id) AS chosen,
       (SELECT nullif(json_group_array(json_object('exit_code', v.exit_code, 'failed', json(v.failed))), '[]') FROM verdicts v
        WHERE v.id IN (SELECT max(id) FROM verdicts WHERE run_id = r.id GROUP BY arm) AND v.exit_code IS NOT 0) AS objections
     FROM runs r WHERE r.id < ${run.id} AND r.config_hash = ${run.config_hash}
       AND r.dataset_source = ${run.dataset_source} AND json_extract(r.manifest, '$.remeasures') IS NULL
       AND json_extract(r.manifest, '$.shard') IS NULL
     ORDER BY r.dataset_hash = ${run.dataset_hash} DESC, r.id DESC`;

/** Runs that measured instances of this one again (manifest `remeasures`). */
export const remeasurementsOfRun = (db: Store, runName: string): RunRow[] =>
  all(db)`SELECT * FROM runs WHERE json_extract(manifest, '$.remeasures.run') = ${runName} ORDER BY id`;

/** Every valid or missing result of some instances over all runs, oldest first. */
export interface NightRow extends TrialResultRow {
  at: string;
  patch_empty: number | null;
  /** Whether anything of the run was graded. */
  graded: number;
}

const NIGHTS = raw(`SELECT v.*, r.created_at AS at, octet_length(f.model_patch) = 0 AS patch_empty,
       EXISTS (SELECT 1 FROM evaluations e WHERE e.run_id = r.id) AS graded
     FROM trial_results v JOIN runs r ON r.id = v.run_id LEFT JOIN attempts f ON f.id = v.attempt_id`);

export const nightsOf = (db: Store, runId: number): NightRow[] =>
  all(db)`${NIGHTS}
    WHERE (v.model, v.instance_id) IN (SELECT model, instance_id FROM trial_results WHERE run_id = ${runId})
    ORDER BY r.created_at, r.id, v.position`;

/**
 * Results of some instances in a run and the runs before it with the same configuration, arm and rows, newest first. Re-measurements are left
 * out: they were made because of a result.
 */
export const resultsUpTo = (db: Store, run: RunRow, arm: string, ids: readonly string[]): NightRow[] =>
  all(db)`${NIGHTS}
    JOIN instances i ON i.run_id = r.id AND i.instance_id = v.instance_id
    JOIN instances own ON own.run_id = ${run.id} AND own.instance_id = v.instance_id AND own.row_hash = i.row_hash
    WHERE r.id <= ${run.id} AND r.config_hash = ${run.config_hash} AND v.arm = ${arm}
      AND json_extract(r.manifest, '$.remeasures') IS NULL
      AND v.instance_id IN (SELECT value FROM json_each(${JSON.stringify(ids)}))
    ORDER BY r.id DESC, v.position DESC`;

/** Results of the instances of a run in it and in other runs with the same arm and rows, oldest first. */
export const resultsIn = (db: Store, run: RunRow, arm: string, runs: readonly number[]): NightRow[] =>
  all(db)`${NIGHTS}
    JOIN instances i ON i.run_id = r.id AND i.instance_id = v.instance_id
    JOIN instances own ON own.run_id = ${run.id} AND own.instance_id = v.instance_id AND own.row_hash = i.row_hash
    WHERE r.id IN (SELECT value FROM json_each(${JSON.stringify(runs)})) AND v.arm = ${arm}
    ORDER BY r.id, v.position`;

/** Ended attempts of the past for a forecast: what instances cost and took, newest first. */
interface PastRow {
  model: string;
  instanceId: string;
  repo: string;
  costNano: number | null;
  elapsedMs: number | null;
  gradeMs: number | null;
}

export const pastAttempts = (db: Store, model: string): PastRow[] =>
  all(db)`
    SELECT m.model, i.instance_id AS instanceId, i.repo, ${raw(knownCost('a.id'))} AS costNano,
       a.elapsed_ms AS elapsedMs,
       (SELECT e.duration_ms FROM evaluations e WHERE e.trial_id = t.id AND e.attempt_id = a.id AND e.source = 'native' AND e.outcome <> 'infra'
        ORDER BY e.id DESC LIMIT 1) AS gradeMs
     FROM attempts a JOIN trials t ON t.id = a.trial_id JOIN arms m ON m.id = t.arm_id JOIN instances i ON i.id = t.instance_pk
     WHERE m.model = ${model} AND a.exit_class ${raw(IS_RESULT)} ORDER BY a.id DESC LIMIT 5000`;

/** The times that pulls of images took, newest first. */
export const pastPulls = (db: Store): { image: string; ms: number }[] =>
  all(db)<{ image: string; ms: number }>`
    SELECT json_extract(data, '$.image') AS image, json_extract(data, '$.ms') AS ms FROM events WHERE type = 'pulled' ORDER BY seq DESC LIMIT 2000`;

/**
 * A gate begins, or the night that it will judge: until it ends, the run is one whose gate was not finished. A verdict that is open already
 * goes on. Returns the id of the verdict.
 */
export function beginVerdict(
  db: Store,
  of: {
    readonly run_id: number;
    readonly arm: string;
    readonly baseline: string | null;
    readonly judged_at: string;
  },
): number {
  const open = first(db)<{ id: number }>`
    SELECT id FROM verdicts WHERE exit_code IS NULL
      AND id = (SELECT max(id) FROM verdicts WHERE run_id = ${of.run_id} AND arm = ${of.arm})`;
  if (open === undefined) return insert(db, 'verdicts', of);
  change(db)`
    UPDATE verdicts SET baseline = ${of.baseline}, judged_at = ${of.judged_at} WHERE id = ${open.id}`;
  return open.id;
}

/** Whether the gate of a night was begun, or was to follow, and has not ended. */
export const runAwaitsVerdict = (db: Store, runId: number): boolean =>
  first(db)`SELECT 1 FROM verdicts WHERE exit_code IS NULL
       AND id IN (SELECT max(id) FROM verdicts WHERE run_id = ${runId} GROUP BY arm)` !== undefined;

/** `failed` names the rules that did. */
export const endVerdict = (
  db: Store,
  id: number,
  said: { readonly verdict: string; readonly exitCode: number; readonly failed: readonly string[] },
): number => change(db)`
  UPDATE verdicts SET verdict = ${said.verdict}, exit_code = ${said.exitCode},
    failed = ${JSON.stringify(said.failed)} WHERE id = ${id}`;

/** A night that is to be judged: if it stops before its gate, `resume` makes it complete, and it is no baseline until it was judged. */
export function leaveUnjudged(store: Store, name: string): void {
  const run = runByName(store, name);
  if (!run) return;
  const judged_at = new Date().toISOString();
  for (const { name: arm } of armsOf(store, run.id))
    beginVerdict(store, { run_id: run.id, arm, baseline: null, judged_at });
}
