// What is said about images before the first trial.
import { describe, expect, test } from 'vitest';
import { type PlannedImage, summarizeImages } from '../../../src/environment/places/imagePlan.ts';
import type { ImageService } from '../../../src/environment/places/imageService.ts';
import { parsePolicy } from '../../../src/environment/places/imagesConfig.ts';
import { preflightImages } from '../../../src/run/places/trialImages.ts';

const GB = 1e9;
const toPull = (image: string, ...layers: [string, number][]): PlannedImage => ({
  image,
  state: 'to_pull',
  layers: layers.map(([digest, size]) => ({ digest, size })),
  problem: undefined,
});
const here = (image: string): PlannedImage => ({ image, state: 'here', layers: [], problem: undefined });
const unknown = (image: string, problem: string): PlannedImage => ({
  image,
  state: 'unknown',
  layers: [],
  problem,
});

async function preflight(planned: PlannedImage[], more: { policy?: string; freeBytes?: number } = {}) {
  const asked: string[][] = [];
  const images = {
    policy: parsePolicy(more.policy ?? 'keep'),
    floorBytes: 10 * GB,
    async plan(names: readonly string[]) {
      asked.push([...names]);
      return summarizeImages(planned);
    },
    freeBytes: async () => more.freeBytes,
  } as unknown as ImageService;
  const said: string[] = [];
  const result = await preflightImages(
    images,
    planned.flatMap((p) => [p.image, p.image]),
    (text) => said.push(text),
  );
  return { said, asked, result };
}

describe('before the first trial', () => {
  test('each image is asked about once; sizes and free space are said; layers are known for the order', async () => {
    const { said, asked, result } = await preflight(
      [here('h'), toPull('a', ['base', 4 * GB], ['a', GB]), toPull('b', ['base', 4 * GB], ['b', GB])],
      { freeBytes: 60 * GB },
    );
    expect(asked).toEqual([['h', 'a', 'b']]);
    expect(said).toEqual([
      'images: 1 here, 2 to pull: 6.0 GB to download, about 18.0 GB unpacked; 60.0 GB free',
    ]);
    expect(result.layersOf?.('b')).toEqual(['base', 'b']);
    expect(result.layersOf?.('h')).toEqual([]);
  });

  test('what cannot fit under "keep" is a warning, with the fix; a policy that removes is none', async () => {
    const images = [toPull('a', ['a', 20 * GB])];
    const { said } = await preflight(images, { freeBytes: 60 * GB });
    expect(said[1]).toMatch(
      /^warning: the images do not fit and images.policy is "keep": .*10\.0 GB.*remove-after/,
    );
    expect((await preflight(images, { freeBytes: 71 * GB })).said).toHaveLength(1);
    expect((await preflight(images, { freeBytes: 60 * GB, policy: 'remove-after' })).said).toHaveLength(1);
    expect((await preflight(images)).said).toHaveLength(1);
  });

  test('an lru that is larger than the disk is a warning', async () => {
    const images = [toPull('a', ['a', 100 * GB])];
    const { said } = await preflight(images, { freeBytes: 60 * GB, policy: 'lru:80' });
    expect(said[1]).toBe(
      'warning: images.policy keeps 80.0 GB and only 50.0 GB are free above images.disk_low: keep less',
    );
    expect((await preflight(images, { freeBytes: 60 * GB, policy: 'lru:40' })).said).toHaveLength(1);
  });

  test('what is not known is named with its reason, a few of many', async () => {
    const { said } = await preflight([
      ...['a', 'b', 'c', 'd'].map((name) => unknown(name, 'the registry answers 404')),
      unknown('e', 'r.example cannot be reached'),
    ]);
    expect(said).toEqual([
      'images: a, b, c and 1 more: the registry answers 404',
      'images: e: r.example cannot be reached',
    ]);
  });

  test('where only a sample is asked about, or most registries are silent, the order does not go by layers', async () => {
    const sampled = await preflight([toPull('a', ['a', GB]), toPull('b')]);
    expect(sampled.result.layersOf).toBeUndefined();
    const silent = await preflight([toPull('a', ['a', GB]), unknown('b', 'slow'), unknown('c', 'slow')]);
    expect(silent.result.layersOf).toBeUndefined();
    const one = await preflight([toPull('a', ['a', GB]), unknown('b', '404')]);
    expect(one.result.layersOf?.('a')).toEqual(['a']);
  });

  test('silent when everything is here', async () => {
    expect((await preflight([here('a')])).said).toEqual([]);
  });
});
