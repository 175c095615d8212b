/** One line a trial for spreadsheets. Text that a spreadsheet would run as a formula is prefixed, because ids and models are not ours. */

import { toCsv } from '../../base/text/csv.ts';
import type { RunData } from '../../store/records/reportQueries.ts';
import { flagsOf, isGraded, standingOf } from '../measure/verdict.ts';

const COLUMNS = [
  'run',
  'arm',
  'model',
  'instance_id',
  'repo',
  'difficulty',
  'epoch',
  'state',
  'attempts',
  'exit_reason',
  'exit_class',
  'exit_status',
  'outcome',
  'valid',
  'resolved',
  'resolved_strict',
  'missing',
  'steps',
  'elapsed_ms',
  'working_ms',
  'cost_nano',
  'input_tokens',
  'cache_read_tokens',
  'cache_write_tokens',
  'output_tokens',
  'reasoning_tokens',
  'patch_source',
  'patch_state',
  'weight',
  'flags',
] as const;

type Cell = string | number | boolean | null;

export function trialsCsv(data: RunData): string {
  const graded = new Map(
    data.arms.map((a) => [a.name, isGraded(data.trials.filter((t) => t.arm === a.name))]),
  );
  const costs = Map.groupBy(data.costs, (c) => c.trialId);
  const rows = data.trials.map((t): Record<(typeof COLUMNS)[number], Cell> => {
    const standing = standingOf(t, graded.get(t.arm) ?? false);
    const spent = costs.get(t.trialId) ?? [];
    const total = (of: (c: (typeof spent)[number]) => number) => spent.reduce((s, c) => s + of(c), 0);
    const known = spent.every((c) => c.costNano !== null && c.unknownCalls === 0);
    return {
      run: data.run.name,
      arm: t.arm,
      model: t.model,
      instance_id: t.instanceId,
      repo: t.repo,
      difficulty: t.difficulty,
      epoch: t.epoch,
      state: t.state,
      attempts: t.attempts,
      exit_reason: t.exitReason ?? t.notRunReason,
      exit_class: t.exitClass,
      exit_status: t.exitStatus,
      outcome: t.outcome,
      valid: standing.valid,
      resolved: standing.valid ? standing.resolved : null,
      resolved_strict: t.resolvedStrict,
      missing: standing.valid ? null : standing.why,
      steps: t.steps,
      elapsed_ms: t.elapsedMs,
      working_ms: t.workingMs,
      cost_nano: known ? total((c) => c.costNano ?? 0) : null,
      input_tokens: total((c) => c.inputTokens),
      cache_read_tokens: total((c) => c.cacheReadTokens),
      cache_write_tokens: total((c) => c.cacheWriteTokens),
      output_tokens: total((c) => c.outputTokens),
      reasoning_tokens: total((c) => c.reasoningTokens),
      patch_source: t.patchSource,
      patch_state: t.patchState,
      weight: t.weight,
      flags: flagsOf(t).join(' '),
    };
  });
  return toCsv(
    COLUMNS.map((header) => ({ header, value: (row: (typeof rows)[number]) => row[header] })),
    rows,
  );
}
