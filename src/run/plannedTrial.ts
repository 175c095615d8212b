/** A trial with its arm, its instance and its images, and how its container is asked for. */

import { withGivenVariables } from '../base/containerNeeds.ts';
import type { VariableValues } from '../base/hostVariables.ts';
import { isMadeHere } from '../base/imageReference.ts';
import { type Instance, instanceSchema } from '../dataset/instance.ts';
import type { StartRequest } from '../environment/environment.ts';
import { onEngines } from '../environment/environments.ts';
import { currentOwner } from '../environment/owner.ts';
import type { Store } from '../store/open.ts';
import { type InstanceFacts, instanceFacts, kindsOf, type RunRow, rowTextOf } from '../store/records/runs.ts';
import type { TrialRow } from '../store/records/trials.ts';
import { loadSuites, needsOf, rememberBuilds } from '../suites/suites.ts';
import { render } from '../template/render.ts';
import type { ArmRuntime } from './arms.ts';
import type { TrialLabel } from './events.ts';

export interface PlannedInstance {
  readonly row: InstanceFacts;
  /** The instance, read from the record each time: a large run does not fit into memory. */
  readonly instance: Instance;
}

/** The instances of a run, by their keys in the record. Suites of these instances are loaded. */
export async function plannedInstances(store: Store, run: RunRow): Promise<Map<number, PlannedInstance>> {
  await loadSuites(kindsOf(store, run.id));
  return new Map(
    instanceFacts(store, run.id).map((row) => [
      row.id,
      {
        row,
        get instance() {
          return instanceSchema.parse(JSON.parse(rowTextOf(store, row.id)));
        },
      },
    ]),
  );
}

export interface PlannedTrial {
  readonly id: number;
  readonly label: TrialLabel;
  readonly arm: ArmRuntime;
  readonly instance: Instance;
  /** The arm's own image, else the instance's. Unused by an arm without containers. */
  readonly image: string;
  /** The instance's own image, where its patch is graded. */
  readonly gradedIn: string;
}

export const plannedTrial = (
  trial: TrialRow,
  arms: ReadonlyMap<number, ArmRuntime>,
  instances: ReadonlyMap<number, PlannedInstance>,
): PlannedTrial => {
  const arm = arms.get(trial.arm_id)!;
  const planned = instances.get(trial.instance_pk)!;
  const { row } = planned;
  return {
    id: trial.id,
    label: {
      trialId: trial.id,
      instanceId: row.instance_id,
      arm: arm.row.name,
      epoch: trial.epoch,
    },
    arm,
    get instance() {
      return planned.instance;
    },
    image: arm.environment.image ?? row.image,
    gradedIn: row.image,
  };
};

/** The image that must be on an engine before the trial starts; undefined for an arm without containers. */
export function imageToBring(trial: PlannedTrial): string | undefined {
  const { arm, image } = trial;
  if (!onEngines(arm.environment)) return undefined;
  if (isMadeHere(image)) rememberBuilds(trial.instance);
  return image;
}

export function startRequestOf(
  { id, arm, instance, image }: PlannedTrial,
  runName: string,
  attemptNumber: number,
  variables: VariableValues,
): StartRequest {
  const { startup_command } = arm.environment;
  const { container } = needsOf(instance);
  return {
    instanceId: instance.instance_id,
    image,
    owner: currentOwner(runName, `${id}.${attemptNumber}`),
    baseCommit: instance.base_commit,
    ...(container && { container: withGivenVariables(container, variables) }),
    // The environment runs it before it saves the start tree, so that its changes do not count as the agent's work.
    ...(startup_command && {
      startupCommand: render(startup_command, { ...instance.extra, ...instance }),
    }),
  };
}
