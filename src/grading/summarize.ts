/** The run report `<model>.<run>.json` (schema_version 2), with the fields and the order of each dialect. Pure. */

import { byCodePoint } from '../base/python/codePoints.ts';
import { isEmptyPatch, type Prediction } from '../formats/predictions/readPredictions.ts';
import type { RunReport } from '../formats/reports/runReport.ts';
import type { InfraSignature } from './infra.ts';
import type { Dialect } from './parsers/logParser.ts';

/** What became of one prediction: what its report.json says, `unreadable` for one that cannot be read, or null where there is none. */
export interface Completed {
  readonly report: { readonly resolved: boolean } | 'unreadable' | null;
  /** From its logs; looked at for what is not resolved. */
  readonly infra?: InfraSignature | undefined;
}

/** What was left behind, as the harness reports it when it has a Docker client. */
export interface Leftovers {
  readonly containers: readonly string[];
  readonly images: readonly string[];
}

export interface RunReportInput {
  /** Of the dataset, after the choice of instances. */
  readonly instanceIds: readonly string[];
  readonly predictions: readonly Prediction[];
  readonly completed: ReadonlyMap<string, Completed>;
  readonly dialect: Dialect;
  readonly leftovers?: Leftovers;
}

const sorted = (ids: Iterable<string>): string[] => [...ids].sort(byCodePoint);

function sortOut({ instanceIds, predictions, completed }: RunReportInput) {
  const byId = new Map(predictions.map((prediction) => [prediction.instance_id, prediction]));
  const ids = {
    completed: new Set<string>(),
    incomplete: new Set<string>(),
    empty: new Set<string>(),
    resolved: new Set<string>(),
    unresolved: new Set<string>(),
    error: new Set<string>(),
  };
  for (const id of instanceIds) {
    const prediction = byId.get(id);
    const report = completed.get(id)?.report ?? null;
    if (!prediction) ids.incomplete.add(id);
    else if (isEmptyPatch(prediction.model_patch)) ids.empty.add(id);
    else if (report === null) ids.error.add(id);
    else {
      ids.completed.add(id);
      if (report === 'unreadable') ids.error.add(id);
      else (report.resolved ? ids.resolved : ids.unresolved).add(id);
    }
  }
  return ids;
}

export function summarize(input: RunReportInput): RunReport {
  const { predictions, completed, dialect, leftovers } = input;
  const ids = sortOut(input);
  const failed = sorted(new Set([...ids.unresolved, ...ids.error]));
  const reasons = new Map<string, InfraSignature>();
  for (const id of failed) {
    const infra = completed.get(id)?.infra;
    if (infra) reasons.set(id, infra);
  }
  const tier = (wanted: InfraSignature['tier']) => failed.filter((id) => reasons.get(id)?.tier === wanted);
  const v5 = dialect === 'v5';
  const left = leftovers && {
    unstopped_instances: leftovers.containers.length,
    unstopped_containers: sorted(leftovers.containers),
    unremoved_images: sorted(leftovers.images),
  };
  const submitted = new Set(predictions.map(({ instance_id }) => instance_id));
  return {
    total_instances: input.instanceIds.length,
    submitted_instances: submitted.size,
    completed_instances: ids.completed.size,
    resolved_instances: ids.resolved.size,
    unresolved_instances: ids.unresolved.size,
    ...(v5 && {
      infra_failure_instances: tier('environment').length,
      ambiguous_failure_instances: tier('ambiguous').length,
    }),
    empty_patch_instances: ids.empty.size,
    error_instances: ids.error.size,
    completed_ids: sorted(ids.completed),
    incomplete_ids: sorted(ids.incomplete),
    empty_patch_ids: sorted(ids.empty),
    submitted_ids: sorted(submitted),
    resolved_ids: sorted(ids.resolved),
    unresolved_ids: sorted(ids.unresolved),
    ...(v5 && {
      infra_failure_ids: tier('environment'),
      ambiguous_failure_ids: tier('ambiguous'),
      failure_reasons: new Map([...reasons].map(([id, { reason }]) => [id, reason])),
    }),
    error_ids: sorted(ids.error),
    // 5.x writes the version before what was left behind, 4.x after it.
    ...(v5 ? { schema_version: 2, ...left } : { ...left, schema_version: 2 }),
  };
}
