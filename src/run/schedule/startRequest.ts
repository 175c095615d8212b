/** The start request of a trial, the same whether its container is prepared in advance or started in the slot. */

import type { StartRequest } from '../../environment/environment.ts';
import { currentOwner } from '../../environment/owner.ts';
import { needsOf } from '../../suites/suites.ts';
import { render } from '../../template/render.ts';
import type { PlannedTrial } from '../plannedTrial.ts';

export function startRequestOf(
  { id, arm, instance, image }: PlannedTrial,
  runName: string,
  attemptNumber: number,
): StartRequest {
  const { startup_command } = arm.environment;
  const { container } = needsOf(instance);
  return {
    instanceId: instance.instance_id,
    image,
    owner: currentOwner(runName, `${id}.${attemptNumber}`),
    baseCommit: instance.base_commit,
    ...(container && { container }),
    // The environment runs it before it saves the start tree, so that its changes do not count as the agent's work.
    ...(startup_command && {
      startupCommand: render(startup_command, { ...instance.extra, ...instance }),
    }),
  };
}
