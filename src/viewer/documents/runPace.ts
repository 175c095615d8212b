/** How fast a run goes, and when it will be done at that rate. */
import type { RunDocument } from './resources.ts';

/** The rate over the last hour of work, and the time left at that rate; null before any attempt ended. */
export function paceOf(
  run: RunDocument,
): { perHour: number; nanoPerHour: number; leftMs: number; left: number } | null {
  const last = run.series.at(-1);
  if (!last) return null;
  const end = Date.parse(last.at);
  const since = Math.max(Date.parse(run.summary.createdAt), end - 3_600_000);
  const recent = run.series.filter((point) => Date.parse(point.at) > since);
  const hours = (end - since) / 3_600_000;
  if (hours <= 0 || recent.length === 0) return null;
  // Points may stand for several endings each.
  const before = run.series.at(-recent.length - 1) ?? { costNano: 0, ended: 0 };
  const left = run.summary.planned - run.summary.sealed;
  const perHour = (last.ended - before.ended) / hours;
  return {
    perHour,
    nanoPerHour: (last.costNano - before.costNano) / hours,
    leftMs: (left / perHour) * 3_600_000,
    left,
  };
}
