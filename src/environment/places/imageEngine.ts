/** The operations on a container engine that image handling needs. */

import type Docker from 'dockerode';
import { z } from 'zod';
import { OWN_HOST } from '../../base/imageReference.ts';
import { ownEntry } from '../../base/isRecord.ts';
import { buildImage, eachObject } from './buildImage.ts';
import { daemonAnswer, ifThere, readFault } from './dockerFault.ts';
import { engineFacts } from './engineInfo.ts';

export interface LocalImage {
  readonly id: string;
  readonly tags: readonly string[];
  /** `repository@sha256:…`, as the registry knows it. */
  readonly digests: readonly string[];
  readonly os: string;
  readonly architecture: string;
  /** The user of its programs; '' for root. */
  readonly user: string;
  readonly volumes?: readonly string[];
  /** Bytes on disk, layers shared with other images included. */
  readonly size: number;
  readonly layers: readonly string[];
}

/** A line of the engine's pull stream. */
export interface PullEvent {
  readonly layer?: string | undefined;
  readonly status: string;
  readonly current?: number | undefined;
  readonly total?: number | undefined;
}

export interface PullRequest {
  readonly registry: string;
  readonly repository: string;
  readonly tagOrDigest: string;
  readonly platform?: string | undefined;
  readonly login?: Readonly<Record<string, string>> | undefined;
  readonly signal: AbortSignal;
  readonly onEvent: (event: PullEvent) => void;
}

export interface ListedImage {
  readonly id: string;
  readonly tags: readonly string[];
  readonly digests: readonly string[];
  readonly size: number;
  /** Containers made from it, running or not. */
  readonly containers: number;
  /** Id of the image whose history was sealed in this one; it keeps that image's layers. */
  readonly sealedFrom: string | undefined;
}

export interface ImageEngine {
  /** Rejects where the engine does not answer now. */
  answers(): Promise<void>;
  info(): Promise<{
    id: string;
    os: string;
    architecture: string;
    rootDir: string;
  }>;
  inspect(name: string): Promise<LocalImage | undefined>;
  list(): Promise<ListedImage[]>;
  /** Resolves when the engine says that the image is complete; rejects with the engine's words. */
  pull(request: PullRequest): Promise<void>;
  tag(source: string, name: string): Promise<void>;
  /** Takes the name away, and the image with its last name. Never forced: an image in use stays. */
  remove(name: string): Promise<{ removed: boolean; reason?: string }>;
}

/** Docker says x86_64 and aarch64 in `info`, amd64 and arm64 in images. */
const ARCHITECTURES: Readonly<Record<string, string>> = {
  x86_64: 'amd64',
  aarch64: 'arm64',
  armv7l: 'arm',
  i686: '386',
};

interface PullLine {
  id?: string;
  status?: string;
  error?: string;
  progressDetail?: { current?: number; total?: number };
}

export function dockerImageEngine(docker: Docker, logDir?: string): ImageEngine {
  return {
    info: () => factsOf(docker),
    answers: async () => void (await daemonAnswer(docker.ping())),
    async inspect(name) {
      const image = await ifThere(docker.getImage(name).inspect());
      return (
        image && {
          id: image.Id,
          tags: image.RepoTags ?? [],
          digests: image.RepoDigests ?? [],
          os: image.Os,
          architecture: image.Architecture,
          user: image.Config?.User ?? '',
          volumes: Object.keys(image.Config?.Volumes ?? {}),
          size: image.Size,
          layers: image.RootFS?.Layers ?? [],
        }
      );
    },
    async list() {
      const [images, containers] = await Promise.all([
        docker.listImages(),
        docker.listContainers({ all: true }),
      ]);
      return images.map((image) => ({
        id: image.Id,
        tags: (image.RepoTags ?? []).filter((tag) => tag !== '<none>:<none>'),
        digests: image.RepoDigests ?? [],
        size: image.Size,
        containers: containers.filter((container) => container.ImageID === image.Id).length,
        sealedFrom: image.Labels?.[SEALED_LABELS.source],
      }));
    },
    pull: (request) =>
      request.registry === OWN_HOST ? makeHere(docker, request, logDir) : pull(docker, request),
    async tag(source, name) {
      const colon = name.lastIndexOf(':');
      const hasTag = colon > name.lastIndexOf('/');
      const repo = hasTag ? name.slice(0, colon) : name;
      await docker.getImage(source).tag({ repo, tag: hasTag ? name.slice(colon + 1) : 'latest' });
    },
    async remove(name) {
      try {
        await docker.getImage(name).remove({ force: false });
        return { removed: true };
      } catch (error) {
        const { status, text } = readFault(error);
        if (status === 404 || status === 409) return { removed: false, reason: text };
        throw error;
      }
    },
  };
}

const infoSchema = z.object({
  ID: z.string().default(''),
  Name: z.string().default(''),
  OSType: z.string().default(''),
  Architecture: z.string().default(''),
  DockerRootDir: z.string().default(''),
});

async function factsOf(docker: Docker): ReturnType<ImageEngine['info']> {
  const info = infoSchema.parse(await engineFacts(docker));
  const architecture = ownEntry(ARCHITECTURES, info.Architecture) ?? info.Architecture;
  // Several engines on one machine have one ID, and so have copies of a virtual machine.
  const id = `${info.ID} ${info.Name}:${info.DockerRootDir}`;
  return { id, os: info.OSType, architecture, rootDir: info.DockerRootDir };
}

/** An image of ours is built, unless it is there: the end state of an agent cannot be made again. */
async function makeHere(docker: Docker, request: PullRequest, logDir: string | undefined): Promise<void> {
  const { registry, repository, tagOrDigest, platform, signal, onEvent } = request;
  const image = `${registry}/${repository}:${tagOrDigest}`;
  const there = await docker
    .getImage(image)
    .inspect()
    .catch(() => undefined);
  if (!there) await buildImage(docker, { image, platform, signal, onEvent, logDir });
}

async function pull(docker: Docker, request: PullRequest): Promise<void> {
  const { registry, repository, tagOrDigest, platform, login, signal, onEvent } = request;
  const options = {
    fromImage: `${registry}/${repository}`,
    tag: tagOrDigest,
    ...(platform !== undefined && { platform }),
    abortSignal: signal,
  };
  const stream = await docker.createImage((login ?? {}) as Docker.AuthConfig, options);
  const cut = () =>
    (stream as NodeJS.ReadableStream & { destroy(error?: unknown): void }).destroy(signal.reason);
  signal.addEventListener('abort', cut, { once: true });
  if (signal.aborted) cut();
  try {
    await eachObject<PullLine>(stream, ({ id, status = '', error, progressDetail }) => {
      if (error !== undefined) throw new Error(error);
      onEvent({ layer: id, status, current: progressDetail?.current, total: progressDetail?.total });
    });
  } finally {
    signal.removeEventListener('abort', cut);
  }
}

/** Labels of the derived image of a sealed history, by which it is found again and goes with its source. */
export const SEALED_LABELS = {
  version: 'swebatch.sealed.version',
  source: 'swebatch.sealed.source',
  sourceDigest: 'swebatch.sealed.digest',
  fingerprint: 'swebatch.sealed.fingerprint',
  tree: 'swebatch.sealed.tree',
  folder: 'swebatch.sealed.folder',
  notes: 'swebatch.sealed.notes',
} as const;
