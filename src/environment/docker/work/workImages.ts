/** End states that lie on an engine, each with what its labels say of the process and the container that it comes from. */
import type Docker from 'dockerode';
import { WORK_IMAGES } from '../../../base/imageReference.ts';
import {
  isOwnerAlive,
  LABELS,
  type Liveness,
  type MachineFacts,
  thisMachine,
  WORK_LABELS,
} from '../../owner.ts';
import { daemonAnswer } from '../../places/dockerFault.ts';

export interface WorkImage {
  readonly name: string;
  /** Id of the container that it was made from; '' where no label says it. */
  readonly container: string;
  readonly run: string;
  readonly instance: string;
  readonly host: string;
  readonly pid: number;
  readonly owner: Liveness;
}

/** The labels of an owner under other names, so that no container of the image counts as that owner's. */
export const workLabels = (container: string, owner: Readonly<Record<string, string>>) => ({
  ...Object.fromEntries(Object.values(LABELS).map((label) => [label, ''])),
  ...Object.fromEntries(
    Object.values(LABELS).map((label) => [
      WORK_LABELS.owner + label.slice('swebatch.'.length),
      owner[label] ?? '',
    ]),
  ),
  [WORK_LABELS.work]: '1',
  [WORK_LABELS.container]: container,
});

const ownerOf = (labels: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(
    Object.values(LABELS).map((label) => [
      label,
      labels[WORK_LABELS.owner + label.slice('swebatch.'.length)] ?? '',
    ]),
  );

/** Every image that carries our labels and our name; an image that was made from one has other names. */
export async function listWorkImages(
  docker: Docker,
  machine: MachineFacts = thisMachine(),
): Promise<WorkImage[]> {
  const filters = { label: [`${WORK_LABELS.work}=1`] };
  const found = await daemonAnswer(docker.listImages({ filters }));
  return found.flatMap(({ RepoTags, Labels }) => {
    const labels = Labels ?? {};
    const owner = ownerOf(labels);
    const names = (RepoTags ?? []).filter((name) => name.startsWith(`${WORK_IMAGES}:`));
    return names.map((name) => ({
      ...{ name, container: labels[WORK_LABELS.container] ?? '' },
      ...{ run: owner[LABELS.run]!, instance: owner[LABELS.instance]!, host: owner[LABELS.host]! },
      ...{ pid: Number(owner[LABELS.pid]), owner: isOwnerAlive(owner, machine) },
    }));
  });
}
