// A daemon that takes the request for a container and never answers: grading has no watchdog of its own, so the start has a limit.
import type Docker from 'dockerode';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { ownConfig } from '../../../src/environment/container/container.ts';
import { createContainer, deathOf, restartContainer } from '../../../src/environment/docker/container.ts';
import { environmentConfigSchema } from '../../../src/environment/environments.ts';
import { currentOwner } from '../../../src/environment/owner.ts';
import { createEngineWatch } from '../../../src/environment/places/engineWatch.ts';
import { removalOf, removeContainer } from '../../../src/environment/places/leftovers.ts';

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

describe('a container that the engine does not answer for', () => {
  const ID = 'c'.repeat(64);
  const look = (container: object, listed: () => Promise<unknown>) => {
    const docker = { listContainers: listed } as unknown as Docker;
    const watch = createEngineWatch({ ping: async () => undefined, limitMs: 30_000 });
    const living = { docker, container: { id: ID, ...container } as Docker.Container, watch, since: 0 };
    return deathOf(living, 0, { while: 'running a command' });
  };

  test('is never inspected while it runs, which would lock it for good', async () => {
    const inspect = vi.fn(never);
    expect(await look({ inspect }, async () => [{ State: 'running' }])).toBeUndefined();
    expect(inspect).not.toHaveBeenCalled();
  });

  test('ends the attempt after a minute, and says what a person can do', async () => {
    const death = look({ inspect: never }, async () => [{ State: 'exited' }]);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(await death).toMatchObject({
      ...{ code: 'died', sub: 'unanswered', fromWithin: false },
      message: expect.stringMatching(
        /^the engine does not say what became of container c{12}, .*"runc init"/,
      ),
      evidence: { while: 'running a command', container: 'c'.repeat(12) },
    });
  });

  test('is an engine that is lost, where that answers nothing at all', async () => {
    const death = look({ inspect: never }, never);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(await death).toMatchObject({ code: 'died', sub: 'daemon_lost' });
  });

  test('is given up after half a minute where it is started anew', async () => {
    const restarted = expect(restartContainer({ id: ID, restart: never } as unknown as Docker.Container));
    const refused = restarted.rejects.toMatchObject({
      ...{ code: 'died', sub: 'unanswered', fromWithin: false },
      message: expect.stringMatching(/^the engine does not restart container c{12}, .*"runc init"/),
    });
    await vi.advanceTimersByTimeAsync(30_000);
    await refused;
  });

  test('is not removed', async () => {
    const removed = removalOf({ remove: never } as unknown as Docker.Container);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(await removed).toBe('unanswered');
  });
});

describe('a removal that another has begun', () => {
  const begun = { statusCode: 409, message: 'removal of container c is already in progress' };
  const gone = { statusCode: 404, message: 'no such container' };
  const answering = (...answers: object[]) =>
    ({
      remove: async () => {
        throw answers.length > 1 ? answers.shift() : answers[0];
      },
    }) as unknown as Docker.Container;
  beforeEach(() => void vi.useRealTimers());

  test('is waited for', async () => {
    expect(await removalOf(answering(begun, begun, gone))).toBe('gone');
  });

  test('is no removal where it does not end', async () => {
    expect(await removalOf(answering(begun), 300)).toBe('unanswered');
  });
});
