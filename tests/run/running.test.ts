// Works of one process that know nothing of each other: each has the engine that its own variables name.
import { setTimeout as pause } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { engineClient } from '../../src/environment/places/chosenEngine.ts';
import { startWork } from '../../src/run/running.ts';

/** Where a client that is made without any options would ask. */
const port = () => (engineClient().modem as { port?: number | string }).port;

test('two works ask the engines of their own variables, however they take turns', async () => {
  const turns = [Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const;
  const begin = (own: number, other: number) => async () => {
    const first = port();
    // Each waits until the other one has begun.
    turns[own]!.resolve();
    await turns[other]!.promise;
    const later = await new Promise((resolve) => setImmediate(() => resolve(port())));
    return [first, later];
  };
  const one = await startWork({ env: { DOCKER_HOST: 'tcp://127.0.0.1:1111' } }, async (_caller, begun) => {
    begun();
    return begin(0, 1)();
  });
  const two = await startWork({ env: { DOCKER_HOST: 'tcp://127.0.0.1:2222' } }, async (_caller, begun) => {
    begun();
    return begin(1, 0)();
  });
  const ports = (await Promise.all([one.result, two.result])).map((all) => all.map(Number));
  expect(ports).toEqual([
    [1111, 1111],
    [2222, 2222],
  ]);
});

test('the engine of a work is not that of what comes after it', async () => {
  const before = port();
  const work = await startWork({ env: { DOCKER_HOST: 'tcp://127.0.0.1:3333' } }, async () => {
    await pause(0);
    return port();
  });
  expect(Number(await work.result)).toBe(3333);
  expect(port()).toBe(before);
});

test('variables that name no engine reject in the work that needs one', async () => {
  const work = await startWork({ env: { DOCKER_HOST: 'nonsense://' } }, async (_caller, begun) => {
    begun();
    return port();
  });
  await expect(work.result).rejects.toThrow(/DOCKER_HOST/);
});
