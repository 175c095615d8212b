/** What the images of a selection need before a run starts: what is here, what has to come, how much disk, in which order. */
import type { ImageEngine } from './engine.ts';
import { parseReference } from './reference.ts';
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
  /** Layers shared by several images counted once. */
  readonly downloadBytes: number;
  /** Estimate: layers unpack to about this many times their size. */
  readonly diskBytes: number;
  readonly unknown: readonly { readonly image: string; readonly problem: string }[];
}

const unknownImage = (message: string): ManifestAnswer => ({
  ok: false,
  status: 0,
  retryAfterMs: undefined,
  message,
});

/** Layers of Debian and conda images under gzip unpack to 2.5 to 3 times; the larger is used, as the plan guards a disk. */
const UNPACK_FACTOR = 3;

export function summarize(images: readonly PlannedImage[]): ImagePlan {
  const layers = new Map(images.flatMap((image) => image.layers.map((layer) => [layer.digest, layer.size])));
  const downloadBytes = [...layers.values()].reduce((sum, size) => sum + size, 0);
  const unknown = images.flatMap(({ image, problem }) => (problem === undefined ? [] : [{ image, problem }]));
  return {
    images,
    here: images.filter((image) => image.state === 'here').length,
    toPull: images.filter((image) => image.state === 'to_pull').length,
    downloadBytes,
    diskBytes: downloadBytes * UNPACK_FACTOR,
    unknown,
  };
}

/** Answers of a registry that cannot be reached before the rest of its images are given up: each waits for its own time limit. */
const UNREACHABLE_AFTER = 3;

export interface PlanOptions {
  readonly parallel?: number;
  /** False where nothing will be pulled: what is not here is missing. */
  readonly ask?: boolean;
}

export async function planImages(
  images: readonly string[],
  engine: ImageEngine,
  manifestOf: (image: string) => Promise<ManifestAnswer>,
  { parallel = 8, ask = true }: PlanOptions = {},
): Promise<ImagePlan> {
  const distinct = [...new Set(images)];
  const unanswered = new Map<string, number>();
  const remote = async (image: string): Promise<ManifestAnswer> => {
    if (!ask) return unknownImage('not here, and environment.pull is "never"');
    const parsed = parseReference(image);
    const registry = parsed.ok ? parsed.reference.registry : '';
    const silent = unanswered.get(registry) ?? 0;
    if (silent >= UNREACHABLE_AFTER) return unknownImage(`${registry} cannot be reached`);
    const answer = await manifestOf(image);
    if (!answer.ok && answer.status === 0 && parsed.ok) {
      unanswered.set(registry, (unanswered.get(registry) ?? 0) + 1);
      return unknownImage(`${registry} cannot be reached`);
    }
    return answer;
  };
  const planned: PlannedImage[] = new Array(distinct.length);
  let next = 0;
  const worker = async () => {
    for (let i = next++; i < distinct.length; i = next++) {
      const image = distinct[i]!;
      if (await engine.inspect(image)) {
        planned[i] = { image, state: 'here', layers: [], problem: undefined };
        continue;
      }
      const answer = await remote(image);
      planned[i] = answer.ok
        ? { image, state: 'to_pull', layers: answer.layers, problem: undefined }
        : { image, state: 'unknown', layers: [], problem: answer.message };
    }
  };
  await Promise.all(Array.from({ length: parallel }, worker));
  return summarize(planned);
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
