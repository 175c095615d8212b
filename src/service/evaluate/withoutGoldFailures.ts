/** What a calibration says about a score: instances whose own gold patch does not pass on this machine count against nobody. */
import type { StoredReport } from '../../grading/storedReports.ts';
import type { Store } from '../../store/open.ts';
import { goldStandings } from '../../store/records/calibration.ts';

export interface GoldScore {
  readonly fails: readonly string[];
  readonly flaky: readonly string[];
  readonly resolved: number;
  readonly submitted: number;
}

/** The score over the instances whose gold patch passes here, when a calibration found some that do not. */
export function withoutGoldFailures(store: Store, part: StoredReport): GoldScore | null {
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
