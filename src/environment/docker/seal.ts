/**
 * Seals a repository's history once per image: the result is committed as a derived, labelled image that also holds the start
 * snapshot, so that its first container only has to verify. Removal in every container would cost a repack of the repository each time.
 */
import type Docker from 'dockerode';
import { z } from 'zod';
import { sha256 } from '../../base/sha256.ts';
import { sealHistory, verifySealed } from '../container/sealedHistory.ts';
import { EnvironmentError } from '../environment.ts';
import type { EnvironmentConfig } from '../environmentConfig.ts';
import type { Channel } from '../exec/channel.ts';
import { LABELS } from '../owner.ts';
import { type GitSnapshot, type ScriptRunner, takeSnapshot } from '../patch/capture.ts';
import { ifThere, readFault } from '../places/dockerFault.ts';
import { SEALED_LABELS } from '../places/imageEngine.ts';
import type { ImageFacts } from '../places/imageJobs.ts';

/** Raise it when the scripts change what a sealed image holds: older ones are then not used again. */
const SEAL_VERSION = 2;
export const SEALED_REPOSITORY = 'swebatch-sealed';
const FOLDER_NAME = 'start';

type SealResult =
  | {
      readonly state: 'sealed';
      /** Image to start attempts from. */
      readonly image: string;
      readonly fingerprint: string;
      readonly snapshot: GitSnapshot | undefined;
      readonly notes: readonly string[];
    }
  | { readonly state: 'absent' | 'failed'; readonly reason: string };

/** One name an image, work tree and user: what the derived image depends on. The base commit is only checked, never used. */
export function sealedTag(imageId: string, config: Pick<EnvironmentConfig, 'cwd' | 'user'>): string {
  const key = JSON.stringify([SEAL_VERSION, imageId, config.cwd, config.user ?? '']);
  return sha256(key).slice(0, 32);
}

const imageSchema = z.object({
  Id: z.string(),
  Config: z.object({
    Labels: z.record(z.string(), z.string()).nullish(),
    Entrypoint: z.array(z.string()).nullish(),
    Cmd: z.array(z.string()).nullish(),
  }),
});

const inspectImage = async (docker: Docker, name: string) =>
  ifThere(docker.getImage(name).inspect().then(imageSchema.parse));

/** A container to seal in: removed afterwards. */
export interface SealRoom {
  readonly container: { readonly handle: Docker.Container; remove(): Promise<void> };
  readonly channel: Channel;
  readonly asRoot: () => Promise<Channel | undefined>;
}
export type Sealer = ReturnType<typeof createSealer>;

export function createSealer(docker: Docker) {
  const known = new Map<string, Promise<SealResult>>();
  /** Finds or makes the sealed image. Whether it fits an instance's base commit is checked in a container of it. */
  const seal = async (
    image: ImageFacts,
    config: EnvironmentConfig,
    openRoom: () => Promise<SealRoom>,
  ): Promise<SealResult> => {
    const tag = sealedTag(image.id, config);
    let running = known.get(tag);
    if (!running) {
      running = (async () => (await findSealed(docker, tag)) ?? sealIn(openRoom, docker, config, image))();
      known.set(tag, running);
      // A failure of the daemon says nothing about the image: the next attempt tries again.
      running.catch(() => known.delete(tag));
      return running;
    }
    const result = await running;
    if (result.state !== 'sealed' || (await findSealed(docker, tag))) return result;
    // Somebody removed the image meanwhile (docker image prune).
    known.delete(tag);
    return seal(image, config, openRoom);
  };

  const verified = new Map<string, readonly string[]>();
  /**
   * Is this the sealed state, and does it fit the instance's base commit? A container in which nothing but the image has been at work answers for
   * all later ones of its image: what an image holds does not change.
   */
  const verify = async (
    run: ScriptRunner,
    config: EnvironmentConfig,
    sealed: { readonly image: string; readonly fingerprint: string },
    { baseCommit, untouched }: { readonly baseCommit: string | undefined; readonly untouched: boolean },
  ): Promise<Awaited<ReturnType<typeof verifySealed>>> => {
    const key = JSON.stringify([sealed.image, config.cwd, baseCommit]);
    const notes = untouched ? verified.get(key) : undefined;
    if (notes) return { reason: undefined, notes };
    const found = await verifySealed(run, config, sealed.fingerprint, baseCommit);
    if (untouched && found.reason === undefined) verified.set(key, found.notes);
    return found;
  };
  return { seal, verify };
}

async function findSealed(docker: Docker, tag: string): Promise<SealResult | undefined> {
  const found = await inspectImage(docker, `${SEALED_REPOSITORY}:${tag}`);
  const labels = found?.Config.Labels;
  if (!found || !labels || labels[SEALED_LABELS.version] !== String(SEAL_VERSION)) return undefined;
  const tree = labels[SEALED_LABELS.tree];
  const folder = labels[SEALED_LABELS.folder];
  return {
    state: 'sealed',
    image: found.Id,
    fingerprint: labels[SEALED_LABELS.fingerprint] ?? '',
    snapshot: tree && folder ? { kind: 'git', tree, folder } : undefined,
    notes: [],
  };
}

