// What the policy removes while other things happen to the engine.
import { expect, test } from 'vitest';
import { collectImages } from '../../../../src/environment/places/evictImages.ts';
import type { ImageBook } from '../../../../src/environment/places/imageBook.ts';
import type { ImageEngine, ListedImage } from '../../../../src/environment/places/imageEngine.ts';

test('an image that is pulled while we look stays ours', async () => {
  const image = 'r.example/x:1';
  let here = false;
  const lines: string[] = [];
  const found: ListedImage = {
    id: 'sha256:1',
    tags: [image],
    digests: [],
    size: 1,
    containers: 1,
    sealedFrom: undefined,
  };
  const engine = {
    info: async () => ({ id: 'E', os: 'linux', architecture: 'amd64', rootDir: '/' }),
    list: async () => (here ? [found] : []),
    inspect: async () => undefined,
  } as unknown as ImageEngine;
  const book = {
    async own() {
      await Promise.resolve();
      here = true; // the pull ends between the two looks
      return [{ image, id: 'sha256:1', bytes: 1, pulledAt: 0, usedAt: 0 }];
    },
    needed: async () => new Set<string>(),
    removed: async (fact: { image: string }) => void lines.push(fact.image),
  } as unknown as ImageBook;
  await collectImages({ engine, book, policy: 'remove-after', now: 1 });
  expect(lines).toEqual([]);
});
