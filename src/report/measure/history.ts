/** An instance across nights: how often it was resolved, how often that changed, and whether it deserves the label "flaky". Never excluded by it. */
import type { NightRow } from '../../store/records/baselines.ts';
import { type Proportion, proportion } from '../statistics/proportions.ts';
import { standingOf } from './score.ts';

export interface NightResult {
  readonly run: string;
  readonly at: string;
  readonly instanceId: string;
  /** Null: not validly finished that night. */
  readonly resolved: boolean | null;
}

type HistoryLabel = 'stable' | 'flaky' | 'changed' | 'new';

export interface InstanceHistory {
  readonly instanceId: string;
  readonly nights: readonly NightResult[];
  readonly resolved: Proportion;
  /** Changes between one valid result and the next. */
  readonly flips: number;
  readonly label: HistoryLabel;
  /** The probability of the newest result before it, by the history (Beta posterior); the flip of a coin is not news. */
  readonly expected: number | null;
}

/** A valid result is what a report counts as one: an empty patch of a graded run is a failure, an outage is a gap. */
export function nightOf(row: NightRow): NightResult {
  const standing = standingOf(
    {
      state: row.state,
      exitReason: row.exit_reason,
      exitClass: row.exit_class,
      notRunReason: row.not_run_reason,
      outcome: row.outcome,
      resolved: row.resolved === null ? null : row.resolved === 1,
      patchEmpty: row.patch_empty === 1,
    },
    row.graded === 1,
  );
  return {
    run: row.run,
    at: row.at,
    instanceId: row.instance_id,
    resolved: standing.valid ? standing.resolved : null,
  };
}

/** Oldest first. Epochs of one run are several results of one night. */
export function historyOf(results: readonly NightResult[]): InstanceHistory[] {
  const byTime = results.toSorted((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0));
  return [...Map.groupBy(byTime, (r) => r.instanceId)]
    .map(([instanceId, nights]) => instanceHistory(instanceId, nights))
    .sort((a, b) => b.flips - a.flips || (a.instanceId < b.instanceId ? -1 : 1));
}

function instanceHistory(instanceId: string, nights: readonly NightResult[]): InstanceHistory {
  const valid = nights.flatMap((n) => (n.resolved === null ? [] : [n.resolved]));
  const flips = valid.filter((r, i) => i > 0 && r !== valid[i - 1]).length;
  return {
    instanceId,
    nights,
    resolved: proportion(valid.filter(Boolean).length, valid.length),
    flips,
    label: labelOf(valid.length, flips),
    expected: expectedOf(valid),
  };
}

/** One change is a change (a better model, a broken tool); going back and forth is a coin. */
const labelOf = (n: number, flips: number): HistoryLabel =>
  flips >= 2 ? 'flaky' : flips === 1 ? 'changed' : n >= 2 ? 'stable' : 'new';

function expectedOf(valid: readonly boolean[]): number | null {
  if (valid.length < 2) return null;
  const before = valid.slice(0, -1);
  const rate = (1 + before.filter(Boolean).length) / (2 + before.length);
  return valid.at(-1) ? rate : 1 - rate;
}
