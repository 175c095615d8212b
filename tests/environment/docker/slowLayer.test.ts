// An engine that takes two minutes to say what differs in a large layer loses no end state: the commit of that layer has ten.
import type Docker from 'dockerode';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { systemChangesOf } from '../../../src/environment/docker/systemChanges.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
afterEach(() => void vi.useRealTimers());

test('what an agent changed is known after two minutes', async () => {
  const container = {
    inspect: async () => ({ Config: { Env: ['PATH=/usr/bin'], WorkingDir: '/work' } }),
    changes: async () => {
      await new Promise((resolve) => setTimeout(resolve, 120_000));
      return [{ Path: '/usr/bin/python3', Kind: 2 }];
    },
  } as unknown as Docker.Container;
  const looking = systemChangesOf(container);
  await vi.advanceTimersByTimeAsync(130_000);
  expect(await looking).toMatchObject({ changed: ['/usr/bin/python3'] });
});
