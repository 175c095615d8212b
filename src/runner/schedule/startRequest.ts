/** What an environment is started with for a trial: the same when it is prepared before the trial has a slot, and in the slot itself. */

import type { StartRequest } from '../../environment/environment.ts';
import { currentOwner } from '../../environment/owner.ts';
import { render } from '../../template/render.ts';
import type { PlannedTrial } from '../plannedTrial.ts';

export function startRequestOf(
  { id, arm, instance, image }: PlannedTrial,
  runName: string,
  attemptNumber: number,
): StartRequest {
  const { startup_command } = arm.environment;
  return {
    instanceId: instance.instance_id,
    image,
    owner: currentOwner(runName, `${id}.${attemptNumber}`),
    baseCommit: instance.base_commit,
    // Run by the environment before the start tree is kept, so that what it does is not the agent's work.
    ...(startup_command && {
      startupCommand: render(startup_command, { ...instance.extra, ...instance }),
    }),
  };
}
