/** Plans the images of a selection before a run starts: which are present, which must be pulled, how much disk they take, in which order. */

import pLimit from 'p-limit';
import { parseReference } from '../../base/imageReference.ts';
import type { ImageEngine } from './imageEngine.ts';
import type { ImagePolicy } from './imagesConfig.ts';
import type { ManifestAnswer, RemoteLayer } from './registry.ts';

export interface PlannedImage {
  readonly image: string;
  readonly state: 'here' | 'to_pull' | 'unknown';
  /** Compressed layers, from the registry; empty when here or not known. */
  readonly layers: readonly RemoteLayer[];
  readonly problem: string | undefined;
}
export interface ImagePlan {
  readonly images: readonly PlannedImage[];
  readonly here: number;
  readonly toPull: number;
  /** Images to pull that were not asked about: their part of the bytes is estimated from the others. */
  readonly estimated: number;
  /** Layers shared by several images counted once. */
  readonly downloadBytes: number;
  /** Estimate: layers unpack to about this many times their size. */
  readonly diskBytes: number;
  readonly unknown: readonly { readonly image: string; readonly problem: string }[];
}

/** Images that are not here, and come. */
export const toPullOf = ({ images }: Pick<ImagePlan, 'images'>): string[] =>
  images.flatMap(({ image, state }) => (state === 'to_pull' ? [image] : []));

const unknownImage = (message: string): ManifestAnswer => ({
  ok: false,
  status: 0,
  retryAfterMs: undefined,
  message,
});

/** Layers of Debian and conda images under gzip unpack to 2.5 to 3 times; the larger is used, as the plan guards a disk. */
const UNPACK_FACTOR = 3;

export function summarizeImages(images: readonly PlannedImage[]): ImagePlan {
  const layers = new Map(images.flatMap((image) => image.layers.map((layer) => [layer.digest, layer.size])));
  const knownBytes = [...layers.values()].reduce((sum, size) => sum + size, 0);
  const toPull = images.filter((image) => image.state === 'to_pull');
  const estimated = toPull.filter((image) => image.layers.length === 0).length;
  const known = toPull.length - estimated;
  const downloadBytes = known > 0 ? Math.round((knownBytes * toPull.length) / known) : knownBytes;
  const unknown = images.flatMap(({ image, problem }) => (problem === undefined ? [] : [{ image, problem }]));
  return {
    images,
    here: images.filter((image) => image.state === 'here').length,
    toPull: toPull.length,
    estimated,
    downloadBytes,
    diskBytes: downloadBytes * UNPACK_FACTOR,
    unknown,
  };
}

export interface DiskRoom {
  /** Undefined when it cannot be seen: then everything fits. */
  readonly freeBytes: number | undefined;
  /** images.disk_low: below it nothing new starts. */
  readonly floorBytes: number;
  readonly policy: ImagePolicy;
}

/** Why a plan does not fit on the disk even under the policy; undefined when it fits. */
export function tooMuch({ diskBytes }: Pick<ImagePlan, 'diskBytes'>, room: DiskRoom): string | undefined {
  const { freeBytes, floorBytes, policy } = room;
  if (freeBytes === undefined || diskBytes === 0) return undefined;
  const left = freeBytes - floorBytes;
  if (left <= 0)
    return `less is free than images.disk_low asks for (${gigabytes(floorBytes)}): nothing will start before there is room`;
  if (policy.kind === 'keep' && diskBytes > left)
    return (
      `the images do not fit and images.policy is "keep": the run will pause at images.disk_low (${gigabytes(floorBytes)} free); ` +
      'use remove-after or lru:<GB>, free space, or take fewer instances'
    );
  if (policy.kind === 'lru' && Math.min(policy.bytes, diskBytes) > left)
    return `images.policy keeps ${gigabytes(policy.bytes)} and only ${gigabytes(left)} are free above images.disk_low: keep less`;
  return undefined;
}

const gigabytes = (bytes: number): string => `${(bytes / 1e9).toFixed(bytes < 1e9 ? 2 : 1)} GB`;

/**
 * Answers of a registry that cannot be reached before the rest of its images are given up: each waits for its own time limit (observed:
 * tests/environment/places/images/pure.test.ts).
 */
const UNREACHABLE_AFTER = 3;

