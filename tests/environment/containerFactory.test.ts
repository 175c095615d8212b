// One factory for every driver: a start that its engine cut off, or asked to come again, begins anew; nothing else does.
import { afterEach, expect, test, vi } from 'vitest';
import { createContainerFactory, type Driver } from '../../src/environment/container/containerFactory.ts';
import { EnvironmentError, isLoss } from '../../src/environment/environment.ts';
import { currentOwner } from '../../src/environment/owner.ts';

const request = { instanceId: 'a__a-1', image: 'i', owner: currentOwner('r', '1.1') };
const lost = () => new EnvironmentError('daemon_lost', 'no answer');
const taken = () => new EnvironmentError('start_failed', 'the name is taken', { again: true });
const missing = () => new EnvironmentError('image_missing', 'no such image');

afterEach(() => void vi.useRealTimers());

/** A driver whose starts fail in this way, one after the other, the last again and again; its engine is away for `away` looks after each. */
function failing(ways: readonly (() => EnvironmentError)[], { away = 0, outageMs = 60_000 } = {}) {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  vi.setTimerTickMode('nextTimerAsync');
  const seen = { opened: 0, looks: 0 };
  const driver: Driver = {
    async open() {
      seen.looks = 0;
      throw ways[Math.min(seen.opened++, ways.length - 1)]!();
    },
    cutOff: isLoss,
    holdsWork: async () => false,
    systemChanges: async () => undefined,
    discardWork: async () => undefined,
    close: async () => undefined,
  };
  const ping = async () => {
    if (seen.looks++ < away) throw new Error('refused');
  };
  const factory = createContainerFactory({ kind: 'fake', ping, outageMs, driver: () => driver });
  return { seen, factory };
}

test('a start that was cut off is made again once the engine is back; what an image lacks is told at once', async () => {
  const { seen, factory } = failing([lost, taken, missing], { away: 3 });
  await expect(factory.start(request)).rejects.toMatchObject({ code: 'image_missing' });
  expect(seen.opened).toBe(3);
  expect(factory.awayMs()).toBeGreaterThan(0);
  await factory.close();
  await expect(factory.start(request)).rejects.toThrow('the environment factory is closed');
});

test('five starts are enough, and an engine that stays away is told by its watch', async () => {
  const { seen, factory } = failing([taken]);
  await expect(factory.start(request)).rejects.toThrow('the name is taken');
  expect(seen.opened).toBe(5);
  const gone = failing([lost], { away: Number.POSITIVE_INFINITY, outageMs: 1 });
  await expect(gone.factory.start(request)).rejects.toMatchObject({
    code: 'daemon_lost',
    message: expect.stringContaining('it was waited for'),
  });
  expect(gone.seen.opened).toBe(1);
});

test('a start that nobody wants any more is not made again', async () => {
  const abort = new AbortController();
  const { seen, factory } = failing([
    () => {
      abort.abort(new Error('stopped'));
      return lost();
    },
  ]);
  await expect(factory.start({ ...request, signal: abort.signal })).rejects.toThrow('no answer');
  expect(seen.opened).toBe(1);
});
