/** The images of a run on its engine, and whether that engine answers. */
import { parseSize } from '../../base/text/units.ts';
import { engineClient } from './chosenEngine.ts';
import { createEngineWatch, type EngineWatch } from './engineWatch.ts';
import type { Collected } from './imageLedger.ts';
import type { ImageService } from './imageService.ts';
import { parsePolicy } from './imagesConfig.ts';
import { ensureBy } from './pullStage.ts';

/** Of the engine that is used where nobody names one. */
export function watchEngine(limitS: number): EngineWatch {
  const docker = engineClient();
  return createEngineWatch({ ping: () => docker.ping(), limitMs: limitS * 1000 });
}

/** What of the configuration a run has to know. */
interface RunImagesConfig {
  readonly ahead: number;
  readonly policy: string;
  readonly disk_low: string;
  /** environment.pull */
  readonly pull: 'never' | 'missing' | 'always';
}

export type RunImages = ReturnType<typeof runImagesOf>;
export type EnginePlan = Awaited<ReturnType<RunImages['plan']>>;

export function runImagesOf(service: ImageService, config: RunImagesConfig) {
  let among: readonly string[] | undefined;
  return {
    /** Images fetched before a slot is free. */
    ahead: config.ahead,
    policy: parsePolicy(config.policy),
    /** Free space below which nothing new starts. */
    floorBytes: parseSize(config.disk_low),
    /** Waits until the engine has the image and room for it. Resolves to what people should hear. Rejects with an EnvironmentError, or with the signal. */
    async ready(image: string, signal: AbortSignal): Promise<readonly string[]> {
      await service.disk.pass(signal);
      signal.throwIfAborted();
      return (await service.stage.ensure(image, signal)).warnings;
    },
    /** How a start gets its image; here it is at once after `ready`. */
    ensure: ensureBy(service.stage),
    /** Whether something may start now: the disk may have filled up since `ready`. */
    hasRoom: async (): Promise<boolean> => (await service.disk.check()).open,
    /** The images that queued trials and gradings of this process still need. */
    need: (images: readonly string[]) => service.need(images),
    /** The images of the whole run: what `remove-after` may take. Others were fetched for somebody else. */
    belong(images: readonly string[]) {
      among = images;
    },
    /** Nothing in this process needs the image any more: the policy may take it. */
    done: (image: string): Promise<Collected> => service.done(image, among),
    collect: (): Promise<Collected> => service.collect({ among }),
    /** What is not known when the signal aborts stays unknown. */
    async plan(images: readonly string[], signal: AbortSignal) {
      const plan = await service.plan(images, { ask: config.pull !== 'never', signal });
      return { plan, freeBytes: await service.freeBytes() };
    },
    status: () => service.stage.status(),
    /** Where the engine keeps its layers, on this machine. */
    engineDir: () => service.layersDir(),
    close: () => service.close(),
  };
}
