/** The container as the agent left it, kept as an image of this engine: a verifier starts from it, beside no process of the agent's. */
import { randomBytes } from 'node:crypto';
import type Docker from 'dockerode';
import { WORK_IMAGES } from '../../../base/imageReference.ts';
import { daemonAnswer, readFault } from '../../places/dockerFault.ts';
import { commitContainer } from '../commitContainer.ts';
import { workLabels } from './workImages.ts';

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
