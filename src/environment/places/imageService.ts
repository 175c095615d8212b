/** The images of one engine, for the run, its gradings and the `images` verb. imageJobs.ts brings them, evictImages.ts removes them. */

import { statfs } from 'node:fs/promises';
import { join } from 'node:path';
import type Docker from 'dockerode';
import { imageKey } from '../../base/imageReference.ts';
import { parseSize } from '../../base/text/units.ts';
import { createDiskRoom, type DiskRoomState, measuredDisk } from './diskRoom.ts';
import { type Collected, type CollectOptions, collectImages } from './evictImages.ts';
import { type OwnImage, openImageBook } from './imageBook.ts';
import { dockerImageEngine } from './imageEngine.ts';
import { createImageJobs, type EnsureImage, type ImageEvent, type ImageJobsOptions } from './imageJobs.ts';
import { type ImagePlan, type PlanOptions, planImages } from './imagePlan.ts';
import { type ImagesConfig, imagesConfigSchema, parsePolicy } from './imagesConfig.ts';
import { type PullBook, type PullClock, pullThrottle, systemPullClock } from './pullImage.ts';
import { createRegistryQuestions } from './registry.ts';

export interface ImageServiceOptions {
  readonly config: ImagesConfig;
  readonly pull: 'never' | 'missing' | 'always';
  readonly platform?: string | undefined;
  /** environment.pull_timeout: seconds without progress. */
  readonly stallSeconds: number;
  readonly onEvent?: (event: ImageEvent) => void;
  readonly onDisk?: (state: DiskRoomState) => void;
  readonly onWarning?: (message: string) => void;
  readonly clock?: PullClock;
  /** The budget that it shares with other processes; default: its own. */
  readonly pullBook?: PullBook | undefined;
  /** Whether the disk of an engine that is not reached through a local socket is measured, by a short container there. */
  readonly measureDisk?: boolean;
  /** Default: of the engine's own disk. */
  readonly free?: () => Promise<number | undefined>;
}

export const isLocal = (docker: Docker): boolean =>
  (docker.modem as { socketPath?: string }).socketPath !== undefined;

export type ImageService = ReturnType<typeof createImageService>;