export interface PlanOptions {
  readonly parallel?: number;
  /** False where nothing will be pulled: what is not here is missing. */
  readonly ask?: boolean;
  /** True where a question counts as a pull: of such images only a few are asked about. */
  readonly costly?: (image: string) => boolean;
  /** Asked about the images outside of that sample; without it they are taken to be there. */
  readonly existsOf?: (image: string) => Promise<ManifestAnswer>;
  /** Images without an answer by then are unknown (observed: tests/environment/places/images/pure.test.ts). */
  readonly signal?: AbortSignal;
}

/** Docker Hub counts each question for a manifest against the 100 pulls that it allows in six hours without a login. */
const SAMPLE = 20;

/** '' for a name that is not one of an image. */
function registryOf(image: string): string {
  const parsed = parseReference(image);
  return parsed.ok ? parsed.reference.registry : '';
}

/** Spread evenly, as neighbours of a dataset belong to one repository. */
function sampled(images: readonly string[]): ReadonlySet<string> {
  if (images.length <= SAMPLE) return new Set(images);
  return new Set(Array.from({ length: SAMPLE }, (_, i) => images[Math.floor((i * images.length) / SAMPLE)]!));
}

export async function planImages(
  images: readonly string[],
  engine: ImageEngine,
  manifestOf: (image: string) => Promise<ManifestAnswer>,
  { parallel = 8, ask = true, costly = () => false, existsOf, signal }: PlanOptions = {},
): Promise<ImagePlan> {
  const limit = pLimit(parallel);
  const distinct = [...new Set(images)];
  const unanswered = new Map<string, number>();
  const refusals = new Map<string, string>();
  const silence = (image: string): string | undefined => {
    const registry = registryOf(image);
    return (unanswered.get(registry) ?? 0) >= UNREACHABLE_AFTER ? `${registry} cannot be reached` : undefined;
  };
  const remote = async (image: string, askFor: typeof manifestOf): Promise<ManifestAnswer> => {
    if (!ask) return unknownImage('not here, and environment.pull is "never"');
    const registry = registryOf(image);
    const silent = silence(image);
    if (silent !== undefined) return unknownImage(silent);
    const refusal = refusals.get(registry);
    if (refusal !== undefined) return unknownImage(refusal);
    if (signal?.aborted) return unknownImage(`${registry} answers too slowly`);
    const answer = await askFor(image);
    // Each further question would put the reset off (observed: tests/environment/places/images/pure.test.ts).
    if (!answer.ok && answer.status === 429) refusals.set(registry, answer.message);
    if (!answer.ok && answer.status === 0 && registry !== '') {
      unanswered.set(registry, (unanswered.get(registry) ?? 0) + 1);
      return unknownImage(`${registry} cannot be reached`);
    }
    return answer;
  };
  const here = new Set<string>();
  await limit.map(distinct, async (image) => {
    if (await engine.inspect(image)) here.add(image);
  });
  const asked = sampled(distinct.filter((image) => !here.has(image) && costly(image)));
  const planned = await limit.map(distinct, async (image): Promise<PlannedImage> => {
    if (here.has(image)) return { image, state: 'here', layers: [], problem: undefined };
    const spared = ask && costly(image) && !asked.has(image);
    if (spared && !existsOf) return { image, state: 'to_pull', layers: [], problem: undefined };
    const answer = await remote(image, spared && existsOf ? existsOf : manifestOf);
    return answer.ok
      ? { image, state: 'to_pull', layers: answer.layers, problem: undefined }
      : { image, state: 'unknown', layers: [], problem: answer.message };
  });
  // When a registry did not answer for the sample, the images that the sample represents are unknown too (observed:
  // tests/environment/places/images/pure.test.ts).
  return summarizeImages(
    planned.map((plan) => {
      const silent = plan.state === 'to_pull' && plan.layers.length === 0 ? silence(plan.image) : undefined;
      return silent === undefined ? plan : { ...plan, state: 'unknown', problem: silent };
    }),
  );
}

/**
 * Brings items that share layers next to each other, so that a base is pulled once and can go once. Groups keep the place of their
 * first member; layers come base first, so a common prefix is a common base.
 */
export function orderBySharedLayers<T>(items: readonly T[], layersOf: (item: T) => readonly string[]): T[] {
  const place = (list: readonly T[], depth: number): T[] => {
    if (list.length <= 2) return [...list];
    const groups = Map.groupBy(list, (item) => layersOf(item)[depth]);
    if (groups.size === 1 && groups.has(undefined)) return [...list];
    return [...groups.values()].flatMap((group) => place(group, depth + 1));
  };
  return place(items, 0);
}
