/** The run that a night is judged against, and the nights that could have been it and are not. */

import { UserError } from '../../run/userError.ts';
import type { Store } from '../../store/open.ts';
import { baselineRun, type ComparableRow, comparableRuns } from '../../store/records/baselines.ts';
import { findRun, type RunRow, type RunStatus } from '../../store/records/runs.ts';

export interface PassedOver {
  readonly run: string;
  readonly why: string;
}

export interface FoundBaseline {
  /** Undefined when nothing comparable exists. */
  readonly baseline: RunRow | undefined;
  /** Newer comparable nights that are no baseline, newest first. A person overrules it with `baseline set`, or by naming the run. */
  readonly passedOver: readonly PassedOver[];
}

/** Rejects a wrong name before the night is paid for. */
export function requireBaseline(store: Store, name: string, run: Pick<RunRow, 'name'>): void {
  if (name === 'last' || baselineRun(store, name)) return;
  const found = findRun(store, name);
  if ('id' in found && found.name !== run.name) return;
  throw new UserError(`there is no baseline or other run "${name}"`, { next: { do: 'find_baseline' } });
}

export function findBaseline(store: Store, name: string, run: RunRow): FoundBaseline {
  if (name === 'last') return lastGood(comparableRuns(store, run));
  const named = baselineRun(store, name);
  if (named) return { baseline: named, passedOver: [] };
  const found = findRun(store, name);
  return { baseline: 'id' in found ? found : undefined, passedOver: [] };
}

/** The newest one that nothing speaks against: else the night after a regression would be compared with the regression, and pass. */
function lastGood(rows: readonly ComparableRow[]): FoundBaseline {
  const passedOver: PassedOver[] = [];
  for (const row of rows) {
    const why = objectionTo(row);
    if (why === null) return { baseline: row, passedOver };
    passedOver.push({ run: row.name, why });
  }
  return { baseline: undefined, passedOver };
}

const ENDED: Record<Exclude<RunStatus, 'complete'>, string> = {
  running: 'it has not ended',
  paused: 'it has not ended',
  incomplete: 'it is incomplete',
  budget: 'its budget ended it',
  interrupted: 'it was interrupted',
  failed: 'it failed',
};

function objectionTo(row: ComparableRow): string | null {
  if (row.graded === 0) return 'it is not graded';
  if (row.chosen === 1) return null;
  return row.status === 'complete' ? objectionOfGate(row) : ENDED[row.status];
}

function objectionOfGate({ objections }: ComparableRow): string | null {
  if (objections === null) return null;
  const found = JSON.parse(objections) as { exit_code: number | null; failed: string[] }[];
  const failed = found.filter((o) => o.exit_code === 1);
  if (failed.length > 0)
    return `its gate failed: ${[...new Set(failed.flatMap((o) => o.failed))].join(', ')}`;
  return found.some((o) => o.exit_code === null)
    ? 'its gate was not finished'
    : 'its gate is incomplete: not all that broke could be measured again';
}
