/** Measures instances of a run again in a new run with the same arm and rows, K epochs, graded. Its manifest names the first run. */

import type { Caller } from '../../run/caller.ts';
import { withRunLock } from '../../run/control/lock.ts';
import { plannedConfig } from '../../run/plan/planRecord.ts';
import { type RunOutcome, workOn } from '../../run/run.ts';
import { UserError } from '../../run/userError.ts';
import type { Store } from '../../store/open.ts';
import { remeasurementsOfRun } from '../../store/records/baselines.ts';
import {
  armsOf,
  insertRun,
  instancesOf,
  type RunRow,
  runByName,
  spentNano,
  storedManifest,
} from '../../store/records/runs.ts';

export interface RemeasureRequest {
  readonly store: Store;
  readonly root: string;
  readonly run: RunRow;
  readonly arm: string;
  readonly ids: readonly string[];
  readonly epochs: number;
  /** Called with the outcome of the new run. */
  readonly ended?: (outcome: RunOutcome) => void;
}

/** The rest of the run's budget, which covers the whole night. Null without a budget. */
function budgetLeft(store: Store, run: RunRow): number | null {
  if (run.budget_nano === null) return null;
  const runs = [run, ...remeasurementsOfRun(store, run.name)];
  return run.budget_nano - runs.reduce((sum, r) => sum + spentNano(store, r.id).committedNano, 0);
}

/** Undefined, with a warning, when the budget of the run leaves nothing for it. */
export async function remeasure(request: RemeasureRequest, caller: Caller): Promise<RunRow | undefined> {
  const { store, root, run, ids, epochs } = request;
  const planned = plannedConfig(run);
  const arm = planned.arms.find((a) => a.name === request.arm);
  if (run.imported === 1 || !arm)
    throw new UserError(`${run.name} cannot be measured again: swebatch did not configure it`, {
      next: { do: 'skip_remeasuring' },
    });
  const left = budgetLeft(store, run);
  if (left !== null && left <= 0) {
    caller.tell({
      level: 'warning',
      text: `the budget of ${run.name} is spent; nothing is measured again`,
    });
    return undefined;
  }
  // on_finish is for the end of the night and its verdict, not for this run.
  const { on_finish: _quiet, ...settings } = planned.run;
  const config = { ...settings, epochs };
  const grading = { ...planned.grading, enabled: true };
  const wanted = new Set(ids);
  const name = freeName(store, run.name);
  const createdAt = new Date().toISOString();
  const { id: _id, status: _status, finished_at: _end, ...recorded } = run;
  const again = insertRun(store, {
    run: {
      ...recorded,
      name,
      created_at: createdAt,
      config: JSON.stringify({ run: config, grading, arms: [arm] }),
      manifest: JSON.stringify({
        ...storedManifest(run),
        run_id: name,
        created_at: createdAt,
        remeasures: { run: run.name, arm: arm.name, instances: ids, epochs },
      }),
      budget_nano: left,
      emit_empty: 0,
      imported: 0,
    },
    arms: armsOf(store, run.id)
      .filter((a) => a.name === arm.name)
      .map((a) => ({ name: a.name, model: a.model, config: a.config })),
    instances: instancesOf(store, run.id)
      .filter((i) => wanted.has(i.instance_id))
      .map(({ id: _id, run_id: _run, position: _position, ...row }) => row),
    epochs,
  });
  caller.tell({ level: 'info', text: `run ${again.name}: ${ids.length} instance(s) x ${epochs}` });
  const outcome = await withRunLock({ store, root, runName: again.name, tell: caller.tell }, () =>
    workOn({ store, root, row: again, config, grading, arms: [arm] }, caller),
  );
  request.ended?.(outcome);
  return runByName(store, again.name)!;
}

function freeName(store: Store, name: string): string {
  for (let n = 1; ; n++) {
    const candidate = `${name}.again-${n}`;
    if (!runByName(store, candidate)) return candidate;
  }
}
