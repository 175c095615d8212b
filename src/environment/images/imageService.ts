/** Everything about images of one engine, put together: what the runner and the `images` verb use. */
import { statfs } from 'node:fs/promises';
import { join } from 'node:path';
import type Docker from 'dockerode';
import { parseSize } from '../../base/text/units.ts';
import { readDockerCliConfig } from '../engines/dockerCliConfig.ts';
import { type Collected, type CollectOptions, collectImages } from './disk/collect.ts';
import { createDiskGate, type DiskGate, type DiskGateState } from './disk/diskGate.ts';
import { type ImageLedger, openImageLedger } from './disk/imageLedger.ts';
import { dockerImageEngine } from './dockerImageEngine.ts';
import type { ImageEngine } from './imageEngine.ts';
import { type ImagePlan, type PlanOptions, planImages } from './imagePlan.ts';
import type { ImagesConfig } from './imagesConfig.ts';
import { type PullClock, systemClock } from './pull/pullClock.ts';
import { createPullStage, type PullStage } from './pull/pullStage.ts';
import { pullThrottle } from './pull/pullThrottle.ts';
import type { StageEvent } from './pull/stageEvents.ts';
import { askExists, askManifest, askReset, type ManifestAnswer } from './registry/askRegistry.ts';
import { findLogin, type RegistryLogin } from './registry/credentials.ts';
import { candidatesOf, DOCKER_HUB, type ImageReference, sourceOf } from './registry/imageReference.ts';

export interface ImageServiceOptions {
  readonly docker: Docker;
  readonly config: ImagesConfig;
  readonly pull: 'never' | 'missing' | 'always';
  readonly platform?: string | undefined;
  /** environment.pull_timeout: seconds without progress. */
  readonly stallSeconds: number;
  /** Docker's own config directory, for logins. */
  readonly dockerConfigDir: string;
  /** Where swebatch remembers which images it pulled. */
  readonly stateDir: string;
  readonly onEvent?: (event: StageEvent) => void;
  readonly onDisk?: (state: DiskGateState) => void;
  readonly onWarning?: (message: string) => void;
  readonly clock?: PullClock;
  /** Other engines serve the same run. */
  readonly elsewhere?: boolean;
  readonly free?: () => Promise<number | undefined>;
}

export interface ImageService {
  readonly engine: ImageEngine;
  readonly stage: PullStage;
  readonly disk: DiskGate;
  readonly ledger: ImageLedger;
  /** Where its layers are; undefined when that disk cannot be seen from here. */
  freeBytes(): Promise<number | undefined>;
  /** Where the engine keeps its layers, on this machine. */
  layersDir(): Promise<string | undefined>;
  /** The images that queued trials and gradings of this process still need. */
  need(images: readonly string[]): Promise<void>;
  /** Nothing in this process needs the image any more: the policy may take it. `among`: see `CollectOptions`. */
  done(image: string, among?: readonly string[]): Promise<Collected>;
  /** `check`: no image is taken to be there without having been asked about. */
  plan(
    images: readonly string[],
    options?: Pick<PlanOptions, 'ask' | 'signal'> & { check?: boolean },
  ): Promise<ImagePlan>;
  manifestOf(image: string): Promise<ManifestAnswer>;
  collect(
    options?: Pick<CollectOptions, 'dryRun' | 'needBytes' | 'among'> & { policy?: string },
  ): Promise<Collected>;
  close(): Promise<void>;
}

/** Where a local engine keeps its layers. A remote engine's disk cannot be seen from here, and has the same paths. */
async function layersDir(docker: Docker, engine: ImageEngine): Promise<string | undefined> {
  const { socketPath } = docker.modem as { socketPath?: string };
  return socketPath ? (await engine.info()).rootDir : undefined;
}

async function freeBytes(docker: Docker, engine: ImageEngine): Promise<number | undefined> {
  try {
    const dir = await layersDir(docker, engine);
    if (dir === undefined) return undefined;
    const { bavail, bsize } = await statfs(dir);
    return bavail * bsize;
  } catch {
    return undefined;
  }
}

