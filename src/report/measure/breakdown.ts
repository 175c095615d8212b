/** The trials of an arm by why they are missing, how they ended, what the grader said, and what part of the dataset they are of. */
import type { ExitClass, Outcome } from '../../outcome.ts';
import { type Score, type ScoredTrial, scoreOf } from './score.ts';
import type { Missing } from './verdict.ts';

export interface Slice extends Score {
  readonly key: string;
  readonly planned: number;
}

export interface Breakdown {
  readonly missing: readonly { readonly why: Missing; readonly n: number; readonly ids: readonly string[] }[];
  /** Sums to what was planned: a trial without an attempt is listed under why it was not run. */
  readonly byExitReason: readonly (Score & {
    readonly reason: string;
    readonly class: ExitClass | 'running';
    readonly n: number;
  })[];
  readonly byOutcome: readonly { readonly outcome: Outcome; readonly n: number }[];
  readonly byRepo: readonly Slice[];
  readonly byDifficulty: readonly Slice[];
}

export const breakdownOf = (rows: readonly ScoredTrial[], epochs: number): Breakdown => ({
  missing: missingOf(rows),
  byExitReason: reasonsOf(rows, epochs),
  byOutcome: outcomesOf(rows),
  byRepo: slices(rows, epochs, ({ trial }) => trial.repo || '(none)'),
  byDifficulty: slices(rows, epochs, ({ trial }) => trial.difficulty || '(none)'),
});

function missingOf(rows: readonly ScoredTrial[]): Breakdown['missing'] {
  const missing = rows.flatMap(({ instanceId: id, standing }) =>
    standing.valid ? [] : [{ id, why: standing.why }],
  );
  return [...Map.groupBy(missing, (m) => m.why)]
    .map(([why, group]) => ({ why, n: group.length, ids: group.map((m) => m.id) }))
    .sort((a, b) => b.n - a.n);
}

const reasonOf = ({ trial }: ScoredTrial): string =>
  trial.state === 'leased' || trial.state === 'running'
    ? 'running'
    : (trial.exitReason ?? trial.notRunReason ?? 'not started');

const reasonsOf = (rows: readonly ScoredTrial[], epochs: number): Breakdown['byExitReason'] =>
  [...Map.groupBy(rows, reasonOf)]
    .map(([reason, part]) => ({
      reason,
      class: reason === 'running' ? ('running' as const) : (part[0]!.trial.exitClass ?? 'not_run'),
      n: part.length,
      ...scoreOf(part, epochs),
    }))
    .sort((a, b) => b.n - a.n || (a.reason < b.reason ? -1 : 1));

const outcomesOf = (rows: readonly ScoredTrial[]): Breakdown['byOutcome'] =>
  [
    ...Map.groupBy(
      rows.map(({ trial }) => trial.outcome).filter((o) => o !== null),
      (outcome) => outcome,
    ),
  ]
    .map(([outcome, group]) => ({ outcome, n: group.length }))
    .sort((a, b) => b.n - a.n || (a.outcome < b.outcome ? -1 : 1));

const slices = (rows: readonly ScoredTrial[], epochs: number, keyOf: (row: ScoredTrial) => string): Slice[] =>
  [...Map.groupBy(rows, keyOf)]
    .map(([key, part]) => ({ key, planned: part.length, ...scoreOf(part, epochs) }))
    .sort((a, b) => b.planned - a.planned || (a.key < b.key ? -1 : 1));
