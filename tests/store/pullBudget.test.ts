// A budget of pulls that engines and processes of one results root share through the record.
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { pullThrottle } from '../../src/environment/places/pullImage.ts';
import { takePull, takeRate } from '../../src/store/live/rates.ts';
import { fakeJobs, settled } from '../environment/places/images/fakeEngine.ts';
import { tempDir } from '../support/cli.ts';
import fc from '../support/property.ts';
import { freshStore } from './storeFixtures.ts';

const HUB = 'docker.io';
const SIX_HOURS = 6 * 3_600_000;
const T0 = Date.UTC(2026, 0, 1);

test('three processes begin no more pulls in any window than the budget allows, and no fewer', () => {
  fc.assert(
    fc.property(
      fc.array(fc.nat(400_000), { minLength: 10, maxLength: 80 }),
      fc.integer({ min: 1, max: 4 }),
      (gaps, pulls) => {
        const path = join(tempDir(), 'swebatch.db');
        const stores = [freshStore(path), freshStore(path), freshStore(path)];
        const windowMs = 1_000_000;
        const begun: number[] = [];
        let at = T0;
        for (const [i, gap] of gaps.entries()) {
          at += gap;
          const wait = takePull(stores[i % 3]!, { registry: HUB, at, pulls, windowMs });
          const inWindow = begun.filter((one) => one > at - windowMs).length;
          if (wait === 0) begun.push(at);
          expect(inWindow + (wait === 0 ? 1 : 0)).toBeLessThanOrEqual(pulls);
          // A quarter of a second is the grain of the record.
          if (begun.filter((one) => one > at - windowMs - 250).length < pulls) expect(wait).toBe(0);
          if (wait > 0)
            expect(
              takePull(stores[0]!, { registry: HUB, at: at + wait - 251, pulls, windowMs }),
            ).toBeGreaterThan(0);
        }
        for (const store of stores) store.close();
      },
    ),
    { numRuns: 20 },
  );
});

test('registries and models do not count for each other, and a clock of the future holds back nobody for ever', () => {
  const store = freshStore();
  const ask = { registry: HUB, at: T0, pulls: 1, windowMs: SIX_HOURS };
  expect(takePull(store, { ...ask, at: T0 + 2 * SIX_HOURS })).toBe(0);
  expect(takePull(store, ask)).toBe(0);
  expect(takePull(store, { ...ask, at: T0 + 60_000 })).toBeGreaterThan(SIX_HOURS - 61_000);
  expect(takePull(store, { ...ask, registry: 'quay.io' })).toBe(0);
  expect(takeRate(store, { account: HUB, at: T0, rpm: 1, tpm: null, tokens: 5 })).toBe(0);
});

test('two engines of two processes pull three images on a budget of two: the third begins when the window has moved', async () => {
  const path = join(tempDir(), 'swebatch.db');
  const [one, two] = [1, 2].map(() => {
    const store = freshStore(path);
    const book = { take: (ask: Parameters<typeof takePull>[1]) => takePull(store, ask) };
    return fakeJobs(
      { max_concurrent_pulls: 3 },
      { throttle: pullThrottle({ pulls: 2, windowMs: 60_000, book }) },
    );
  });
  const ask = async (jobs: NonNullable<typeof one>, image: string) => {
    void jobs.ensure(image).catch(() => undefined);
    await settled();
  };
  await ask(one!, 'a/1:1');
  await ask(two!, 'a/2:1');
  await ask(two!, 'a/3:1');
  expect([one!.pulls.length, two!.pulls.length]).toEqual([1, 1]);
  expect(two!.events).toContainEqual(expect.objectContaining({ type: 'paused', reason: 'budget' }));
  await two!.clock.advance(60_250);
  expect(two!.pulls.map(({ name }) => name)).toEqual(['a/2:1', 'a/3:1']);
});
