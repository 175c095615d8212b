/** Orders the trials of a sitting as the run's configuration says, and records the order. */
import type { RunConfig } from '../../config/configSchema.ts';
import { DEFAULT_SEED } from '../../dataset/select.ts';
import { orderBySharedLayers } from '../../environment/places/imagePlan.ts';
import type { Store } from '../../store/open.ts';
import { armsOf, instanceFacts, type RunRow } from '../../store/records/runs.ts';
import { pastDurations, setPositions, type TrialRow, trialsOf } from '../../store/records/trials.ts';
import { estimator, orderTrials } from './order.ts';

/** Expected seconds of each trial, from earlier runs; undefined without history. */
export function expectedSeconds(
  store: Store,
  run: RunRow,
  toDo: readonly TrialRow[],
): [trialId: number, seconds: number][] | undefined {
  const history = pastDurations(store);
  if (history.length === 0) return undefined;
  const estimate = estimator(history);
  return named(store, run, toDo).map((trial) => [trial.trial.id, Math.round(estimate(trial).seconds)]);
}

function named(store: Store, run: RunRow, toDo: readonly TrialRow[]) {
  const models = new Map(armsOf(store, run.id).map((arm) => [arm.id, arm.model]));
  const instances = new Map(instanceFacts(store, run.id).map((row) => [row.id, row]));
  return toDo.map((trial) => {
    const { instance_id, repo } = instances.get(trial.instance_pk)!;
    return { trial, instanceId: instance_id, repo, model: models.get(trial.arm_id)! };
  });
}

export function scheduleTrials(
  store: Store,
  run: RunRow,
  config: RunConfig,
  toDo: readonly TrialRow[],
): readonly TrialRow[] {
  if (config.order === 'dataset') return toDo;
  const history = config.order === 'longest' ? pastDurations(store) : [];
  const ordered = orderTrials(named(store, run, toDo), config.order, history, DEFAULT_SEED).map(
    ({ trial }) => trial,
  );
  return record(store, run, ordered);
}

/**
 * Groups trials whose images share layers, so that a policy which removes images pulls each base only once. Keeps the order of the dataset
 * otherwise, and records the new order.
 */
export function groupBySharedLayers(
  store: Store,
  run: RunRow,
  toDo: readonly TrialRow[],
  layersOf: (trial: TrialRow) => readonly string[],
): readonly TrialRow[] {
  const grouped = orderBySharedLayers(toDo, layersOf);
  return grouped.every((trial, i) => trial === toDo[i]) ? toDo : record(store, run, grouped);
}

/** New positions come after those of earlier trials, so that the record shows the order of starts. */
function record(store: Store, run: RunRow, ordered: readonly TrialRow[]): readonly TrialRow[] {
  const moved = new Set(ordered.map((trial) => trial.id));
  const earlier = trialsOf(store, run.id).filter((trial) => !moved.has(trial.id));
  const first = Math.max(-1, ...earlier.map((trial) => trial.position)) + 1;
  const ids = ordered.map((trial) => trial.id);
  setPositions(store, ids, first);
  return ordered.map((trial, i) => ({ ...trial, position: first + i }));
}
