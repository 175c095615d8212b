// An engine that does not answer about an image has not said that there is none.
import type Docker from 'dockerode';
import { expect, test } from 'vitest';
import { createDockerFactory, keepWork } from '../../../src/environment/docker/dockerFactory.ts';
import { environmentConfigSchema } from '../../../src/environment/environments.ts';
import { discardWork, removeServices, servicesOfWork } from '../../../src/environment/places/leftovers.ts';

const WORK = 'swebatch.internal/work:abc';
const LATE = new Error('the Docker daemon took the request and gave no answer within 60 s');

/** Its images answer so; nothing else of it is ever asked. */
const asked = (inspect: () => Promise<unknown>) => ({ getImage: () => ({ inspect }) }) as unknown as Docker;
const silent = asked(async () => {
  throw LATE;
});
const without = asked(async () => {
  throw Object.assign(new Error('no such image'), { statusCode: 404 });
});

const container = { inspect: async () => ({ Config: {}, Image: 'sha256:1' }) } as unknown as Docker.Container;

test('an end state is not kept without what its image starts', async () => {
  await expect(keepWork(silent, container)).rejects.toBe(LATE);
});

test('an end state is not judged, and not removed, as one without services', async () => {
  await expect(servicesOfWork(silent, WORK)).rejects.toBe(LATE);
  await expect(discardWork(silent, WORK)).rejects.toBe(LATE);
  expect(await servicesOfWork(without, WORK)).toBeUndefined();
});

test('a container is not removed by its name alone where its labels may be those of its image', async () => {
  const found = [{ Id: '1', Names: ['/s'], ImageID: 'sha256:1', Labels: { 'swebatch.name': 's' } }];
  let removed = false;
  const docker = {
    ...silent,
    listContainers: async () => found,
    listNetworks: async () => [],
    listVolumes: async () => ({ Volumes: [] }),
    getContainer: () => ({
      remove: async () => {
        removed = true;
      },
    }),
  } as unknown as Docker;
  expect(await removeServices(docker, 'swebatch-services-1')).toBe(false);
  expect(removed).toBe(false);
});

test('an engine that answers nothing says of no end state that it is not there', async () => {
  const config = environmentConfigSchema.parse({ pull: 'never' });
  const factory = createDockerFactory(config, { docker: { socketPath: '/nowhere/docker.sock' } });
  await expect(factory.holdsWork(WORK)).rejects.toThrow('ENOENT');
  await factory.close();
});
