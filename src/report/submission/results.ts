/** The results/ folder, derived again from the reports that go along, so that nobody has to believe our database. */
import { readInstanceReport } from '../../formats/harness/instanceReport.ts';

export interface Judged {
  readonly instanceId: string;
  readonly repo: string;
  /** Of the dataset row: the year counts. */
  readonly createdAt: string;
  readonly modelPatch: string;
  readonly report: string | null;
  readonly hasLog: boolean;
  /** What the database says. */
  readonly resolved: boolean;
}

type Tally = Record<string, { resolved: number; total: number }>;

export interface DerivedResults {
  readonly results: { no_generation: string[]; no_logs: string[]; resolved: string[] };
  readonly byRepo: Tally;
  readonly byTime: Tally;
  /** Where the reports and the database disagree. */
  readonly disagreements: readonly string[];
}

export function deriveResults(rows: readonly Judged[]): DerivedResults {
  const sorted = rows.toSorted((a, b) => (a.instanceId < b.instanceId ? -1 : 1));
  const resolvedOf = ({ modelPatch, report, instanceId }: Judged): boolean => {
    if (modelPatch === '' || report === null) return false;
    const read = readInstanceReport(report, instanceId);
    return read.ok && read.value.resolved;
  };
  const idsWhere = (test: (row: Judged) => boolean) => sorted.filter(test).map((r) => r.instanceId);
  const tally = (keyOf: (row: Judged) => string): Tally =>
    Object.fromEntries(
      [...Map.groupBy(sorted, keyOf)]
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .map(([key, group]) => [key, { resolved: group.filter(resolvedOf).length, total: group.length }]),
    );
  return {
    results: {
      no_generation: idsWhere((r) => r.modelPatch === ''),
      no_logs: idsWhere((r) => r.modelPatch !== '' && !r.hasLog),
      resolved: idsWhere(resolvedOf),
    },
    byRepo: tally((r) => r.repo),
    byTime: tally((r) => /^\d{4}/.exec(r.createdAt)?.[0] ?? 'unknown'),
    disagreements: idsWhere((r) => resolvedOf(r) !== r.resolved),
  };
}
