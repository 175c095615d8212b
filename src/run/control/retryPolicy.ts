/** Whether a trial runs again after an attempt: a policy per reason, counted within this invocation. */
import { PULL_FAILURES } from '../../environment/places/pullFailure.ts';
import { EXIT_REASONS, type ExitReason, exitClassOf } from '../../outcome.ts';
import type { Settlement } from '../../store/records/trials.ts';
import { ENGINE_LOST, type Ending, HOST_FLOOR, WRONG_ENVIRONMENT } from '../exit.ts';

export interface RetryPolicy {
  /** Attempts of a trial for reasons that may be retried, the first included. */
  readonly attempts: number;
  /** Attempts for one reason, where it differs. */
  readonly reasons: Readonly<Record<string, number>>;
  /** Attempts made of each trial in this invocation, by reason. */
  readonly made: Map<number, Map<ExitReason, number>>;
  /** How often the engine or the server of the model went away under each trial in this invocation. */
  readonly outages: Map<number, number>;
}

/** Outages under one trial that use up no attempt. */
export const FREE_OUTAGES = 5;

export function settlementOf(
  policy: RetryPolicy,
  trialId: number,
  ending: Pick<Ending, 'reason' | 'detail' | 'recordedAgain' | 'byAgent' | 'beforeAnyAnswer' | 'unreachable'>,
): Settlement {
  const { reason, detail, recordedAgain, byAgent } = ending;
  // A replay follows the recorded decision.
  if (recordedAgain) return 'again';
  // The run ended it because the disk was low, which uses up no attempt.
  if (detail === HOST_FLOOR) return 'again';
  // Sealed as infra it would be out of the count: the next such end is the agent's result.
  if (byAgent && exitClassOf(reason) === 'infra') return 'again';
  // The engine or the model's server was away. What goes away again and again may do so because of this trial.
  if (detail === ENGINE_LOST || ending.unreachable) {
    const lost = (policy.outages.get(trialId) ?? 0) + 1;
    policy.outages.set(trialId, lost);
    if (lost <= FREE_OUTAGES) return 'again';
  }
  const made = policy.made.get(trialId) ?? new Map<ExitReason, number>();
  policy.made.set(trialId, made);
  made.set(reason, (made.get(reason) ?? 0) + 1);
  const total = [...made.values()].reduce((a, b) => a + b, 0);
  const exitClass = exitClassOf(reason);
  if (exitClass === 'config' || exitClass === 'not_run') return 'not_run';
  if (exitClass === 'cancelled') return 'again';
  const forReason = policy.reasons[reason];
  // The next instance tells whether every request is rejected, or this one alone (breaker.ts).
  if (ending.beforeAnyAnswer && forReason === undefined) return made.get(reason)! < 2 ? 'again' : 'seal';
  if (!EXIT_REASONS[reason].retry && forReason === undefined) return 'seal';
  // A registry that denies access, or lacks the platform, answers the same the next time.
  if (forReason === undefined && reason === 'env_image_pull_failed' && !pullMayHelp(detail)) return 'seal';
  // The next container is from the same image.
  if (forReason === undefined && detail === WRONG_ENVIRONMENT) return 'seal';
  const allowed = total < policy.attempts && made.get(reason)! < (forReason ?? policy.attempts);
  return allowed ? 'again' : 'seal';
}

const pullMayHelp = (kind: string | null): boolean =>
  kind === null || (PULL_FAILURES as Record<string, { again: boolean }>)[kind]?.again !== false;
