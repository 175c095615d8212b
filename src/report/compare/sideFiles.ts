/** Sides read from files of other tools: the harness's run report, leaderboard results, predictions with their reports. Parsing is pure. */
import { isEmptyPatch, NO_MODEL, type Prediction } from '../../formats/predictions/readPredictions.ts';
import type { LeaderboardResults } from '../../formats/reports/leaderboardResults.ts';
import type { ReportedRun, ReportedVerdict } from '../../formats/reports/runReport.ts';
import type { Facts } from '../measure/runFacts.ts';
import { type FellOut, type Side, type SideResult, scoreOnly } from './side.ts';

const asMap = (rows: readonly SideResult[]): ReadonlyMap<string, SideResult> =>
  new Map(rows.map((r) => [r.instanceId, r]));

/** Resolved, unresolved and empty are verdicts; the others say why a verdict is missing. */
const NO_SCORE: Readonly<Record<ReportedVerdict, FellOut | null>> = {
  resolved: null,
  unresolved: null,
  empty_patch: null,
  error: 'error',
  pending: 'incomplete',
  incomplete: 'incomplete',
};

const repeatedWarning = (label: string, repeated: number): string[] =>
  repeated > 0 ? [`${label} lists ${repeated} resolved id(s) twice; each counts once`] : [];

/**
 * Errors, infrastructure failures and pending ones have no score here, although the official score counts them as not resolved: the
 * sensitivity of the comparison does.
 */
export function sideOfRunReport(report: ReportedRun, label: string): Side {
  const rows = [...report.verdicts].map(([id, verdict]) => {
    // What the environment broke is listed as unresolved or an error too.
    const broken = report.infra.has(id) && (verdict === 'unresolved' || verdict === 'error');
    const why = broken ? 'infra' : NO_SCORE[verdict];
    return scoreOnly(id, why === null ? [verdict === 'resolved'] : [], why);
  });
  return {
    label,
    kind: 'run-report',
    model: null,
    epochs: 1,
    results: asMap(rows),
    open: null,
    facts: factsOfReport(report),
    partial: true,
    warnings: repeatedWarning(label, report.repeated),
  };
}

const factsOfReport = ({ dialect, total }: ReportedRun): Facts =>
  new Map<string, unknown>([
    ...(dialect === null ? [] : ([['grading.dialects_seen', dialect]] as const)),
    ...(total === null ? [] : ([['dataset.instances', total]] as const)),
  ]);

/** `sizes` is resolved_by_repo.json, whose totals add up to the size of the dataset; null where it is not there. */
export function sideOfLeaderboard(
  results: LeaderboardResults,
  label: string,
  sizes: ReadonlyMap<string, number> | null,
): Side {
  const total = sizes && [...sizes.values()].reduce((s, n) => s + n, 0);
  const resolved = new Set(results.resolved);
  const known = [
    ...results.no_generation.map((id) => scoreOnly(id, [false], null)),
    ...results.no_logs.map((id) => scoreOnly(id, [], 'no_logs' as const)),
    ...[...resolved].map((id) => scoreOnly(id, [true], null)),
  ];
  return {
    label,
    kind: 'leaderboard',
    model: null,
    epochs: 1,
    results: asMap(known),
    open: { total, byRepo: sizes },
    facts: new Map(),
    partial: true,
    warnings: [
      `${label} lists resolved ids only: every other instance is taken as unresolved`,
      ...repeatedWarning(label, results.resolved.length - resolved.size),
    ],
  };
}

export const modelOfPredictions = (predictions: readonly Prediction[]): string | null => {
  const model = predictions[0]?.model_name_or_path ?? NO_MODEL;
  return model === NO_MODEL ? null : model;
};

/** `reports`: instance id to the harness's verdict; null where it ran and left none that can be read, absent where it never ran. */
export function sideOfPredictions(
  predictions: readonly Prediction[],
  reports: ReadonlyMap<string, boolean | null>,
  label: string,
): Side {
  const rows = predictions.map((p) => {
    const verdict = reports.get(p.instance_id);
    if (verdict === null) return scoreOnly(p.instance_id, [], 'error');
    if (verdict !== undefined) return scoreOnly(p.instance_id, [verdict], null);
    // Without any report nobody graded these, and an empty patch is a failure only of a graded side.
    return reports.size > 0 && isEmptyPatch(p.model_patch)
      ? scoreOnly(p.instance_id, [false], null)
      : scoreOnly(p.instance_id, [], 'not_graded');
  });
  return {
    label,
    kind: 'predictions',
    model: modelOfPredictions(predictions),
    epochs: 1,
    results: asMap(rows),
    open: null,
    facts: new Map(),
    partial: true,
    warnings:
      reports.size === 0 ? [`no reports were found beside ${label}: nothing of it can be compared`] : [],
  };
}