/** `dockerConfigDir`: Docker's own, for logins; `stateDir`: where the book of this machine is. */
export function createImageService(
  { docker, dockerConfigDir, stateDir }: { docker: Docker; dockerConfigDir: string; stateDir: string },
  options: ImageServiceOptions,
) {
  const { config, platform, clock = systemPullClock, onWarning = () => {} } = options;
  const engine = dockerImageEngine(docker, join(stateDir, 'builds'));
  const book = openImageBook(stateDir);
  const registries = createRegistryQuestions({ config, platform, dockerConfigDir, onWarning });
  let among: readonly string[] | undefined;
  const collect = async (
    more: Pick<CollectOptions, 'dryRun' | 'needBytes'> & { policy?: string } = {},
  ): Promise<Collected> => {
    const asked = { engine, book, policy: config.policy, now: clock.now(), among, ...more };
    const result = await collectImages(asked);
    for (const { image } of more.dryRun ? [] : result.removed) jobs.evict(image);
    return result;
  };
  /** A remote engine's disk cannot be seen from here, and has the same paths. */
  const layersDir = async () => (isLocal(docker) ? (await engine.info()).rootDir : undefined);
  const freeHere = async (): Promise<number | undefined> => {
    try {
      const dir = await layersDir();
      if (dir === undefined) return undefined;
      const { bavail, bsize } = await statfs(dir);
      return bavail * bsize;
    } catch {
      return undefined;
    }
  };
  const ownImages = async (): Promise<OwnImage[]> => book.own((await engine.info()).id);
  /** Images that are here are likely to be there in a moment; those that were pulled once may be. */
  const likelyImages = async () => {
    const own = await ownImages();
    return [...jobs.here(), ...own.toSorted((a, b) => b.usedAt - a.usedAt).map(({ image }) => image)];
  };
  const measured = options.measureDisk && !isLocal(docker);
  const freeBytes = options.free ?? (measured ? measuredDisk({ docker, images: likelyImages }) : freeHere);
  const disk = createDiskRoom({
    free: freeBytes,
    lowBytes: parseSize(config.disk_low),
    highBytes: parseSize(config.disk_high),
    clock,
    // An engine that does not answer makes no room; its absence is told elsewhere.
    makeRoom: async (needBytes) => void (await collect({ needBytes }).catch(() => undefined)),
    onChange: options.onDisk,
  });
  const jobs = createImageJobs({
    ...{ engine, config, clock, book, platform },
    pull: options.pull,
    loginOf: registries.loginOf,
    stallMs: options.stallSeconds * 1000,
    throttle: pullThrottle({
      pulls: config.pulls_per_window,
      windowMs: config.window_seconds * 1000,
      book: options.pullBook,
    }),
    askReset: registries.resetOf,
    beforePull: disk.pass,
    onEvent: options.onEvent,
  });
  return {
    /** Images fetched before a slot is free. */
    ahead: config.ahead,
    policy: parsePolicy(config.policy),
    /** Free space below which nothing new starts. */
    floorBytes: parseSize(config.disk_low),
    ensure: jobs.ensure,
    status: jobs.status,
    here: jobs.here,
    /** Waits until the engine has the image and room for it. Resolves to warnings. Rejects with an EnvironmentError, or with the signal. */
    async ready(image: string, signal: AbortSignal): Promise<readonly string[]> {
      await disk.pass(signal);
      signal.throwIfAborted();
      // Nobody has an attempt yet, whose clocks would stand still.
      return (await jobs.ensure(image, { signal, waits: () => undefined })).warnings;
    },
    /** False where the disk has filled up since `ready`. */
    hasRoom: async (): Promise<boolean> => (await disk.check()).open,
    freeBytes,
    /** The folder of the engine's layers, on this machine; undefined when that is not known. */
    layersDir: () => layersDir().catch(() => undefined),
    /** The images that queued trials and gradings of this process still need. */
    need: book.need,
    /** The images of the whole run: what `remove-after` may take. Others were fetched for somebody else. */
    belong(images: readonly string[]): void {
      among = images;
    },
    /** Nothing in this process needs the image any more: the policy may take it. */
    async done(image: string): Promise<Collected> {
      const { id } = await engine.info();
      await book.used({ engine: id, image, at: clock.now() });
      return config.policy === 'keep' ? { removed: [], kept: [] } : collect();
    },
    collect,
    /** Images that swebatch pulled onto this engine. */
    async own() {
      const needed = new Set([...(await book.needed())].map(imageKey));
      const stateOf = async ({ image, id }: OwnImage) => {
        const local = await engine.inspect(image);
        if (!local) return 'gone';
        return local.id !== id ? 'replaced' : needed.has(imageKey(image)) ? 'needed' : 'free';
      };
      return Promise.all((await ownImages()).map(async (one) => ({ ...one, state: await stateOf(one) })));
    },
    manifestOf: registries.manifestOf,
    /** `ask`: by default only where something may be pulled. `check`: no image is taken to be there without having been asked about. */
    plan: (
      images: readonly string[],
      { check, ...more }: Pick<PlanOptions, 'ask' | 'signal'> & { check?: boolean } = {},
    ): Promise<ImagePlan> =>
      planImages(images, engine, (image) => registries.manifestOf(image, more.signal), {
        ask: options.pull !== 'never',
        ...more,
        costly: registries.isCostly,
        ...(check && { existsOf: (image: string) => registries.existsOf(image, more.signal) }),
      }),
    async close() {
      await jobs.close();
      await book.need([]);
    },
  };
}

export interface ImageContent {
  readonly id: string;
  /** Digests in registries; empty for an image that was built here. */
  readonly digests: readonly string[];
}

/** The content of each name that the engine has. */
export async function imageContents(
  docker: Docker,
  stateDir: string,
  names: readonly string[],
): Promise<ReadonlyMap<string, ImageContent>> {
  const engine = dockerImageEngine(docker);
  const own = await openImageBook(stateDir).own((await engine.info()).id);
  const found = new Map<string, ImageContent>();
  for (const name of new Set(names)) {
    const local = await engine.inspect(name);
    if (!local) continue;
    // The engine forgets the digest of what came from a mirror when the mirror's name goes.
    const pulled = own.filter((o) => imageKey(o.image) === imageKey(name) && o.id === local.id);
    found.set(name, {
      id: local.id,
      digests: [...local.digests, ...pulled.flatMap((o) => o.digest ?? [])],
    });
  }
  return found;
}

/** Pulls of a Docker factory that is used without image handling: one try each, without logins, mirrors, a disk floor or a book. */
export function createFactoryPulls(
  docker: Docker,
  options: Pick<ImageJobsOptions, 'pull' | 'platform' | 'stallMs'>,
): { ensure: EnsureImage; close(): Promise<void> } {
  const jobs = createImageJobs({
    ...options,
    engine: dockerImageEngine(docker),
    config: imagesConfigSchema.parse({ tries: 1, rate_limit_patience_seconds: 0 }),
    clock: systemPullClock,
    throttle: pullThrottle({ pulls: 0, windowMs: 0 }),
    loginOf: async () => undefined,
    askReset: async () => undefined,
  });
  return {
    async ensure(image, asks) {
      if (options.pull === 'always') jobs.evict(image);
      try {
        return await jobs.ensure(image, asks);
      } catch (error) {
        // A person may build or pull it before the next start.
        jobs.evict(image);
        throw error;
      }
    },
    close: jobs.close,
  };
}
