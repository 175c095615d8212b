// What an engine refuses is told before anything is made, also where it takes twenty seconds to say so.
import type Docker from 'dockerode';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { engineRefusals } from '../../../src/environment/docker/engineRefusals.ts';
import { environmentConfigSchema } from '../../../src/environment/environments.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
afterEach(() => void vi.useRealTimers());

const refusing = (statusCode: number, message: string) => async (): Promise<never> => {
  await new Promise((resolve) => setTimeout(resolve, 20_000));
  throw Object.assign(new Error(message), { statusCode });
};

test('a network that it does not have, and a container that it does not make', async () => {
  const docker = {
    getNetwork: () => ({ inspect: refusing(404, 'no such network') }),
    createContainer: refusing(400, 'invalid storage option'),
    listNetworks: async () => [{ Name: 'bridge' }],
  } as unknown as Docker;
  const asking = engineRefusals(docker, environmentConfigSchema.parse({ network: 'mine' }));
  await vi.advanceTimersByTimeAsync(60_000);
  expect(await asking).toEqual([
    'it has no network "mine", but bridge',
    'it refuses such a container: invalid storage option',
  ]);
});
