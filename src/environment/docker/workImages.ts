/** The end state of a container, kept as an image on its engine. */
import { randomBytes } from 'node:crypto';
import type Docker from 'dockerode';
import { WORK_IMAGES } from '../../base/imageReference.ts';
import type { SystemChanges } from '../environment.ts';
import { WORK_LABELS } from '../owner.ts';
import { daemonAnswer } from '../places/dockerFault.ts';
import { workLabels } from '../places/leftovers.ts';
import { commitContainer } from './seal.ts';
import { readChanges, systemChangesOf } from './systemChanges.ts';

/** A large layer on a slow disk. */
const COMMIT_LIMIT_MS = 600_000;

export async function keepWork(container: Docker.Container): Promise<string> {
  const tag = randomBytes(12).toString('hex');
  const { Config } = await daemonAnswer(container.inspect());
  const changes = await systemChangesOf(container);
  const committed = commitContainer(container, {
    _query: { repo: WORK_IMAGES, tag, comment: 'work of an agent' },
    _body: {
      Labels: {
        ...workLabels(container.id, Config.Labels ?? {}),
        [WORK_LABELS.changes]: JSON.stringify(changes),
      },
    },
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

export async function changesIn(docker: Docker, image: string): Promise<SystemChanges | undefined> {
  const { Config } = await daemonAnswer(docker.getImage(image).inspect());
  return readChanges(Config.Labels?.[WORK_LABELS.changes]);
}
