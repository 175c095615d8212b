/**
 * Where a run begins: its plan becomes a run of the record, or goes on with the run of that name if it is still the same; or a run goes on from
 * its record alone. Each holds the lock of the run until the work is over.
 */
import { dirname } from 'node:path';
import { parseSize } from '../base/text/units.ts';
import { headOf } from '../dataset/dataset.ts';
import { dollarsToNano } from '../money.ts';
import type { ExitClass, Outcome } from '../outcome.ts';
import type { Store } from '../store/open.ts';
import { insertEvent } from '../store/records/attemptBodies.ts';
import { leaveUnjudged } from '../store/records/baselines.ts';
import { insertRun, type RunRow, runByName, setRunBudget } from '../store/records/runs.ts';
import { reopenTrials, type TrialLine, trialLines, trialsOf } from '../store/records/trials.ts';
import type { Caller, Tell } from './caller.ts';
import { withRunLock } from './control/lock.ts';
import { requireInstances } from './namedTrials.ts';
import {
  checkSameImages,
  checkSameRun,
  tellOtherAddress,
  tellOtherRevision,
  withoutAddresses,
} from './plan/continuity.ts';
import { gatherManifest } from './plan/manifest.ts';
import {
  type PlannedConfig,
  plannedConfig,
  type RunRequest,
  refuseSeveralEngines,
  runRows,
} from './plan/planRecord.ts';
import { preflight } from './plan/preflight.ts';
import type { ResolvedConfig } from './plan/resolveConfig.ts';
import type { Plan } from './plan.ts';
import { refuseSmallDisk, requireRun } from './resultsRoot.ts';
import { type RunOutcome, workOn } from './run.ts';
import { UserError } from './userError.ts';

/** The caller with the keys that the configuration itself holds. */
const withKeys = (caller: Caller, { keys }: Pick<ResolvedConfig, 'keys'>): Caller => ({
  ...caller,
  env: { ...caller.env, ...keys },
});

/** `judged`: the night is no baseline until its verdict is there, whatever ends this process. */
export function beginRun(
  store: Store,
  plan: Plan,
  given: Caller,
  { judged = false }: { readonly judged?: boolean } = {},
): Promise<RunOutcome> {
  const { options, resolved, request } = plan;
  const caller = withKeys(given, resolved);
  const root = options.results;
  return withRunLock({ store, root, runName: request.name, tell: caller.tell }, async () => {
    // Looked up under the lock, because another process may just have begun a run of this name.
    const existing = runByName(store, request.name);
    if (existing) await continued(store, existing, plan, caller);
    else {
      const asked = { env: caller.env, cwd: caller.cwd, command: caller.command, failedIn: options.failedIn };
      const manifest = await gatherManifest(request, resolved, asked);
      insertRun(store, runRows({ ...request, manifest }));
    }
    if (judged) leaveUnjudged(store, request.name);
    const run = runByName(store, request.name)!;
    return workOn(
      {
        store,
        root,
        row: run,
        config: request.run,
        grading: request.grading,
        images: resolved.images,
        suite: request.suite,
        arms: request.arms,
        choose: chooserFor(store, run, request),
      },
      caller,
    );
  });
}

async function continued(
  store: Store,
  run: RunRow,
  { options, request }: Plan,
  { env, tell }: Caller,
): Promise<void> {
  const allow = options.allowConfigChange ?? false;
  refuseSeveralEngines(run);
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

/** Verdicts after which a trial can be asked for again; `infra` is the class of its attempt. */
export const JUDGED = [
  'unresolved',
  'empty_patch',
  'apply_failed',
  'timeout',
  'invalid',
  'ungradable',
] as const satisfies readonly Outcome[];
export type Retried = ExitClass | (typeof JUDGED)[number];

export interface ResumeOptions {
  /** Results root. */
  readonly results: string;
  /** Name, unique prefix, or "last". */
  readonly run: string;
  /** Run sealed trials of this class again, or those with this verdict. */
  readonly retry?: Retried | undefined;
  /** Run these instances once more: ids, or parts that only one id has. */
  readonly instances?: readonly string[] | undefined;
  /** From now on: slots, the budget of the whole run in dollars (0 for none), grading as predictions arrive. */
  readonly workers?: number | undefined;
  readonly costLimit?: number | undefined;
  readonly evaluate?: boolean | undefined;
  /** Continue even if an image has changed; recorded as a boundary. */
  readonly allowConfigChange?: boolean | undefined;
}

/** Goes on with a run from its record alone; sealed trials run again only when they are asked for by class or id. */
export async function goOnWithRun(store: Store, options: ResumeOptions, caller: Caller): Promise<RunOutcome> {
  const { results: root, workers, costLimit, evaluate } = options;
  const run = requireRun(store, options.run);
  if (run.imported === 1) throw new UserError(`${run.name} was imported; it has nothing to resume`);
  refuseSeveralEngines(run);
  const planned = plannedConfig(run);
  refuseSmallDisk(root, parseSize(planned.run.disk_floor));
  const { arms, images, suite } = planned;
  const config = { ...planned.run, ...(workers !== undefined && { workers }) };
  const grading = { ...planned.grading, ...(evaluate !== undefined && { enabled: evaluate }) };
  const asks = options.retry !== undefined || options.instances !== undefined || hasPending(store, run);
  await preflight(
    { arms, run: config, grading, suite },
    { ...caller, env: withoutAddresses(caller.env) },
    asks,
  );
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
    return workOn({ store, root, row: current, config, grading, images, suite, arms }, caller);
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
  const ids = new Set(requireInstances(store, run, instances ?? []));
  const lines = trialLines(store, run.id);
  const isMeant = (line: TrialLine): boolean =>
    ids.size > 0 ? ids.has(line.instance_id) : retry === line.exit_class || retry === line.outcome;
  const byVerdict = ids.size === 0 && (JUDGED as readonly (string | undefined)[]).includes(retry);
  if (byVerdict && lines.every(({ outcome }) => outcome === null))
    throw new UserError(`run ${run.name} has no verdicts`, {
      next: { do: 'grade_run', results: dirname(store.name), run: run.name },
    });
  const wanted = lines.filter((line) => line.state === 'sealed' && isMeant(line));
  tell(
    wanted.length > 0
      ? {
          level: 'info',
          text: `${wanted.length} sealed trial(s) run again; their earlier attempts are kept`,
        }
      : { level: 'info', text: `no sealed trial of ${run.name} is ${retry ?? 'meant'}: none runs again` },
  );
  // The later verdict counts, and only what failed had a second try.
  if (byVerdict && wanted.length > 0)
    tell({
      level: 'warning',
      text: `what is ${retry} gets another try and what is resolved does not: the score of ${run.name} is no pass@1 from here on`,
    });
  reopenTrials(
    store,
    wanted.map((l) => l.trial_id),
  );
}
