/** Why trials failed without a statement about the model: each exit reason once, with its count and one message. */
import type { Store } from '../store/open.ts';
import { attemptById, trialLines } from '../store/records/trials.ts';

export interface FailureKind {
  readonly reason: string;
  readonly count: number;
  /** An example, and the first line of its message. */
  readonly instanceId: string;
  readonly message: string;
}

const LONGEST = 300;

export function failureKinds(store: Store, runId: number): FailureKind[] {
  const failed = trialLines(store, runId).filter((line) => line.exit_class === 'infra');
  const reasons = [...Map.groupBy(failed, (line) => line.exit_reason ?? '')];
  return reasons
    .toSorted((a, b) => b[1].length - a[1].length)
    .map(([reason, lines]) => {
      const { instance_id, attempt_id } = lines[0]!;
      const message = (attempt_id === null ? null : attemptById(store, attempt_id)?.error_message) ?? '';
      return {
        reason,
        count: lines.length,
        instanceId: instance_id,
        message: message.split('\n', 1)[0]!.slice(0, LONGEST),
      };
    });
}
