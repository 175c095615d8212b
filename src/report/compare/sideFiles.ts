/** Sides read from files of other tools: the harness's run report, leaderboard results, predictions with their reports. Parsing is pure. */
import { z } from 'zod';
import type { Facts } from '../measure/facts.ts';
import { type FellOut, repoOfId, type Side, type SideResult } from './side.ts';

const ids = z.array(z.string()).default([]);

/** Harness schema 2, and sb-cli's variant of it. Unknown keys are other people's additions. */
export const runReportSchema = z.looseObject({
  total_instances: z.number().optional(),
  completed_ids: ids,
  incomplete_ids: ids,
  empty_patch_ids: ids,
  submitted_ids: ids,
  resolved_ids: z.array(z.string()),
  unresolved_ids: ids,
  error_ids: ids,
  infra_failure_ids: z.array(z.string()).optional(),
  pending_ids: z.array(z.string()).optional(),
  failed_ids: ids,
  schema_version: z.number().optional(),
});
export type RunReport = z.infer<typeof runReportSchema>;

const bare = (instanceId: string, scores: readonly boolean[], why: FellOut | null): SideResult => ({
  instanceId,
  repo: repoOfId(instanceId),
  scores,
  why,
  costNano: null,
  tokens: null,
  steps: null,
  rowHash: null,
  imageDigest: null,
});

const asMap = (rows: readonly SideResult[]): ReadonlyMap<string, SideResult> =>
  new Map(rows.map((r) => [r.instanceId, r]));

/**
 * Resolved, unresolved and empty are verdicts. Errors, infrastructure failures and pending ones are not, although the official score
 * counts them as not resolved: the sensitivity of the comparison does.
 */
export function sideOfRunReport(report: RunReport, label: string): Side {
  const rows = new Map<string, SideResult>();
  const put = (list: readonly string[], scores: readonly boolean[], why: FellOut | null) => {
    for (const id of list) rows.set(id, bare(id, scores, why));
  };
  // Later lines win: the more specific list says more.
  put(report.submitted_ids, [], 'error');
  put(report.completed_ids, [], 'error');
  put(report.incomplete_ids, [], 'incomplete');
  put(report.pending_ids ?? [], [], 'incomplete');
  put(report.failed_ids, [], 'error');
  put(report.empty_patch_ids, [false], null);
  put(report.unresolved_ids, [false], null);
  put(report.resolved_ids, [true], null);
  // An unreadable report is both completed and an error; what the environment broke is listed as unresolved too.
  put(report.error_ids, [], 'error');
  const resolved = new Set(report.resolved_ids);
  put(
    (report.infra_failure_ids ?? []).filter((id) => !resolved.has(id)),
    [],
    'infra',
  );
  return {
    label,
    kind: 'run-report',
    model: null,
    epochs: 1,
    results: rows,
    open: null,
    facts: factsOfReport(report),
    partial: true,
    warnings:
      resolved.size < report.resolved_ids.length
        ? [
            `${label} lists ${report.resolved_ids.length - resolved.size} resolved id(s) twice; each counts once`,
          ]
        : [],
  };
}

/** Only dialect 5 lists what the environment broke; only the harness counts the instances of its dataset. */
function factsOfReport(report: RunReport): Facts {
  const hosted = report.pending_ids !== undefined;
  const dialect = report.infra_failure_ids === undefined ? 'v4.1' : 'v5';
  return new Map<string, unknown>([
    ...(hosted ? [] : ([['grading.dialects_seen', dialect]] as const)),
    ...(report.total_instances === undefined
      ? []
      : ([['dataset.instances', report.total_instances]] as const)),
  ]);
}

export const leaderboardSchema = z.looseObject({
  resolved: z.array(z.string()),
  no_generation: ids,
  no_logs: ids,
});