async function sealIn(
  openRoom: () => Promise<SealRoom>,
  docker: Docker,
  config: EnvironmentConfig,
  image: ImageFacts,
): Promise<SealResult> {
  const { container, channel, asRoot } = await openRoom();
  try {
    const verdict = await sealHistory(channel.harness, config, '', asRoot);
    if (verdict.state !== 'sealed') return { state: verdict.state, reason: verdict.text };
    const snapshot = await takeSnapshot(channel.harness, config.cwd, FOLDER_NAME, config.capture_timeout);
    // Processes that the scripts left end before the commit.
    await channel.killAll();
    const tag = sealedTag(image.id, config);
    const labels = {
      [SEALED_LABELS.version]: String(SEAL_VERSION),
      [SEALED_LABELS.source]: image.id,
      [SEALED_LABELS.sourceDigest]: image.digest,
      [SEALED_LABELS.fingerprint]: verdict.text,
      [SEALED_LABELS.tree]: snapshot?.tree ?? '',
      [SEALED_LABELS.folder]: snapshot?.folder ?? '',
    };
    const first = await commit(container.handle, docker, image, tag, labels);
    let made = await findSealed(docker, tag);
    if (!made) {
      await commit(container.handle, docker, image, tag, labels, 'instructions too');
      made = await findSealed(docker, tag);
      // The first commit has lost its name to the second.
      if (first !== undefined)
        await docker
          .getImage(first)
          .remove()
          .catch(() => undefined);
    }
    if (!made)
      throw new EnvironmentError(
        'start_failed',
        `the sealed image of ${image.id} was committed but is not there`,
      );
    return made.state === 'sealed' ? { ...made, notes: verdict.notes } : made;
  } finally {
    channel.close();
    await container.remove();
  }
}

/**
 * Resolves to the image's id. Podman 4 ignores the body of a commit, and takes the same settings as instructions of a Dockerfile
 * (observed: tests/environment/docker/sealByInstructions.test.ts).
 */
async function commit(
  container: Docker.Container,
  docker: Docker,
  image: ImageFacts,
  tag: string,
  sealedLabels: Readonly<Record<string, string>>,
  settingsAs: 'body' | 'instructions too' = 'body',
): Promise<string | undefined> {
  const source = await inspectImage(docker, image.id);
  // The owner's labels of this container must not pass to containers that others make from the image.
  const noOwner = Object.fromEntries(Object.values(LABELS).map((label) => [label, '']));
  const body = {
    ...(source?.Config.Entrypoint ? { Entrypoint: source.Config.Entrypoint } : {}),
    ...(source?.Config.Cmd ? { Cmd: source.Config.Cmd } : {}),
    Labels: { ...noOwner, ...sealedLabels },
  };
  const answer = await commitContainer(container, {
    _query: {
      repo: SEALED_REPOSITORY,
      tag,
      comment: 'history sealed by swebatch',
      ...(settingsAs === 'instructions too' && { changes: commitInstructions(body) }),
    },
    _body: body,
  });
  return z.object({ Id: z.string() }).safeParse(answer).data?.Id;
}

export function commitInstructions(body: {
  readonly Entrypoint?: readonly string[];
  readonly Cmd?: readonly string[];
  readonly Labels: Readonly<Record<string, string>>;
}): string {
  const quoted = (value: string) => JSON.stringify(value).replaceAll('$', '\\$');
  return [
    // The container's own would stay otherwise.
    `ENTRYPOINT ${JSON.stringify(body.Entrypoint ?? [])}`,
    ...(body.Cmd ? [`CMD ${JSON.stringify(body.Cmd)}`] : []),
    ...Object.entries(body.Labels).map(([label, value]) => `LABEL ${quoted(label)}=${quoted(value)}`),
  ].join('\n');
}

/**
 * The container stands still meanwhile where it can: rootless Podman on cgroup v1 cannot pause one and refuses (observed:
 * tests/environment/docker/commitContainer.test.ts). Callers have ended whatever ran in it before, so nothing writes then either.
 */
export async function commitContainer(
  container: Docker.Container,
  { _query, _body }: { readonly _query: Readonly<Record<string, string>>; readonly _body: object },
): Promise<unknown> {
  const commit = (pause: boolean): Promise<unknown> =>
    container.commit({ _query: { container: container.id, ..._query, pause }, _body });
  try {
    return await commit(true);
  } catch (error) {
    if (!/can ?not pause/.test(readFault(error).text)) throw error;
    return commit(false);
  }
}
