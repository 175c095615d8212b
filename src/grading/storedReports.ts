/** Run reports made from recorded verdicts: one for each arm and epoch of a run. */

import { gunzipSync } from 'node:zlib';
import { byCodePoint } from '../base/python/text.ts';
import type { RunReport } from '../formats/harness/runReport.ts';
import { isEmptyPatch, type Prediction } from '../formats/predictions.ts';
import type { Store } from '../store/open.ts';
import { type EvaluationRow, gradableTrials, verdictsOf } from '../store/records/evaluations.ts';
import { armsOf, instancesOf } from '../store/records/runs.ts';
import type { HarnessVersion } from './parsers/logParser.ts';
import { classifyLog, type InfraSignature } from './readLog.ts';

/**
 * `datasetIds`: the instances that the report covers, predictions included; default the run's own. A run of predictions may hold more than
 * one call asked for, and a score over instances that it did not ask for would mean nothing.
 */
export function storedReports(
  db: Store,
  runId: number,
  harness: HarnessVersion,
  datasetIds?: readonly string[],
  leftovers?: Leftovers,
) {
  const idOf = new Map(instancesOf(db, runId).map((row) => [row.id, row.instance_id]));
  const arms = new Map(armsOf(db, runId).map((arm) => [arm.id, arm.name]));
  const verdicts = verdictsOf(db, runId);
  const instanceIds = datasetIds ?? [...idOf.values()];
  const whole = datasetIds && new Set(datasetIds);
  const asked = gradableTrials(db, runId).filter((t) => !whole || whole.has(idOf.get(t.instance_pk)!));
  const parts = Map.groupBy(asked, (trial) => `${trial.epoch} ${trial.arm_id}`);
  return [...parts.values()].map((trials) => {
    const { arm_id, epoch, model } = trials[0]!;
    const completed = new Map<string, Completed>();
    const predictions = trials.map((trial): Prediction => {
      const instance_id = idOf.get(trial.instance_pk)!;
      const row = verdicts.get(trial.trial_id);
      if (row) completed.set(instance_id, completedOf(row));
      return { instance_id, model_name_or_path: trial.model, model_patch: trial.model_patch };
    });
    const report = summarizeEvaluation({ instanceIds, predictions, completed, harness, leftovers });
    return { arm: arms.get(arm_id)!, epoch, model, report };
  });
}
export type StoredReport = ReturnType<typeof storedReports>[number];

function completedOf({ outcome, log, error_message, report, resolved }: EvaluationRow): Completed {
  const failed = outcome !== 'resolved' && outcome !== 'empty_patch';
  const text = () => (log ? gunzipSync(log).toString('utf8') : '');
  return {
    report: report === null ? null : { resolved: resolved === 1 },
    infra: failed ? classifyLog(text(), error_message ?? '') : undefined,
  };
}

// The run report `<model>.<run>.json` (schema_version 2), with the fields and the order of each version. Pure.

/** The result of one prediction: its report.json, `unreadable` where that cannot be read, or null where there is none. */
interface Completed {
  readonly report: { readonly resolved: boolean } | 'unreadable' | null;
  /** The signature in its logs; used only for instances that are not resolved. */
  readonly infra?: InfraSignature | undefined;
}

/** Containers and images left behind, as the harness reports them when it has a Docker client. */
interface Leftovers {
  readonly containers: readonly string[];
  readonly images: readonly string[];
}

const sorted = (ids: Iterable<string>): string[] => [...ids].sort(byCodePoint);

export function summarizeEvaluation(input: {
  /** The ids of the dataset, after the choice of instances. */
  readonly instanceIds: readonly string[];
  readonly predictions: readonly Prediction[];
  readonly completed: ReadonlyMap<string, Completed>;
  readonly harness: HarnessVersion;
  readonly leftovers?: Leftovers | undefined;
}): RunReport {
  const { predictions, completed, harness, leftovers } = input;
  const byId = new Map(predictions.map((prediction) => [prediction.instance_id, prediction]));
  const fates = Map.groupBy(new Set(input.instanceIds), (id) => {
    const prediction = byId.get(id);
    if (!prediction) return 'incomplete';
    const report = completed.get(id)?.report ?? null;
    // Where the state of a container is graded, no patch is no lack of work.
    if (isEmptyPatch(prediction.model_patch) && report === null) return 'empty';
    if (report === null) return 'error';
    if (report === 'unreadable') return 'unreadable';
    return report.resolved ? 'resolved' : 'unresolved';
  });
  type Fate = Parameters<typeof fates.get>[0];
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
  const reasons = new Map(
    failed.flatMap((id) => {
      const infra = completed.get(id)?.infra;
      return infra ? [[id, infra] as const] : [];
    }),
  );
  const tier = (wanted: InfraSignature['tier']) => failed.filter((id) => reasons.get(id)?.tier === wanted);
  const v5 = harness === 'v5';
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