/** `byRepo` is resolved_by_repo.json, whose totals add up to the size of the dataset. */
export function sideOfLeaderboard(
  results: z.infer<typeof leaderboardSchema>,
  label: string,
  byRepo?: unknown,
): Side {
  const totals = z.record(z.string(), z.looseObject({ total: z.number() })).safeParse(byRepo);
  const sizes = totals.success
    ? new Map(Object.entries(totals.data).map(([repo, r]) => [repo, r.total]))
    : null;
  const total = sizes && [...sizes.values()].reduce((s, n) => s + n, 0);
  const resolved = new Set(results.resolved);
  const known = [
    ...results.no_generation.map((id) => bare(id, [false], null)),
    ...results.no_logs.map((id) => bare(id, [], 'no_logs' as const)),
    ...[...resolved].map((id) => bare(id, [true], null)),
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
      ...(resolved.size < results.resolved.length
        ? [`${label} lists ${results.resolved.length - resolved.size} resolved id(s) twice; each counts once`]
        : []),
    ],
  };
}

/** `reports`: instance id to the harness's verdict, absent where it left none. */
export function sideOfPredictions(
  predictions: readonly {
    instance_id: string;
    model_name_or_path?: string | undefined;
    model_patch: string | null;
  }[],
  reports: ReadonlyMap<string, boolean>,
  label: string,
): Side {
  const rows = predictions.map((p) => {
    const verdict = reports.get(p.instance_id);
    if (verdict !== undefined) return bare(p.instance_id, [verdict], null);
    // Without any report nobody graded these, and an empty patch is a failure only of a graded side.
    return reports.size > 0 && (p.model_patch ?? '') === ''
      ? bare(p.instance_id, [false], null)
      : bare(p.instance_id, [], 'not_graded');
  });
  return {
    label,
    kind: 'predictions',
    model: predictions[0]?.model_name_or_path ?? null,
    epochs: 1,
    results: asMap(rows),
    open: null,
    facts: new Map(),
    partial: true,
    warnings:
      reports.size === 0 ? [`no reports were found beside ${label}: nothing of it can be compared`] : [],
  };
}

/** SWE-bench Pro calls it `patch`. A row with neither is no prediction, and not an empty one. */
const predictionSchema = z
  .looseObject({
    instance_id: z.string(),
    model_name_or_path: z.string().optional(),
    model_patch: z.string().nullable().optional(),
    patch: z.string().nullable().optional(),
  })
  .refine((row) => row.model_patch !== undefined || row.patch !== undefined, 'it has no model_patch')
  .transform((row) => ({ ...row, model_patch: row.model_patch ?? row.patch ?? null }));

/** Object by id, array, or one object a line; a later duplicate wins, as in the harness. */
export function parsePredictions(text: string): z.infer<typeof predictionSchema>[] {
  const trimmed = text.trim();
  const whole = parseJson(trimmed);
  const rows: unknown[] =
    whole === undefined
      ? trimmed
          .split('\n')
          .filter((l) => l.trim() !== '')
          .map((l, i) => parseJson(l) ?? refuse(i + 1))
      : Array.isArray(whole)
        ? whole
        : typeof whole === 'object' && whole !== null && !('instance_id' in whole)
          ? Object.entries(whole).map(([id, row]) =>
              row && typeof row === 'object' ? { instance_id: id, ...row } : row,
            )
          : [whole];
  return [...new Map(rows.map((r) => predictionSchema.parse(r)).map((r) => [r.instance_id, r])).values()];
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function refuse(lineNumber: number): never {
  throw new SyntaxError(`line ${lineNumber} of the predictions is not JSON`);
}

/** A per-instance report.json is keyed by instance id in the harness and not in sb-cli. */
export function verdictOf(report: unknown, instanceId: string): boolean | undefined {
  const schema = z.looseObject({ resolved: z.boolean() });
  const keyed = z.record(z.string(), z.unknown()).safeParse(report);
  const inner = keyed.success && instanceId in keyed.data ? keyed.data[instanceId] : report;
  const found = schema.safeParse(inner);
  return found.success ? found.data.resolved : undefined;
}
