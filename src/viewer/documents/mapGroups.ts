/** Trials on the page of a run: groups, sizes by cost, and what is missing. */
import { isGraded, standingOf } from '../../report/measure/score.ts';
import type { RunData } from '../../store/records/runData.ts';

/** Trials of a run in few bytes. */
export interface RunMap {
  run: number;
  total: number;
  /** Repositories, difficulties, arms, verdicts, classes and reasons, as cells name them by their place. */
  words: string[];
  cells: [
    instanceId: string,
    repo: number,
    difficulty: number,
    arm: number,
    epoch: number,
    verdict: number,
    exitClass: number,
    reason: number,
    costNano: number | null,
    steps: number | null,
    attempt: number | null,
  ][];
}

export type MapCell = ReturnType<typeof readCells>[number];

export function readCells({ words, cells }: RunMap) {
  return cells.map(
    ([instanceId, repo, difficulty, arm, epoch, verdict, exitClass, reason, costNano, steps, attempt]) => ({
      instanceId,
      repo: words[repo]!,
      difficulty: words[difficulty]!,
      arm: words[arm]!,
      epoch,
      verdict: words[verdict]!,
      exitClass: words[exitClass]!,
      reason: words[reason]!,
      costNano,
      steps,
      attempt,
    }),
  );
}

export type CellGroup = ReturnType<typeof groupCells>[number];

export type GroupBy = 'repo' | 'difficulty' | 'arm';

/** From easy to hard, as the people who judged SWE-bench Verified said it. */
const EFFORTS = ['<15 min fix', '15 min - 1 hour', '1-4 hours', '>4 hours'];

const ORDER = ['resolved', 'unresolved'];

/** Words that are not in the list come behind it. */
const placeIn = (list: readonly string[], word: string): number =>
  list.includes(word) ? list.indexOf(word) : list.length;

const byText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** Within a group what was resolved comes first and the dearest first, so that a group reads as a bar. */
const byVerdictAndCost = (a: MapCell, b: MapCell): number =>
  placeIn(ORDER, a.verdict) - placeIn(ORDER, b.verdict) ||
  byText(a.verdict, b.verdict) ||
  (b.costNano ?? -1) - (a.costNano ?? -1) ||
  byText(a.instanceId, b.instanceId);

export function groupCells(cells: readonly MapCell[], by: GroupBy) {
  const groups = [...Map.groupBy(cells, (cell) => cell[by])].map(([name, own]) => {
    const sorted = own.toSorted(byVerdictAndCost);
    return { name, cells: sorted };
  });
  if (by === 'difficulty')
    return groups.sort(
      (a, b) => placeIn(EFFORTS, a.name) - placeIn(EFFORTS, b.name) || byText(a.name, b.name),
    );
  return groups.sort((a, b) => b.cells.length - a.cells.length || byText(a.name, b.name));
}

/** Trials without a verdict, by why and by how they ended; the most frequent first. */
export function missingParts({ trials }: Pick<RunData, 'trials'>) {
  const parts = new Map<string, { verdict: string; reason: string; n: number }>();
  for (const own of Map.groupBy(trials, ({ arm }) => arm).values()) {
    const graded = isGraded(own);
    for (const trial of own) {
      const standing = standingOf(trial, graded);
      if (standing.valid) continue;
      const reason = trial.exitReason ?? trial.notRunReason ?? trial.state;
      const part = { verdict: standing.why, reason, n: 0 };
      const key = `${standing.why} ${reason}`;
      parts.set(key, { ...part, n: (parts.get(key)?.n ?? 0) + 1 });
    }
  }
  return [...parts.values()].sort((a, b) => b.n - a.n || byText(a.reason, b.reason));
}

const COST_SIZES = 5;

/** 1 to 5 by the fifth of the costs that a cell's cost is in; 0 where the cost is unknown. */
export function costSizes(cells: readonly MapCell[]): (cell: MapCell) => number {
  const costs = cells.flatMap(({ costNano }) => costNano ?? []).sort((a, b) => a - b);
  const limits = Array.from(
    { length: COST_SIZES - 1 },
    (_, i) => costs[Math.floor(((i + 1) * costs.length) / COST_SIZES)],
  );
  return ({ costNano }) =>
    costNano === null ? 0 : 1 + limits.filter((limit) => limit !== undefined && costNano >= limit).length;
}
