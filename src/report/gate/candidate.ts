/** What the gate needs of the run under test, and the results of measuring some of its instances again. */
import type { RunData } from '../../store/records/reportQueries.ts';
import type { Side } from '../compare/side.ts';
import { summarize } from '../measure/summary.ts';
import type { Candidate } from './rules.ts';

const most = (scores: readonly boolean[]): boolean => scores.filter(Boolean).length * 2 > scores.length;

export function candidateOf(data: RunData, arm: string, side: Side): Candidate {
  const summary = summarize(data).arms.find((a) => a.arm === arm)!;
  return {
    label: side.label,
    planned: summary.planned,
    valid: summary.valid,
    resolved: summary.resolved.x,
    // Also what only its grading lost.
    infra: summary.missing
      .filter((m) => m.why === 'infra' || m.why === 'grading_infra')
      .reduce((s, m) => s + m.n, 0),
    cost: summary.accounting.cost,
    results: resultsOf(side),
  };
}

/** For a side that is a file: it knows neither cost nor infrastructure. */
export function candidateOfSide(side: Side): Candidate {
  const results = resultsOf(side);
  return {
    label: side.label,
    planned: side.results.size,
    valid: results.size,
    resolved: [...results.values()].filter(Boolean).length,
    infra: [...side.results.values()].filter((r) => r.why === 'infra').length,
    cost: { nano: null, atLeast: true },
    results,
  };
}

const resultsOf = (side: Side): Map<string, boolean> =>
  new Map(
    [...side.results.values()].filter((r) => r.scores.length > 0).map((r) => [r.instanceId, most(r.scores)]),
  );

/** Valid results of runs that measured instances again, all epochs together. */
export function remeasurementsOf(sides: readonly Side[]): Map<string, boolean[]> {
  const found = new Map<string, boolean[]>();
  for (const side of sides)
    for (const result of side.results.values())
      if (result.scores.length > 0)
        found.set(result.instanceId, [...(found.get(result.instanceId) ?? []), ...result.scores]);
  return found;
}
