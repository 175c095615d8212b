/**
 * The images of a run, on one engine or on several: which engine a trial is meant for, and its image there before it takes a slot. Every
 * engine has its own pulls, disk floor and policy; all of them know which images are needed.
 */
import { parseSize } from '../../../base/text/units.ts';
import type { Place } from '../../environment.ts';
import type { Collected } from './disk/collect.ts';
import type { EnsureImage } from './ensureImage.ts';
import type { ImagePlan } from './imagePlan.ts';
import type { ImageService } from './imageService.ts';
import { type ImagePolicy, parsePolicy } from './imagesConfig.ts';
import type { StageStatus } from './pull/stageEvents.ts';

export interface ReadyPlace {
  /** Absent with one engine, which has no places. */
  readonly place: Place | undefined;
  readonly warnings: readonly string[];
}

interface EngineStatus {
  readonly host: string | undefined;
  readonly status: StageStatus;
}

export interface EnginePlan {
  readonly host: string | undefined;
  readonly plan: ImagePlan;
  readonly freeBytes: number | undefined;
}

/** What of the configuration a run has to know. */
export interface RunImagesConfig {
  readonly ahead: number;
  readonly policy: string;
  readonly disk_low: string;
  /** environment.pull */
  readonly pull: 'never' | 'missing' | 'always';
  /** environment.memory of the arm that asks for most; 0 for no limit. */
  readonly memoryBytes?: number | undefined;
}

export interface RunImages {
  /** Images fetched before a slot is free, on all engines. */
  readonly ahead: number;
  readonly policy: ImagePolicy;
  /** Free space below which nothing new starts. */
  readonly floorBytes: number;
  /** Waits until an engine has the image and room for it. `onImage`: it has the image, and only its slot is waited for. Rejects with an EnvironmentError, or with the signal. */
  ready(image: string, signal: AbortSignal, onImage?: () => void): Promise<ReadyPlace>;
  /** How a start on that engine gets its image; here it is at once after `ready`. */
  ensureOn(host: string | undefined): EnsureImage;
  /** Whether something may start there now: the disk may have filled up since `ready`. */
  hasRoom(host: string | undefined): Promise<boolean>;
  /** Whether the engine is known to have the image. */
  has(host: string, image: string): boolean;
  /** The images that queued trials and gradings of this process still need. */
  need(images: readonly string[]): Promise<void>;
  /** The images of the whole run: what `remove-after` may take. Others were fetched for somebody else. */
  belong(images: readonly string[]): void;
  /** Nothing in this process needs the image any more: the policy may take it. */
  done(image: string): Promise<Collected>;
  collect(): Promise<Collected>;
  /** Per engine that answers; what is not known when the signal aborts stays unknown. */
  plan(images: readonly string[], signal: AbortSignal): Promise<EnginePlan[]>;
  status(): EngineStatus[];
  /** Where the only engine keeps its layers, on this machine; each of several watches its own disk. */
  engineDir(): Promise<string | undefined>;
  close(): Promise<void>;
}

export const planOf = async (
  host: string | undefined,
  service: ImageService,
  images: readonly string[],
  config: RunImagesConfig,
  signal: AbortSignal,
): Promise<EnginePlan> => {
  const plan = await service.plan(images, { ask: config.pull !== 'never', signal });
  return { host, plan, freeBytes: await service.freeBytes() };
};

export const runImagesSettings = (config: RunImagesConfig, engines: number) => ({
  ahead: config.ahead * engines,
  policy: parsePolicy(config.policy),
  floorBytes: parseSize(config.disk_low),
});
