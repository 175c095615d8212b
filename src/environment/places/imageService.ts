/** Everything about images of one engine, put together: what the runner and the `images` verb use. */

import { statfs } from 'node:fs/promises';
import { join } from 'node:path';
import type Docker from 'dockerode';
import { parseSize } from '../../base/text/units.ts';
import { createDiskRoom, type DiskRoomState, measuredDisk } from './diskRoom.ts';
import { dockerImageEngine } from './imageEngine.ts';
import { type Collected, type CollectOptions, collectImages, openImageLedger } from './imageLedger.ts';
import { type ImagePlan, type PlanOptions, planImages } from './imagePlan.ts';
import { type ImagesConfig, imagesConfigSchema } from './imagesConfig.ts';
import { type PullBook, type PullClock, pullThrottle, systemPullClock } from './pullImage.ts';
import {
  createPullStage,
  type EnsureImage,
  ensureBy,
  type StageEvent,
  type StageOptions,
} from './pullStage.ts';
import { createRegistryQuestions } from './registry.ts';

export interface ImageServiceOptions {
  readonly config: ImagesConfig;
  readonly pull: 'never' | 'missing' | 'always';
  readonly platform?: string | undefined;
  /** environment.pull_timeout: seconds without progress. */
  readonly stallSeconds: number;
  readonly onEvent?: (event: StageEvent) => void;
  readonly onDisk?: (state: DiskRoomState) => void;
  readonly onWarning?: (message: string) => void;
  readonly clock?: PullClock;
  /** The budget that it shares with other processes; default: its own. */
  readonly pullBook?: PullBook | undefined;
  /** Whether the disk of an engine that is not reached through a local socket is measured, by a short container there. */
  readonly measureDisk?: boolean;
  readonly free?: () => Promise<number | undefined>;
}

export const isLocal = (docker: Docker): boolean =>
  (docker.modem as { socketPath?: string }).socketPath !== undefined;

export type ImageService = ReturnType<typeof createImageService>;

/** Of one engine. `dockerConfigDir`: Docker's own, for logins; `stateDir`: where swebatch remembers which images it pulled. */
export function createImageService(
  { docker, dockerConfigDir, stateDir }: { docker: Docker; dockerConfigDir: string; stateDir: string },
  options: ImageServiceOptions,
) {
  const { config, platform, clock = systemPullClock, onWarning = () => {} } = options;
  const engine = dockerImageEngine(docker, join(stateDir, 'builds'));
  const ledger = openImageLedger(join(stateDir, 'images.jsonl'));
  const registries = createRegistryQuestions({ config, platform, dockerConfigDir, onWarning });
  const collect = async (
    more: Pick<CollectOptions, 'dryRun' | 'needBytes' | 'among'> & { policy?: string } = {},
  ): Promise<Collected> => {
    const result = await collectImages({ engine, ledger, policy: config.policy, now: clock.now(), ...more });
    for (const { image } of more.dryRun ? [] : result.removed) stage.forget(image);
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
  /** Images that are ready are likely to be there in a moment; those that were pulled once may be. */
  const likelyImages = async () => {
    const own = await ledger.own((await engine.info()).id);
    return [...stage.ready(), ...own.toSorted((a, b) => b.usedAt - a.usedAt).map(({ image }) => image)];
  };
  const measured = options.measureDisk && !isLocal(docker);
  const free = options.free ?? (measured ? measuredDisk({ docker, images: likelyImages }) : freeHere);
  const disk = createDiskRoom({
    free,
    lowBytes: parseSize(config.disk_low),
    highBytes: parseSize(config.disk_high),
    clock,
    // An engine that does not answer makes no room. That it is away is told elsewhere.
    makeRoom: async (needBytes) => void (await collect({ needBytes }).catch(() => undefined)),
    onChange: options.onDisk,
  });
  const stage = createPullStage({
    engine,
    config,
    clock,
    ledger,
    platform,
    loginOf: registries.loginOf,
    policy: options.pull,
    stallMs: options.stallSeconds * 1000,
    throttle: pullThrottle({
      pulls: config.pulls_per_window,
      windowMs: config.window_seconds * 1000,
      book: options.pullBook,
    }),
    askReset: registries.resetOf,
    beforePull: (_, signal) => disk.pass(signal),
    onEvent: options.onEvent,
  });
  return {
    engine,
    stage,
    disk,
    ledger,
    collect,
    manifestOf: registries.manifestOf,
    /** Where its layers are; undefined when that is not known. */
    freeBytes: free,
    /** Where the engine keeps its layers, on this machine. */
    layersDir: () => layersDir().catch(() => undefined),
    /** The images that queued trials and gradings of this process still need. */
    need: (images: readonly string[]) => ledger.need(images),
    /** Nothing in this process needs the image any more: the policy may take it. `among`: see `CollectOptions`. */
    async done(image: string, among?: readonly string[]): Promise<Collected> {
      const { id } = await engine.info();
      await ledger.used({ engine: id, image, at: clock.now() });
      return config.policy === 'keep' ? { removed: [], kept: [] } : collect({ among });
    },
    /** `check`: no image is taken to be there without having been asked about. */
    plan: (
      images: readonly string[],
      { check, ...more }: Pick<PlanOptions, 'ask' | 'signal'> & { check?: boolean } = {},
    ): Promise<ImagePlan> =>
      planImages(images, engine, (image) => registries.manifestOf(image, more.signal), {
        ...more,
        costly: registries.isCostly,
        ...(check && { existsOf: (image: string) => registries.existsOf(image, more.signal) }),
      }),
    async close() {
      await stage.close();
      await ledger.need([]);
    },
  };
}

/** Pulls of a Docker factory that is used without image handling: one try each, without logins, mirrors, a disk floor or a ledger. */
export function createFactoryPulls(
  docker: Docker,
  options: Pick<StageOptions, 'policy' | 'platform' | 'stallMs'>,
): { ensure: EnsureImage; close(): Promise<void> } {
  const stage = createPullStage({
    ...options,
    engine: dockerImageEngine(docker),
    config: imagesConfigSchema.parse({ tries: 1, ahead: 0, rate_limit_patience_seconds: 0 }),
    clock: systemPullClock,
    throttle: pullThrottle({ pulls: 0, windowMs: 0 }),
    loginOf: async () => undefined,
    askReset: async () => undefined,
  });
  const ensure = ensureBy(stage);
  return {
    async ensure(image, more) {
      if (options.policy === 'always') stage.forget(image);
      try {
        return await ensure(image, more);
      } catch (error) {
        more?.signal?.throwIfAborted();
        // It may be built or pulled by hand before the next start.
        stage.forget(image);
        throw error;
      }
    },
    close: () => stage.close(),
  };
}
