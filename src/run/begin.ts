/** Begins a prepared run, or continues the run of that name if it is still the same. */
import { headOf } from '../dataset/instance.ts';
import type { Store } from '../store/open.ts';
import { leaveUnjudged } from '../store/records/baselines.ts';
import { insertRun, type RunRow, runByName } from '../store/records/runs.ts';
import { reopenTrials, type TrialLine, trialLines } from '../store/records/trials.ts';
import type { Caller } from './caller.ts';
import { withRunLock } from './control/runLock.ts';
import { executeRun, type RunOutcome } from './executeRun.ts';
import { checkSameImages, checkSameRun } from './plan/continuity.ts';
import { gatherManifest } from './plan/manifest.ts';
import { planRun, type RunRequest } from './plan/planRecord.ts';
import { withKeys } from './plan/resolveConfig.ts';
import type { PreparedRun } from './plan.ts';

/** `judged`: the night is no baseline until its verdict is there, whatever ends this process. */
export function beginRun(
  store: Store,
  prepared: PreparedRun,
  given: Caller,
  { judged = false }: { readonly judged?: boolean } = {},
): Promise<RunOutcome> {
  const { options, resolved, request } = prepared;
  const caller = withKeys(given, resolved);
  const root = options.results;
  return withRunLock({ store, root, runName: request.name, tell: caller.tell }, async () => {
    // Looked up under the lock, because another process may just have begun a run of this name.
    const existing = runByName(store, request.name);
    if (existing) await goOn(store, existing, prepared, caller);
    else await insertNew(store, prepared, caller);
    if (judged) leaveUnjudged(store, request.name);
    const run = runByName(store, request.name)!;
    return executeRun(
      {
        ...{ store, root, run },
        config: request.run,
        grading: request.grading,
        images: resolved.images,
        arms: request.arms,
        choose: chooserFor(store, run, request),
      },
      caller,
    );
  });
}

async function insertNew(
  store: Store,
  { request, resolved, options }: PreparedRun,
  { env, command }: Caller,
): Promise<RunRow> {
  const manifest = await gatherManifest(request, resolved, { env, command, failedIn: options.failedIn });
  return insertRun(store, planRun({ ...request, manifest }));
}

async function goOn(
  store: Store,
  run: RunRow,
  { options, request }: PreparedRun,
  { env, tell }: Caller,
): Promise<void> {
  const allow = options.allowConfigChange ?? false;
  checkSameRun(store, run, request, { allow, tell });
  await checkSameImages(store, run, request.arms, { allow, env });
  if (!options.redoExisting) return;
  const sealed = linesOf(store, run, request).filter((l) => l.state === 'sealed');
  reopenTrials(
    store,
    sealed.map((l) => l.trial_id),
  );
}

/** Only trials of the current selection: a run may be continued with a part of its instances. */
function chooserFor(store: Store, run: RunRow, request: RunRequest) {
  const ids = new Set(linesOf(store, run, request).map((l) => l.trial_id));
  return <T extends { id: number }>(trials: readonly T[]) => trials.filter((t) => ids.has(t.id));
}

function linesOf(store: Store, run: RunRow, { selected }: RunRequest): TrialLine[] {
  const wanted = new Set(selected.map((s) => headOf(s).instance_id));
  return trialLines(store, run.id).filter((l) => wanted.has(l.instance_id));
}
