/** Removes containers of dead processes before new ones start. */
import { reap } from '../../environment/docker/reaper.ts';
import { reapEnvironments } from '../../environment/environments.ts';
import type { Caller } from '../caller.ts';
import type { ArmConfig } from '../plan/planRecord.ts';
import { requireEngine } from './engines.ts';
import { enginesOf } from './openImages.ts';

/** A daemon that hangs on one container may still serve others, so the run begins and reports what is left. */
const REAP_LIMIT_MS = 20_000;

/** The preflight checks that an engine answers; with several, one may be down and the run goes on without it. */
export async function reapOrphans(arms: readonly ArmConfig[], caller: Caller): Promise<void> {
  const { env, tell } = caller;
  for (const { what, removed, failed } of await reapEnvironments(arms)) {
    if (removed > 0)
      tell({ level: 'note', text: `removed ${removed} ${what}(s) that a dead process had left` });
    for (const name of failed)
      tell({ level: 'warning', text: `${what} ${name} could not be removed; the next run tries again` });
  }
  for (const host of enginesOf(arms)) {
    try {
      const { docker } = requireEngine(env, host);
      const { removed, failed } = await reap({ docker, limitMs: REAP_LIMIT_MS });
      if (removed.length > 0)
        tell({ level: 'note', text: `removed ${removed.length} container(s) that a dead process had left` });
      for (const { name } of failed)
        tell({ level: 'warning', text: `container ${name} could not be removed; the next run tries again` });
    } catch (error) {
      if (host === undefined) throw error;
    }
  }
}
