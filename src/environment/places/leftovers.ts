/**
 * Leftovers of dead processes on an engine: containers whose owner is provably dead, and end states that were kept as images. Nothing of
 * another live run, nothing of another machine, and nothing without our labels is touched.
 */

import type Docker from 'dockerode';
import { retry } from '../../base/async/timer.ts';
import { WORK_IMAGES } from '../../base/imageReference.ts';
import {
  isOwnerAlive,
  LABELS,
  type Liveness,
  type MachineFacts,
  PROGRAM_LABELS,
  thisMachine,
  WORK_LABELS,
} from '../owner.ts';
import { engineClient } from './chosenEngine.ts';
import { daemonAnswer, ifThere, readFault, withDaemonRetry } from './dockerFault.ts';

interface LabelledContainer {
  readonly id: string;
  readonly name: string;
  readonly image: string;
  readonly run: string;
  readonly attempt: string;
  readonly instance: string;
  readonly host: string;
  readonly pid: number;
  readonly startedAt: string;
  readonly state: string;
  readonly owner: Liveness;
  /** The volume that this container was filling with a program. */
  readonly fills?: string;
}

/** Every container that carries our labels, with what is known about its owner. */
export async function listContainers(docker: Docker, machine: MachineFacts): Promise<LabelledContainer[]> {
  const found = await docker.listContainers({
    all: true,
    filters: { label: [LABELS.run, LABELS.pid, LABELS.bootId] },
  });
  const listed = found.map((container) => {
    const label = (name: string) => container.Labels[name] ?? '';
    return {
      id: container.Id,
      name: container.Names[0]?.replace(/^\//, '') ?? '',
      image: container.Image,
      run: label(LABELS.run),
      attempt: label(LABELS.attempt),
      instance: label(LABELS.instance),
      host: label(LABELS.host),
      pid: Number(label(LABELS.pid)),
      startedAt: label(LABELS.started),
      state: container.State,
      owner: isOwnerAlive(container.Labels, machine),
      ...(label(PROGRAM_LABELS.fills) !== '' && { fills: label(PROGRAM_LABELS.fills) }),
    };
  });
  return Promise.all(
    listed.map(async (container, i) => {
      const own = container.owner !== 'dead' || (await labelsAreItsOwn(docker, found[i]!).catch(() => false));
      return own ? container : { ...container, owner: 'unknown' as const };
    }),
  );
}

/**
 * Labels can be copied. A name is one container's alone, but it is free again once ours is gone: who makes a container of that name from
 * an image that was committed from ours has all our labels too. Containers of older versions do not say their names (observed:
 * tests/environment/owner.test.ts).
 */
async function labelsAreItsOwn(docker: Docker, container: Docker.ContainerInfo): Promise<boolean> {
  const name = container.Labels[LABELS.name];
  if (name && !container.Names.includes(`/${name}`)) return false;
  const inherited = await labelsOfImage(docker, container.ImageID);
  // Somebody removed the image from under it: then the name alone must do.
  if (inherited === undefined) return name !== undefined && name !== '';
  return Object.values(LABELS).some((label) => container.Labels[label] !== inherited[label]);
}

/**
 * `docker commit` copies the labels of a container into the image. The labels of a container of ours were given to it alone: at least
 * the time of its start differs from what its image may carry (observed: tests/environment/owner.test.ts).
 */
async function labelsOfImage(docker: Docker, id: string): Promise<Record<string, string> | undefined> {
  const asked = () => daemonAnswer(docker.getImage(id).inspect());
  const image = await ifThere(withDaemonRetry(asked, [100, 400]));
  return image && (image.Config.Labels ?? {});
}

interface ReapResult {
  readonly orphans: readonly LabelledContainer[];
  readonly removed: readonly LabelledContainer[];
  /** Orphans that the daemon would not remove. */
  readonly failed: readonly (LabelledContainer & { readonly unanswered: boolean })[];
  /** Ours by label, kept because the owner lives or cannot be judged from here. */
  readonly kept: readonly LabelledContainer[];
}

export async function reap(
  options: { docker?: Docker; dryRun?: boolean; machine?: MachineFacts; limitMs?: number | undefined } = {},
): Promise<ReapResult> {
  const docker = options.docker ?? engineClient();
  const all = await daemonAnswer(listContainers(docker, options.machine ?? thisMachine()), options.limitMs);
  const orphans = all.filter((container) => container.owner === 'dead');
  const kept = all.filter((container) => container.owner !== 'dead');
  if (options.dryRun) return { orphans, removed: [], failed: [], kept };
  const gone = await Promise.all(
    orphans.map(async (orphan) => ({
      orphan,
      how: await removalOf(docker.getContainer(orphan.id), options.limitMs),
    })),
  );
  // A volume that a dead process was filling may be half full; another process that uses it keeps it.
  for (const { fills } of orphans)
    if (fills !== undefined) await removeProgramVolume(docker, fills).catch(() => false);
  return {
    orphans,
    removed: gone.filter(({ how }) => how === 'gone').map(({ orphan }) => orphan),
    failed: gone
      .filter(({ how }) => how !== 'gone')
      .map(({ orphan, how }) => ({ ...orphan, unanswered: how === 'unanswered' })),
    kept,
  };
}

/** A person's way to free a container that its engine does not answer for any more. */
export const FREED_BY =
  'where "ps -eo pid,stat,args" on the host of the engine shows a stopped (T) "runc init", "kill -9" of it frees the container';

/** `unanswered`: the engine took the request, and that was all. */
export type Removed = 'gone' | 'refused' | 'unanswered';

/** Waits for a removal that another has begun (observed: tests/environment/docker/lockedDaemon.test.ts). */
const BEGUN_MS: readonly number[] = [50, 100, 200, 500, 1000, 2000, 5000];

/** Removes at once, within the limit. A removal that another has begun is one that may come to nothing. Never rejects. */
export async function removalOf(container: Docker.Container, limitMs?: number): Promise<Removed> {
  const remove = () => withDaemonRetry(() => container.remove({ force: true, v: true }), [50, 200]);
  const begun = (error: unknown) => {
    const { status, text } = readFault(error);
    return status === 409 && /already in progress/i.test(text);
  };
  try {
    const removing = retry(remove, {
      delayMs: (error, tried) => (begun(error) ? BEGUN_MS[tried - 1] : undefined),
    });
    await daemonAnswer(removing, limitMs);
    return 'gone';
  } catch (error) {
    const { status, unanswered } = readFault(error);
    // Another reaper was faster (observed: "two reapers at once" in tests/environment/owner.test.ts).
    if (status === 404) return 'gone';
    return unanswered || begun(error) ? 'unanswered' : 'refused';
  }
}

export const removeContainer = async (container: Docker.Container, limitMs?: number): Promise<boolean> =>
  (await removalOf(container, limitMs)) === 'gone';

/** False where a container still has it. */
export async function removeProgramVolume(docker: Docker, volume: string): Promise<boolean> {
  try {
    await daemonAnswer(docker.getVolume(volume).remove());
    return true;
  } catch (error) {
    if (readFault(error).status === 404) return true;
    if (readFault(error).status === 409) return false;
    throw error;
  }
}

// Services: containers, networks and volumes of one attempt, which are called by one name.

export const servicesLabel = (name: string): string => `${LABELS.services}=${name}`;

/** Whether all of them are gone. Never rejects (observed: tests/environment/docker/unansweredImage.test.ts). */
export async function removeServices(docker: Docker, name: string, limitMs?: number): Promise<boolean> {
  try {
    const filters = { label: [servicesLabel(name)] };
    const containers = await daemonAnswer(docker.listContainers({ all: true, filters }), limitMs);
    const own = await Promise.all(containers.map((container) => labelsAreItsOwn(docker, container)));
    const gone = await Promise.all(
      containers.filter((_, i) => own[i]).map(({ Id }) => removeContainer(docker.getContainer(Id), limitMs)),
    );
    const [networks, volumes] = await Promise.all([
      daemonAnswer(docker.listNetworks({ filters }), limitMs),
      daemonAnswer(docker.listVolumes({ filters: JSON.stringify(filters) }), limitMs),
    ]);
    const parts = await Promise.all([
      ...listed(networks).map(({ Id }) => isRemoved(docker.getNetwork(Id).remove(), limitMs)),
      ...listed(volumes.Volumes).map(({ Name }) => isRemoved(docker.getVolume(Name).remove(), limitMs)),
    ]);
    return [...gone, ...parts].every(Boolean);
  } catch {
    return false;
  }
}

/** Some engines say nothing, and no empty list, where there is none. */
const listed = <T>(answer: readonly T[] | null | undefined): readonly T[] =>
  Array.isArray(answer) ? answer : [];

async function isRemoved(removing: Promise<unknown>, limitMs?: number): Promise<boolean> {
  try {
    await daemonAnswer(removing, limitMs);
    return true;
  } catch (error) {
    return readFault(error).status === 404;
  }
}

export interface ServicePart {
  readonly what: 'network' | 'volume';
  readonly name: string;
  readonly run: string;
  readonly instance: string;
  readonly host: string;
  readonly pid: number;
  readonly owner: Liveness;
}

/** Networks and volumes of services; nobody but us has our labels on one, as they come from no image. */
async function serviceParts(docker: Docker, machine: MachineFacts, limitMs?: number): Promise<ServicePart[]> {
  const filters = { label: [LABELS.services, LABELS.pid, LABELS.bootId] };
  const [networks, volumes] = await Promise.all([
    daemonAnswer(docker.listNetworks({ filters }), limitMs),
    daemonAnswer(docker.listVolumes({ filters: JSON.stringify(filters) }), limitMs),
  ]);
  const part = (what: ServicePart['what'], name: string, labels: Readonly<Record<string, string>>) => ({
    what,
    name,
    run: labels[LABELS.run] ?? '',
    instance: labels[LABELS.instance] ?? '',
    host: labels[LABELS.host] ?? '',
    pid: Number(labels[LABELS.pid]),
    owner: labels[LABELS.name] === name ? isOwnerAlive(labels, machine) : ('unknown' as const),
  });
  return [
    ...listed(networks).map(({ Name, Labels }) => part('network', Name, Labels ?? {})),
    ...listed(volumes.Volumes).map(({ Name, Labels }) => part('volume', Name, Labels ?? {})),
  ];
}

/** Networks and volumes of services of dead processes; their containers are removed before. */
export async function reapServiceParts(
  docker: Docker,
  options: { dryRun?: boolean; machine?: MachineFacts; limitMs?: number } = {},
) {
  const { dryRun = false, machine = thisMachine(), limitMs } = options;
  const all = await serviceParts(docker, machine, limitMs);
  const orphans = all.filter(({ owner }) => owner === 'dead');
  const kept = all.filter(({ owner }) => owner !== 'dead');
  if (dryRun) return { orphans, removed: [], failed: [], kept };
  const gone = await Promise.all(
    orphans.map(({ what, name }) =>
      isRemoved(
        what === 'network' ? docker.getNetwork(name).remove() : docker.getVolume(name).remove(),
        limitMs,
      ),
    ),
  );
  return {
    orphans,
    kept,
    removed: orphans.filter((_, i) => gone[i]),
    failed: orphans.filter((_, i) => !gone[i]),
  };
}

export interface Leftovers {
  readonly containers: readonly string[];
  readonly images: readonly string[];
}

/** Runs of other results roots may have the name too. */
interface RecordedRun {
  readonly name: string;
  readonly created_at: string;
}

const ANSWER_MS = 15_000;

/** The engine leaves its default registry out of the names of its images. */
const localName = (image: string): string => image.replace(/^(?:index\.)?docker\.io\//, '');

async function leftNow(run: RecordedRun, images: readonly string[]): Promise<Leftovers> {
  const docker = engineClient();
  const abortSignal = AbortSignal.timeout(ANSWER_MS);
  const [present, labelled] = await Promise.all([
    docker.listImages({ abortSignal }),
    docker.listContainers({
      all: true,
      filters: { label: [`${LABELS.run}=${run.name}`, `${LABELS.runCreated}=${run.created_at}`] },
      abortSignal,
    }),
  ]);
  const own = await Promise.all(labelled.map((container) => labelsAreItsOwn(docker, container)));
  const containers = labelled.filter((_, i) => own[i]);
  const names = new Set(
    present.flatMap((image) => [...(image.RepoTags ?? []), ...(image.RepoDigests ?? [])]),
  );
  return {
    containers: containers.map((container) => container.Names[0]?.replace(/^\//, '') ?? container.Id),
    images: [...new Set(images.map(localName))].filter((image) => names.has(image)),
  };
}

/** Undefined when the engine does not answer: then nothing is known. */
export const leftoversOf = (run: RecordedRun, images: readonly string[]): Promise<Leftovers | undefined> =>
  leftNow(run, images).catch(() => undefined);

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
      name,
      container: labels[WORK_LABELS.container] ?? '',
      run: owner[LABELS.run]!,
      instance: owner[LABELS.instance]!,
      host: owner[LABELS.host]!,
      pid: Number(owner[LABELS.pid]),
      owner: isOwnerAlive(owner, machine),
    }));
  });
}

/** The name of an end state's services; undefined where it has none, or is gone. */
export async function servicesOfWork(docker: Docker, image: string): Promise<string | undefined> {
  const labels = await labelsOfImage(docker, image);
  return labels?.[WORK_LABELS.owner + LABELS.services.slice('swebatch.'.length)] || undefined;
}

/** Removes only images that `keepWork` made; one that is gone already is no error. */
export async function discardWork(docker: Docker, image: string): Promise<void> {
  if (!image.startsWith(`${WORK_IMAGES}:`)) return;
  // Services stayed for the verifier of the end state.
  const services = await servicesOfWork(docker, image);
  if (services !== undefined && !(await removeServices(docker, services)))
    throw new Error(`the services ${services} of ${image} could not be removed`);
  try {
    await daemonAnswer(docker.getImage(image).remove({ force: false }));
  } catch (error) {
    if (![404, 409].includes(readFault(error).status ?? 0)) throw error;
  }
}
