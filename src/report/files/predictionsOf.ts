/**
 * Predictions: what leaves the run as a statement about the model. Only sealed trials of class agent, limit or model are one;
 * an outage is left out, because in this format it would read as a wrong answer.
 */

import type { Prediction } from '../../formats/predictions.ts';
import { type ExitClass, SEALED_CLASSES } from '../../outcome.ts';

/** What a prediction is made from; rows of the store fit. */
export interface PredictionSource {
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
    const counts = row.state === 'sealed' && row.exitClass !== null && SEALED_CLASSES.has(row.exitClass);
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
