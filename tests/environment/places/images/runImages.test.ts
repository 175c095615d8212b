// What a run asks of the images of its engine.
import { expect, test } from 'vitest';
import type { ImageService } from '../../../../src/environment/places/imageService.ts';
import { runImagesOf } from '../../../../src/environment/places/places.ts';

const config = { ahead: 4, policy: 'keep', disk_low: '0', pull: 'missing' } as const;
const nothing = { removed: [], kept: [] };

/** `room`: resolves when the disk has room. */
function imagesWith(room: Promise<void>) {
  const calls: string[] = [];
  const given: unknown[] = [];
  // Only what a run asks of it.
  const service = {
    stage: {
      async ensure(image: string) {
        calls.push(`ensure ${image}`);
        return { warnings: ['it is EMULATED'] };
      },
    },
    disk: {
      pass: (signal: AbortSignal) =>
        Promise.race([room, new Promise<void>((done) => signal.addEventListener('abort', () => done()))]),
    },
    async done(_image: string, among: unknown) {
      given.push(among);
      return nothing;
    },
    async collect({ among }: { among: unknown }) {
      given.push(among);
      return nothing;
    },
  } as unknown as ImageService;
  return { images: runImagesOf(service, config), calls, given };
}

test('the disk is asked before the registry; what people should hear comes with the image', async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const { images, calls } = imagesWith(promise);
  const waiting = images.ready('x', new AbortController().signal);
  await new Promise((turn) => setImmediate(turn));
  expect(calls).toEqual([]);
  resolve();
  expect(await waiting).toEqual(['it is EMULATED']);
  expect(calls).toEqual(['ensure x']);
});

test('stopping ends the wait for room', async () => {
  const { images } = imagesWith(new Promise(() => {}));
  const stop = new AbortController();
  const waiting = images.ready('x', stop.signal);
  stop.abort(new Error('stopped'));
  await expect(waiting).rejects.toThrow('stopped');
});

test('what belongs to the run is what the policy is given', async () => {
  const { images, given } = imagesWith(Promise.resolve());
  images.belong(['x', 'y']);
  await images.done('x');
  await images.collect();
  expect(given).toEqual(Array(2).fill(['x', 'y']));
});
