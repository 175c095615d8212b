/** One line a trial for spreadsheets. Text that a spreadsheet would run as a formula is prefixed, because ids and models are not ours. */
import { type CsvValue, toCsv } from '../../base/text/inert.ts';
import { nanoToDollars } from '../../money.ts';
import type { AttemptCost } from '../../store/records/modelCalls.ts';
import type { RunData } from '../../store/records/runData.ts';
import { flagsOf, type ScoredTrial, scoredTrials } from '../measure/score.ts';

interface Row extends ScoredTrial {
  readonly run: string;
  /** The costs of all its attempts. */
  readonly costs: readonly AttemptCost[];
}

const total = ({ costs }: Row, of: (cost: AttemptCost) => number): number =>
  costs.reduce((sum, cost) => sum + of(cost), 0);

const costOf = (row: Row): number | null =>
  row.costs.every((c) => c.costNano !== null && c.unknownCalls === 0)
    ? total(row, (c) => c.costNano ?? 0)
    : null;

const dollars = (nano: number | null): number | null => (nano === null ? null : nanoToDollars(nano));

const COLUMNS: Readonly<Record<string, (row: Row) => CsvValue>> = {
  run: ({ run }) => run,
  arm: ({ trial }) => trial.arm,
  model: ({ trial }) => trial.model,
  instance_id: ({ trial }) => trial.instanceId,
  repo: ({ trial }) => trial.repo,
  difficulty: ({ trial }) => trial.difficulty,
  epoch: ({ trial }) => trial.epoch,
  state: ({ trial }) => trial.state,
  attempts: ({ trial }) => trial.attempts,
  exit_reason: ({ trial }) => trial.exitReason ?? trial.notRunReason,
  exit_class: ({ trial }) => trial.exitClass,
  exit_status: ({ trial }) => trial.exitStatus,
  outcome: ({ trial }) => trial.outcome,
  valid: ({ valid }) => valid,
  resolved: ({ valid, resolved }) => (valid ? resolved : null),
  resolved_strict: ({ trial }) => trial.resolvedStrict,
  missing: ({ standing }) => (standing.valid ? null : standing.why),
  steps: ({ trial }) => trial.steps,
  elapsed_ms: ({ trial }) => trial.elapsedMs,
  working_ms: ({ trial }) => trial.workingMs,
  cost_nano: costOf,
  cost_usd: (row) => dollars(costOf(row)),
  input_tokens: (row) => total(row, (c) => c.inputTokens),
  cache_read_tokens: (row) => total(row, (c) => c.cacheReadTokens),
  cache_write_tokens: (row) => total(row, (c) => c.cacheWriteTokens),
  output_tokens: (row) => total(row, (c) => c.outputTokens),
  reasoning_tokens: (row) => total(row, (c) => c.reasoningTokens),
  patch_source: ({ trial }) => trial.patchSource,
  patch_state: ({ trial }) => trial.patchState,
  weight: ({ trial }) => trial.weight,
  flags: ({ trial }) => flagsOf(trial).join(' '),
};

export function trialsCsv(data: RunData): string {
  const costs = Map.groupBy(data.costs, (c) => c.trialId);
  const byArm = Map.groupBy(data.trials, (t) => t.arm);
  const scored = new Map([...byArm.values()].flatMap(scoredTrials).map((row) => [row.trial.trialId, row]));
  // In the order of the record, whatever arm a trial belongs to.
  const rows = data.trials.map(
    (trial): Row => ({
      ...scored.get(trial.trialId)!,
      run: data.run.name,
      costs: costs.get(trial.trialId) ?? [],
    }),
  );
  // Files of suites without rewards stay as they are.
  const rewarded = data.trials.some(({ reward }) => reward !== undefined);
  const named = data.trials.some(({ rewards }) => rewards !== undefined);
  const columns = {
    ...COLUMNS,
    ...(rewarded && { reward: ({ trial }: Row) => trial.reward ?? null }),
    ...(named && { rewards: ({ trial }: Row) => (trial.rewards ? JSON.stringify(trial.rewards) : null) }),
  };
  return toCsv(
    Object.entries(columns).map(([header, value]) => ({ header, value })),
    rows,
  );
}
