/** Run reports made from recorded verdicts: one for each arm and epoch of a run. */
import { gunzipSync } from 'node:zlib';
import type { RunReport } from '../formats/harness/runReport.ts';
import type { Store } from '../store/open.ts';
import { type EvaluationRow, gradableTrials, verdictsOf } from '../store/records/evaluations.ts';
import { armsOf, instancesOf } from '../store/records/runs.ts';
import { classifyLog } from './infra.ts';
import type { Dialect } from './parsers/logParser.ts';
import { type Completed, type Leftovers, summarize } from './summarize.ts';

export interface StoredReport {
  readonly arm: string;
  readonly epoch: number;
  readonly model: string;
  readonly report: RunReport;
}

function completedOf(row: EvaluationRow): Completed {
  const infra =
    row.outcome === 'resolved' || row.outcome === 'empty_patch'
      ? undefined
      : classifyLog(row.log ? gunzipSync(row.log).toString('utf8') : '', row.error_message ?? '');
  return { report: row.report === null ? null : { resolved: row.resolved === 1 }, infra };
}

/**
 * `datasetIds`: the instances that the report covers, predictions included; default the run's own. A run of predictions may hold more than
 * one call asked for, and a score over instances that it did not ask for would mean nothing.
 */
export function storedReports(
  db: Store,
  runId: number,
  dialect: Dialect,
  datasetIds?: readonly string[],
  leftovers?: Leftovers,
): StoredReport[] {
  const idOf = new Map(instancesOf(db, runId).map((row) => [row.id, row.instance_id]));
  const arms = new Map(armsOf(db, runId).map((arm) => [arm.id, arm.name]));
  const verdicts = verdictsOf(db, runId);
  const whole = datasetIds && new Set(datasetIds);
  const asked = gradableTrials(db, runId).filter((t) => !whole || whole.has(idOf.get(t.instance_pk)!));
  const parts = Map.groupBy(asked, (trial) => `${trial.epoch} ${trial.arm_id}`);
  return [...parts.values()].map((trials) => ({
    arm: arms.get(trials[0]!.arm_id)!,
    epoch: trials[0]!.epoch,
    model: trials[0]!.model,
    report: summarize({
      instanceIds: datasetIds ?? [...idOf.values()],
      predictions: trials.map((trial) => ({
        instance_id: idOf.get(trial.instance_pk)!,
        model_name_or_path: trial.model,
        model_patch: trial.model_patch,
      })),
      completed: new Map(
        trials.flatMap((trial) => {
          const row = verdicts.get(trial.trial_id);
          return row ? [[idOf.get(trial.instance_pk)!, completedOf(row)] as const] : [];
        }),
      ),
      dialect,
      ...(leftovers && { leftovers }),
    }),
  }));
}
