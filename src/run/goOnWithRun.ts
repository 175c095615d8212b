/** Continues a run from its record alone; sealed trials run again only when requested by class or id. */
import { dollarsToNano } from '../money.ts';
import type { ExitClass } from '../outcome.ts';
import type { Store } from '../store/open.ts';
import { type RunRow, runByName, setRunBudget } from '../store/records/runs.ts';
import { insertEvent } from '../store/records/steps.ts';
import { reopenTrials, trialLines, trialsOf } from '../store/records/trials.ts';
import type { Caller, Tell } from './caller.ts';
import { withRunLock } from './control/runLock.ts';
import { executeRun, type RunOutcome } from './executeRun.ts';
import { checkSameImages, tellOtherRevision } from './plan/continuity.ts';
import { type PlannedConfig, plannedConfig } from './plan/plannedConfig.ts';
import { preflight } from './plan/preflight.ts';
import { tellOtherAddress, withoutAddresses } from './plan/recordedAddress.ts';
import { requireRun } from './resultsRoot.ts';
import { UserError } from './userError.ts';

export interface ResumeOptions {
  /** Results root. */
  readonly results: string;
  /** Name, unique prefix, or "last". */
  readonly run: string;
  /** Run sealed trials of this class again. */
  readonly retry?: ExitClass | undefined;
  /** Run these instances once more. */
  readonly instances?: readonly string[] | undefined;
  /** From now on: slots, the budget of the whole run in dollars (0 for none), grading as predictions arrive. */
  readonly workers?: number | undefined;
  readonly costLimit?: number | undefined;
  readonly evaluate?: boolean | undefined;
  /** Continue even if an image has changed; recorded as a boundary. */
  readonly allowConfigChange?: boolean | undefined;
}

export async function goOnWithRun(store: Store, options: ResumeOptions, caller: Caller): Promise<RunOutcome> {
  const { results: root, workers, costLimit, evaluate } = options;
  const run = requireRun(store, options.run);
  if (run.imported === 1) throw new UserError(`${run.name} was imported; it has nothing to resume`);
  const planned = plannedConfig(run);
  const { arms, images } = planned;
  const config = { ...planned.run, ...(workers !== undefined && { workers }) };
  const grading = { ...planned.grading, ...(evaluate !== undefined && { enabled: evaluate }) };
  const asks = options.retry !== undefined || options.instances !== undefined || hasPending(store, run);
  await preflight({ arms, run: config, grading }, { ...caller, env: withoutAddresses(caller.env) }, asks);
  if (asks) tellOtherAddress(run, arms, caller);
  return withRunLock({ store, root, runName: run.name, tell: caller.tell }, async () => {
    if (costLimit !== undefined) setRunBudget(store, run.id, costLimit > 0 ? dollarsToNano(costLimit) : null);
    recordChanges(store, run, planned, options);
    reopen(store, run, options, caller.tell);
    tellOtherRevision(run, caller);
    await checkSameImages(store, run, arms, {
      allow: options.allowConfigChange ?? false,
      env: caller.env,
    });
    const current = runByName(store, run.name)!;
    return executeRun({ store, root, run: current, config, grading, images, arms }, caller);
  });
}

const hasPending = (store: Store, run: RunRow): boolean =>
  trialsOf(store, run.id).some(({ state }) => state !== 'sealed');

/** Records what this sitting changes, so that run.json shows it. */
function recordChanges(store: Store, run: RunRow, planned: PlannedConfig, options: ResumeOptions): void {
  const changed = [
    { key: 'run.workers', was: planned.run.workers, is: options.workers },
    { key: 'run.cost_limit', was: (run.budget_nano ?? 0) / 1e9, is: options.costLimit },
    { key: 'grading.enabled', was: planned.grading.enabled, is: options.evaluate },
  ].filter(({ was: before, is }) => is !== undefined && is !== before);
  if (changed.length > 0) insertEvent(store, run.id, new Date().toISOString(), 'limit_changed', { changed });
}

function reopen(store: Store, run: RunRow, { instances, retry }: ResumeOptions, tell: Tell): void {
  if (instances === undefined && retry === undefined) return;
  const lines = trialLines(store, run.id);
  const ids = new Set(instances);
  const known = new Set(lines.map((l) => l.instance_id));
  const unknown = [...ids].filter((id) => !known.has(id));
  if (unknown.length > 0) throw new UserError(`run ${run.name} has no instance ${unknown.join(', ')}`);
  const wanted = lines.filter(
    (l) =>
      l.state === 'sealed' &&
      (ids.has(l.instance_id) || (retry !== undefined && ids.size === 0 && l.exit_class === retry)),
  );
  if (wanted.length > 0)
    tell({
      level: 'info',
      text: `${wanted.length} sealed trial(s) run again; their earlier attempts are kept`,
    });
  reopenTrials(
    store,
    wanted.map((l) => l.trial_id),
  );
}