export function createImageService(options: ImageServiceOptions): ImageService {
  const { config, platform, clock = systemClock, onWarning = () => {} } = options;
  const engine = dockerImageEngine(options.docker);
  const ledger = openImageLedger(join(options.stateDir, 'images.jsonl'));
  const told = new Set<string>();
  const warnOnce = (message: string) => {
    if (!told.has(message)) onWarning(message);
    told.add(message);
  };
  // Read anew for each pull, as Docker does: helpers give tokens that last an hour, and a night may need a login that came later.
  const loginOf = (registry: string): Promise<RegistryLogin | undefined> => {
    const cli = readDockerCliConfig(options.dockerConfigDir);
    if (cli.warning) warnOnce(cli.warning);
    return findLogin(cli.config, registry, undefined, warnOnce);
  };
  const asking = (login: RegistryLogin | undefined) => ({
    login,
    platform,
    insecure: config.insecure_registries,
  });

  const collect: ImageService['collect'] = async (more = {}) => {
    const result = await collectImages({ engine, ledger, policy: config.policy, now: clock.now(), ...more });
    for (const { image } of more.dryRun ? [] : result.removed) stage.forget(image);
    return result;
  };
  const free = options.free ?? (() => freeBytes(options.docker, engine));
  const disk = createDiskGate({
    free,
    lowBytes: parseSize(config.disk_low),
    highBytes: parseSize(config.disk_high),
    clock,
    makeRoom: async (needBytes) => {
      await collect({ needBytes });
    },
    ...(options.onDisk && { onChange: options.onDisk }),
  });
  const stage = createPullStage({
    engine,
    config,
    clock,
    ledger,
    loginOf,
    platform,
    policy: options.pull,
    elsewhere: options.elsewhere,
    stallMs: options.stallSeconds * 1000,
    throttle: pullThrottle({ pulls: config.pulls_per_window, windowMs: config.window_seconds * 1000 }),
    askReset: (reference: ImageReference, login) => askReset(reference, asking(login)),
    beforePull: (_, signal) => disk.pass(signal),
    ...(options.onEvent && { onEvent: options.onEvent }),
  });

  const sourcesOf = (image: string): ImageReference[] => {
    const wanted = sourceOf(image, config.rewrite);
    return wanted.ok ? candidatesOf(wanted.reference, config.mirrors) : [];
  };
  const ask = async (
    image: string,
    question: typeof askManifest,
    signal?: AbortSignal,
  ): Promise<ManifestAnswer> => {
    let answer: ManifestAnswer | undefined;
    for (const [i, reference] of sourcesOf(image).entries()) {
      // Behind a mirror that lacks images, each question for sizes would use up a pull of Docker Hub's.
      const free = i > 0 && reference.registry === DOCKER_HUB ? askExists : question;
      answer = await free(reference, { ...asking(await loginOf(reference.registry)), signal });
      if (answer.ok) return answer;
    }
    if (answer) return answer;
    const wanted = sourceOf(image, config.rewrite);
    const message = wanted.ok ? '' : wanted.message;
    return { ok: false, status: 0, retryAfterMs: undefined, message };
  };

  return {
    engine,
    stage,
    disk,
    ledger,
    manifestOf: (image) => ask(image, askManifest),
    collect,
    freeBytes: free,
    layersDir: () => layersDir(options.docker, engine).catch(() => undefined),
    need: (images) => ledger.need(images),
    async done(image, among) {
      const { id } = await engine.info();
      await ledger.used({ engine: id, image, at: clock.now() });
      return config.policy === 'keep' ? { removed: [], kept: [] } : collect({ among });
    },
    plan: (images, { check, ...more } = {}) =>
      planImages(images, engine, (image) => ask(image, askManifest, more.signal), {
        ...more,
        costly: (image) => sourcesOf(image)[0]?.registry === DOCKER_HUB,
        ...(check && { existsOf: (image: string) => ask(image, askExists, more.signal) }),
      }),
    async close() {
      await stage.close();
      await ledger.need([]);
    },
  };
}
