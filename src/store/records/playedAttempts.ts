/** Attempts of trials that a replay plays again. */

import type { Store } from '../open.ts';
import { all, first } from '../query.ts';

export interface PlayedTrial {
  readonly id: number;
  readonly arm: string;
  readonly instance_id: string;
  readonly epoch: number;
}

/** The trials of a run that ended, by arm, instance and epoch. */
export const playedTrials = (store: Store, runId: number): PlayedTrial[] =>
  all(store)<PlayedTrial>`
    SELECT t.id, m.name AS arm, i.instance_id, t.epoch FROM trials t JOIN instances i ON i.id = t.instance_pk
     JOIN arms m ON m.id = t.arm_id WHERE t.run_id = ${runId} AND t.final_attempt_id IS NOT NULL ORDER BY m.position, i.position, t.epoch`;

/** The id of the ended trial of an instance: of the arm, or of the first arm that has it. */
export const playedTrialOf = (
  store: Store,
  runId: number,
  instanceId: string,
  epoch: number,
  armId?: number,
): number | undefined =>
  first(store)<{ id: number }>`
    SELECT t.id FROM trials t JOIN instances i ON i.id = t.instance_pk
     WHERE t.run_id = ${runId} AND i.instance_id = ${instanceId} AND t.epoch = ${epoch} AND t.final_attempt_id IS NOT NULL AND t.arm_id = ifnull(${armId ?? null}, t.arm_id)
     ORDER BY t.arm_id LIMIT 1`?.id;

export interface PlayedAttempt {
  readonly id: number;
  /** Another attempt of the trial follows. */
  readonly again: boolean;
}

/**
 * The final attempt, after earlier ones that infrastructure ended once the model had been asked: their calls were paid and are in the
 * ledger. Interrupted attempts are left out, because a replay is not interrupted.
 */
export const playedAttempts = (store: Store, trialId: number): PlayedAttempt[] =>
  all(store)<{ id: number; again: number }>`
    SELECT a.id, a.id IS NOT t.final_attempt_id AS again FROM attempts a JOIN trials t ON t.id = a.trial_id
     WHERE t.id = ${trialId} AND (a.id = t.final_attempt_id OR (a.state = 'ended' AND a.exit_class = 'infra'
       AND a.number < (SELECT f.number FROM attempts f WHERE f.id = t.final_attempt_id)
       AND EXISTS (SELECT 1 FROM model_calls c WHERE c.attempt_id = a.id))) ORDER BY a.number`.map(
    ({ id, again }) => ({ id, again: again === 1 }),
  );
