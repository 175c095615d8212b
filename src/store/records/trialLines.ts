/** One line per trial with its final attempt, verdict and money: what listings show. */
import { type Store, statement } from '../open.ts';

export interface TrialLine {
  trial_id: number;
  arm: string;
  model: string;
  instance_id: string;
  repo: string;
  difficulty: string;
  epoch: number;
  state: string;
  attempt_id: number | null;
  exit_reason: string | null;
  exit_class: string | null;
  not_run_reason: string | null;
  outcome: string | null;
  resolved: number | null;
  steps: number | null;
  elapsed_ms: number | null;
  cost_nano: number | null;
}

export const trialLines = (db: Store, runId: number): TrialLine[] =>
  statement(
    db,
    `SELECT r.trial_id, r.arm, r.model, r.instance_id, r.repo, r.difficulty, r.epoch, r.state, r.attempt_id, r.exit_reason, r.exit_class,
       r.not_run_reason, r.outcome, r.resolved, r.steps, r.elapsed_ms,
       CASE WHEN c.unknown_calls > 0 THEN NULL ELSE coalesce(c.cost_nano, 0) END AS cost_nano
     FROM trial_results r LEFT JOIN attempt_costs c ON c.attempt_id = r.attempt_id WHERE r.run_id = ? ORDER BY r.position`,
  ).all(runId) as TrialLine[];
