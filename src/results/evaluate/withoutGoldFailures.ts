/** The score without instances whose gold patch does not pass on this machine. */
import type { StoredReport } from '../../grading/storedReports.ts';
import type { Store } from '../../store/open.ts';
import { goldStandings } from '../../store/records/evaluations.ts';

export interface GoldFailures {
  readonly fails: readonly string[];
  readonly flaky: readonly string[];
  readonly resolved: number;
  readonly submitted: number;
}

/** Null when no instance of the report was calibrated. */
export function withoutGoldFailures(store: Store, part: StoredReport): GoldFailures | null {
  const standings = goldStandings(store);
  const bad = new Set(
    [...standings.values()].filter((row) => row.standing !== 'passes').map((row) => row.instance_id),
  );
  const submitted = part.report.submitted_ids;
  if (!submitted.some((id) => standings.has(id))) return null;
  const kept = submitted.filter((id) => !bad.has(id));
  const resolved = part.report.resolved_ids.filter((id) => !bad.has(id)).length;
  return {
    fails: submitted.filter((id) => standings.get(id)?.standing === 'fails'),
    flaky: submitted.filter((id) => standings.get(id)?.standing === 'flaky'),
    resolved,
    submitted: kept.length,
  };
}
