/**
 * Predictions: what leaves the run as a statement about the model. Only sealed trials of class agent, limit or model are one;
 * an outage is left out, because in this format it would read as a wrong answer.
 */

import { join } from 'node:path';
import { pathName } from '../base/text/fileName.ts';
import type { Prediction } from '../formats/predictions.ts';
import { COUNTED_CLASSES, type ExitClass } from '../outcome.ts';

/** The source of a prediction; rows of the store fit. */
interface PredictionSource {
  readonly model: string;
  readonly instanceId: string;
  readonly state: string;
  readonly exitClass: ExitClass | null;
  readonly modelPatch: string | null;
}

export function predictionsOf(
  rows: readonly PredictionSource[],
  emitEmpty = false,
): (Prediction & { readonly model_patch: string })[] {
  return rows.flatMap((row) => {
    const counts = row.state === 'sealed' && row.exitClass !== null && COUNTED_CLASSES.has(row.exitClass);
    // Imported from a report alone: a verdict without a patch. An empty one would be a false statement.
    if (counts && row.modelPatch === null) return [];
    // A trial that is running now has nothing to say yet, not even "empty".
    const still = row.state === 'leased' || row.state === 'running';
    if (!counts && (!emitEmpty || still)) return [];
    return [
      {
        model_name_or_path: row.model,
        instance_id: row.instanceId,
        model_patch: counts ? row.modelPatch! : '',
      },
    ];
  });
}

interface Part<T> {
  readonly arm: string;
  readonly epoch: number;
  /** Relative to the run's folder; '' when the run has one part only. */
  readonly folder: string;
  readonly rows: readonly T[];
}

/** Splits rows by arm and epoch in their order of appearance. */
export function partsOf<T extends { arm: string; epoch: number }>(rows: readonly T[]): Part<T>[] {
  const groups = Map.groupBy(rows, (row) => `${row.epoch}\0${row.arm}`);
  return [...groups.values()].map((group) => ({
    arm: group[0]!.arm,
    epoch: group[0]!.epoch,
    folder: groups.size === 1 ? '' : join(pathName(group[0]!.arm), `epoch-${group[0]!.epoch}`),
    rows: group,
  }));
}
