// A daemon that takes the request for a container and never answers: grading has no watchdog of its own, so the start has a limit.
import type Docker from 'dockerode';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { ownConfig } from '../../../src/environment/container/container.ts';
import { createContainer } from '../../../src/environment/docker/container.ts';
import { environmentConfigSchema } from '../../../src/environment/environments.ts';
import { currentOwner } from '../../../src/environment/owner.ts';
import { createEngineWatch } from '../../../src/environment/places/engineWatch.ts';
import { removeContainer } from '../../../src/environment/places/leftovers.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const never = () => new Promise<never>(() => {});

test.each<[string, object]>([
  ['create', { createContainer: never, getContainer: () => ({ remove: never }) }],
  [
    'start',
    {
      createContainer: async () => ({ id: 'c1', start: never, remove: never }),
      getContainer: () => ({ remove: never }),
    },
  ],
])('that never answers to %s ends the start with the reason', async (_what, docker) => {
  const started = createContainer(docker as unknown as Docker, {
    config: ownConfig(environmentConfigSchema.parse({}), undefined),
    image: 'x',
    request: { instanceId: 'a__a-1', image: 'x', owner: currentOwner('r', '1') },
    quietEnv: true,
    capAdd: [],
    storageBytes: 0,
    watch: createEngineWatch({ ping: never, limitMs: 30_000 }),
    discard: async (container) => void (await removeContainer(container)),
  });
  const refused = expect(started).rejects.toMatchObject({
    code: 'start_failed',
    message: expect.stringContaining(
      'the container of a__a-1 did not start: the Docker daemon took the request and gave no answer within 600 s',
    ),
  });
  await vi.advanceTimersByTimeAsync(3_600_000);
  await refused;
});
