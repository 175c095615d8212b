/** End states that lie on an engine, each with what its labels say of the process and the container that it comes from. */
import { randomBytes } from 'node:crypto';
import type Docker from 'dockerode';
import { WORK_IMAGES } from '../../base/imageReference.ts';
import {
  isOwnerAlive,
  LABELS,
  type Liveness,
  type MachineFacts,
  thisMachine,
  WORK_LABELS,
} from '../owner.ts';
import { daemonAnswer, readFault } from '../places/dockerFault.ts';
import { commitContainer } from './seal.ts';

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
const workLabels = (container: string, owner: Readonly<Record<string, string>>) => ({
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

/** A large layer on a slow disk. */
const COMMIT_LIMIT_MS = 600_000;

export async function keepWork(container: Docker.Container): Promise<string> {
  const tag = randomBytes(12).toString('hex');
  const { Config } = await daemonAnswer(container.inspect());
  const committed = commitContainer(container, {
    _query: { repo: WORK_IMAGES, tag, comment: 'work of an agent' },
    _body: { Labels: workLabels(container.id, Config.Labels ?? {}) },
  });
  await daemonAnswer(committed, COMMIT_LIMIT_MS);
  return `${WORK_IMAGES}:${tag}`;
}

/** False also for one that nobody knows: a start says what is wrong. */
export async function holdsWork(docker: Docker, image: string): Promise<boolean> {
  try {
    await daemonAnswer(docker.getImage(image).inspect());
    return true;
  } catch {
    return false;
  }
}

/** Only what `keepWork` made; one that is gone already is no error. */
export async function discardWork(docker: Docker, image: string): Promise<void> {
  if (!image.startsWith(`${WORK_IMAGES}:`)) return;
  try {
    await daemonAnswer(docker.getImage(image).remove({ force: false }));
  } catch (error) {
    if (![404, 409].includes(readFault(error).status ?? 0)) throw error;
  }
}
