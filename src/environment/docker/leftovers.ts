/** What a run left on its engines: containers of its own, and images of its dataset. The official run report names both. */

import { LABELS } from '../owner.ts';
import { engineOptionsOf } from '../places/chosenEngine.ts';
import { engineClient } from '../places/engineClient.ts';
import { labelsAreItsOwn } from './reaper.ts';

export interface Leftovers {
  readonly containers: readonly string[];
  readonly images: readonly string[];
}

const ANSWER_MS = 15_000;

/** The engine leaves its default registry out of the names of its images. */
const localName = (image: string): string => image.replace(/^(?:index\.)?docker\.io\//, '');

async function leftOn(host: string | undefined, run: string, images: readonly string[]): Promise<Leftovers> {
  const docker = engineClient(host === undefined ? undefined : engineOptionsOf(host));
  const abortSignal = AbortSignal.timeout(ANSWER_MS);
  const [present, labelled] = await Promise.all([
    docker.listImages({ abortSignal }),
    docker.listContainers({ all: true, filters: { label: [`${LABELS.run}=${run}`] }, abortSignal }),
  ]);
  const own = await Promise.all(labelled.map((container) => labelsAreItsOwn(docker, container)));
  const containers = labelled.filter((_, i) => own[i]);
  const names = new Set(
    present.flatMap((image) => [...(image.RepoTags ?? []), ...(image.RepoDigests ?? [])]),
  );
  return {
    containers: containers.map((container) => container.Names[0]?.replace(/^\//, '') ?? container.Id),
    images: images.map(localName).filter((image) => names.has(image)),
  };
}

/** `hosts`: names of engines, undefined for the default one. Undefined when one of them does not answer: then nothing is known. */
export async function leftoversOn(
  hosts: readonly (string | undefined)[],
  run: string,
  images: readonly string[],
): Promise<Leftovers | undefined> {
  try {
    const found = await Promise.all(hosts.map((host) => leftOn(host, run, images)));
    return {
      containers: [...new Set(found.flatMap(({ containers }) => containers))],
      images: [...new Set(found.flatMap((engine) => engine.images))],
    };
  } catch {
    return undefined;
  }
}
