/**
 * Predictions from outside become an imported run: an arm for each model, a sealed attempt for each patch. From then on they are graded,
 * reported and compared like a run of ours. Recording again under the same name adds an attempt where a patch changed and nothing else.
 */

import { datasetHash, type LoadedRow, readRowHash, recordedRow } from '../dataset/dataset.ts';
import { HALF_CHARACTERS, isEmptyPatch, type Prediction } from '../formats/predictions.ts';
import type { Store } from '../store/open.ts';
import { insert } from '../store/query.ts';
import {
  armsOf,
  insertRun,
  instancesOf,
  type RunRow,
  runByName,
  setRunStatus,
} from '../store/records/runs.ts';
import {
  attemptById,
  beginAttempt,
  endAttempt,
  leaseTrial,
  reopenTrials,
  type TrialRow,
  trialsOf,
} from '../store/records/trials.ts';
import { patchHash } from './gradingFrame.ts';

export interface PredictionsRun {
  readonly name: string;
  readonly predictions: readonly Prediction[];
  /** Rows of at least the predicted instances. */
  readonly rows: ReadonlyMap<string, LoadedRow>;
  readonly dataset: { readonly source: string; readonly revision: string | null };
  /** JSON of run, grading and arms, as a run of ours keeps it; `armConfig` is that of one arm. */
  readonly config: string;
  readonly configHash: string;
  readonly armConfig: string;
  readonly manifest: string;
  readonly now: () => Date;
}

type Recorded =
  | { readonly ok: true; readonly run: RunRow; readonly changed: number }
  | { readonly ok: false; readonly message: string };

function createRun(db: Store, request: PredictionsRun): RunRow {
  const models = [...new Set(request.predictions.map((p) => p.model_name_or_path))];
  const rows = request.predictions.map((p) => request.rows.get(p.instance_id)!);
  return insertRun(db, {
    run: {
      name: request.name,
      created_at: request.now().toISOString(),
      config: request.config,
      config_hash: request.configHash,
      manifest: request.manifest,
      dataset_source: request.dataset.source,
      dataset_revision: request.dataset.revision,
      dataset_hash: datasetHash(rows),
      budget_nano: null,
      emit_empty: 0,
      imported: 1,
    },
    arms: models.map((model) => ({ name: model, model, config: request.armConfig })),
    instances: [],
    epochs: 1,
  });
}

/** Adds what a run does not have yet; a row that has changed since is refused, because verdicts over two revisions cannot be added up. */
function extend(db: Store, run: RunRow, request: PredictionsRun): string | undefined {
  const known = new Map(instancesOf(db, run.id).map((row) => [row.instance_id, row]));
  const arms = new Map(armsOf(db, run.id).map((arm) => [arm.name, arm.id]));
  const trials = new Set(trialsOf(db, run.id).map((trial) => `${trial.arm_id} ${trial.instance_pk}`));
  const addInstance = (row: LoadedRow) => {
    const entry = { ...recordedRow(row), run_id: run.id, position: known.size };
    const added = { ...entry, id: insert(db, 'instances', entry) };
    known.set(added.instance_id, added);
    return added;
  };
  const addArm = (model: string): number => {
    const entry = { run_id: run.id, position: arms.size, name: model, model, config: request.armConfig };
    const id = insert(db, 'arms', entry);
    arms.set(model, id);
    return id;
  };
  for (const prediction of request.predictions) {
    const row = request.rows.get(prediction.instance_id)!;
    const before = known.get(prediction.instance_id);
    if (before && before.row_hash !== readRowHash(row))
      return `run ${run.name} graded ${prediction.instance_id} by another revision of the dataset; choose another --run-id`;
    const { id: instance_pk } = before ?? addInstance(row);
    const arm_id = arms.get(prediction.model_name_or_path) ?? addArm(prediction.model_name_or_path);
    const pair = `${arm_id} ${instance_pk}`;
    if (trials.has(pair)) continue;
    const position = trials.size;
    trials.add(pair);
    insert(db, 'trials', { run_id: run.id, arm_id, instance_pk, epoch: 1, position, state: 'pending' });
  }
  return undefined;
}

function seal(db: Store, trial: TrialRow, prediction: Prediction, request: PredictionsRun): boolean {
  const patch = prediction.model_patch ?? '';
  const sha256 = patchHash(patch);
  const final = trial.final_attempt_id === null ? undefined : attemptById(db, trial.final_attempt_id);
  if (trial.state === 'sealed' && final?.patch_sha256 === sha256) return false;
  if (trial.state === 'sealed') reopenTrials(db, [trial.id]);
  leaseTrial(db, trial.id, 'import', request.now().getTime());
  const at = request.now().toISOString();
  const attempt = beginAttempt(db, trial.id, { startedAt: at, slot: 0, config: request.armConfig });
  const empty = isEmptyPatch(prediction.model_patch);
  const whole = patch.isWellFormed();
  endAttempt(
    db,
    attempt.id,
    {
      ended_at: at,
      exit_reason: 'submitted',
      exit_status: 'Submitted',
      submission: empty ? null : Buffer.from(patch),
      patch_source: empty ? 'none' : 'submitted',
      patch_state: empty ? 'empty' : whole ? 'ok' : 'invalid',
      model_patch: patch,
      patch_sha256: sha256,
      elapsed_ms: 0,
      working_ms: 0,
      notes: JSON.stringify(['imported prediction', ...(whole ? [] : [HALF_CHARACTERS])]),
    },
    'seal',
  );
  return true;
}

export function recordPredictions(db: Store, request: PredictionsRun): Recorded {
  const existing = runByName(db, request.name);
  if (existing && existing.imported !== 1)
    return {
      ok: false,
      message: `run ${request.name} is a run of its own, not one of predictions; choose another --run-id`,
    };
  const run = existing ?? createRun(db, request);
  const problem = extend(db, run, request);
  if (problem !== undefined) return { ok: false, message: problem };
  const ids = new Map(instancesOf(db, run.id).map((row) => [row.id, row.instance_id]));
  const models = new Map(armsOf(db, run.id).map((arm) => [arm.id, arm.model]));
  const byTrial = new Map(request.predictions.map((p) => [`${p.model_name_or_path}\0${p.instance_id}`, p]));
  let changed = 0;
  for (const trial of trialsOf(db, run.id)) {
    const prediction = byTrial.get(`${models.get(trial.arm_id)}\0${ids.get(trial.instance_pk)}`);
    if (prediction && seal(db, trial, prediction, request)) changed++;
  }
  setRunStatus(db, run.id, 'complete', request.now().toISOString());
  return { ok: true, run: runByName(db, request.name)!, changed };
}

/** The harness refuses the whole run for one unknown id, even when only others are asked for. */
export function unknownIds(predictions: readonly Prediction[], instances: ReadonlySet<string>): string[] {
  return predictions.map(({ instance_id }) => instance_id).filter((id) => !instances.has(id));
}
