/** What an environment is started with for a trial: the same for a start ahead of its slot and for the slot itself. */

import type { StartRequest } from '../../environment/environment.ts';
import { currentOwner } from '../../environment/owner.ts';
import type { TrialRow } from '../../store/records/trials.ts';
import { render } from '../../template/render.ts';
import type { Batch } from '../runAttempt.ts';

export function startRequestOf(
  batch: Pick<Batch, 'arms' | 'instances' | 'run'>,
  trial: TrialRow,
  attemptNumber: number,
): StartRequest {
  const { environment } = batch.arms.get(trial.arm_id)!;
  const { instance, row } = batch.instances.get(trial.instance_pk)!;
  return {
    instanceId: instance.instance_id,
    image: environment.image ?? row.image,
    owner: currentOwner(batch.run.name, `${trial.id}.${attemptNumber}`),
    baseCommit: instance.base_commit,
    // Run by the environment before the start tree is kept, so that what it does is not the agent's work.
    ...(environment.startup_command && {
      startupCommand: render(environment.startup_command, { ...instance.extra, ...instance }),
    }),
  };
}
