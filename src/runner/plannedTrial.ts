/** A trial with its arm, its instance and its images. */
import type { Instance } from '../dataset/instance.ts';
import type { InstanceRow } from '../store/records/runs.ts';
import type { TrialRow } from '../store/records/trials.ts';
import type { ArmRuntime } from './arms.ts';
import type { TrialLabel } from './events.ts';

export interface PlannedInstance {
  readonly row: InstanceRow;
  readonly instance: Instance;
}

export interface PlannedTrial {
  readonly id: number;
  readonly label: TrialLabel;
  readonly arm: ArmRuntime;
  readonly instance: Instance;
  readonly repo: string;
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
  const { row, instance } = instances.get(trial.instance_pk)!;
  return {
    id: trial.id,
    label: {
      trialId: trial.id,
      instanceId: instance.instance_id,
      arm: arm.row.name,
      epoch: trial.epoch,
    },
    arm,
    instance,
    repo: row.repo,
    image: arm.environment.image ?? row.image,
    gradedIn: row.image,
  };
};

/** The image that must be on an engine before the trial starts; undefined for an arm without containers. */
export const imageToBring = ({ arm, image }: PlannedTrial): string | undefined =>
  arm.environment.environment_class === 'docker' ? image : undefined;
