/** The run report `<model>.<run>.json` (schema_version 2), with the fields and the order of each dialect. Pure. */

import { byCodePoint } from '../base/python/text.ts';
import type { RunReport } from '../formats/harness/runReport.ts';
import { isEmptyPatch, type Prediction } from '../formats/predictions.ts';
import type { InfraSignature } from './infra.ts';
import type { Dialect } from './parsers/logParser.ts';

/** The result of one prediction: its report.json, `unreadable` where that cannot be read, or null where there is none. */
export interface Completed {
  readonly report: { readonly resolved: boolean } | 'unreadable' | null;
  /** From its logs; used only for instances that are not resolved. */
  readonly infra?: InfraSignature | undefined;
}

/** Containers and images left behind, as the harness reports them when it has a Docker client. */
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

type Fate = 'incomplete' | 'empty' | 'error' | 'unreadable' | 'resolved' | 'unresolved';

function fateOf(prediction: Prediction | undefined, report: Completed['report']): Fate {
  if (!prediction) return 'incomplete';
  if (isEmptyPatch(prediction.model_patch)) return 'empty';
  if (report === null) return 'error';
  if (report === 'unreadable') return 'unreadable';
  return report.resolved ? 'resolved' : 'unresolved';
}

export function summarize(input: RunReportInput): RunReport {
  const { predictions, completed, dialect, leftovers } = input;
  const byId = new Map(predictions.map((prediction) => [prediction.instance_id, prediction]));
  const fates = Map.groupBy(new Set(input.instanceIds), (id) =>
    fateOf(byId.get(id), completed.get(id)?.report ?? null),
  );
  const idsOf = (...wanted: Fate[]): string[] => sorted(wanted.flatMap((fate) => fates.get(fate) ?? []));
  const ids = {
    // The harness counts a report that it cannot read as completed and as an error.
    completed: idsOf('resolved', 'unresolved', 'unreadable'),
    incomplete: idsOf('incomplete'),
    empty: idsOf('empty'),
    resolved: idsOf('resolved'),
    unresolved: idsOf('unresolved'),
    error: idsOf('error', 'unreadable'),
  };
  const failed = sorted([...ids.unresolved, ...ids.error]);
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
  const submitted = sorted(byId.keys());
  return {
    total_instances: input.instanceIds.length,
    submitted_instances: submitted.length,
    completed_instances: ids.completed.length,
    resolved_instances: ids.resolved.length,
    unresolved_instances: ids.unresolved.length,
    ...(v5 && {
      infra_failure_instances: tier('environment').length,
      ambiguous_failure_instances: tier('ambiguous').length,
    }),
    empty_patch_instances: ids.empty.length,
    error_instances: ids.error.length,
    completed_ids: ids.completed,
    incomplete_ids: ids.incomplete,
    empty_patch_ids: ids.empty,
    submitted_ids: submitted,
    resolved_ids: ids.resolved,
    unresolved_ids: ids.unresolved,
    ...(v5 && {
      infra_failure_ids: tier('environment'),
      ambiguous_failure_ids: tier('ambiguous'),
      failure_reasons: new Map([...reasons].map(([id, { reason }]) => [id, reason])),
    }),
    error_ids: ids.error,
    // 5.x writes the version before what was left behind, 4.x after it.
    ...(v5 ? { schema_version: 2, ...left } : { ...left, schema_version: 2 }),
  };
}
