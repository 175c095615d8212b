/** Predictions and the dataset that they are graded against. */
import type { Instance } from '../dataset/instance.ts';
import type { Prediction } from '../formats/predictions.ts';

/** A task of another kind whose solution is no patch has none: an empty one would count as a solution that fails. */
export const goldPredictions = (instances: readonly Instance[]): Prediction[] =>
  instances
    .filter(({ kind, patch }) => kind === undefined || patch !== '')
    .map(({ instance_id, patch }) => ({
      instance_id,
      model_name_or_path: 'gold',
      model_patch: patch,
    }));

/** The harness refuses the whole run for one unknown id, even when only others are asked for. */
export function unknownIds(predictions: readonly Prediction[], instances: ReadonlySet<string>): string[] {
  return predictions.map(({ instance_id }) => instance_id).filter((id) => !instances.has(id));
}
