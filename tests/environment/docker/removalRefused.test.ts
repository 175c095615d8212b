// An engine that refuses to remove containers, as with a busy device: of an attempt, of a relay, of what looks into images for programs.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildPrograms } from '../../../scripts/buildPrograms.ts';
import { createDockerFactory } from '../../../src/environment/docker/dockerFactory.ts';
import { environmentConfigSchema } from '../../../src/environment/environments.ts';
import { currentOwner, LABELS } from '../../../src/environment/owner.ts';
import { type CuttableDaemon, cuttableDaemon } from '../../support/cuttableDaemon.ts';
import { docker, dockerAvailable } from '../../support/docker.ts';
import { BASE_IMAGE } from '../../support/dockerEnvironment.ts';

const available = await dockerAvailable();

describe.skipIf(!available)('an engine that refuses to remove', () => {
  let daemon: CuttableDaemon;
  beforeAll(() => {
    buildPrograms();
    daemon = cuttableDaemon();
  });
  afterAll(() => daemon?.close());

  test('the container and its relay are named, tried again, and gone at the end', async () => {
    const said: string[] = [];
    const run = `refused-${process.pid}`;
    const factory = createDockerFactory(
      environmentConfigSchema.parse({ network: 'none', pull: 'never', seal_history: false, cwd: '/' }),
      { docker: { socketPath: daemon.path }, onWarning: (text) => said.push(text) },
    );
    const owner = currentOwner(run, '1');
    const environment = await factory.start({ instanceId: 'x__x-1', image: BASE_IMAGE, owner });
    await environment.listen(13131, (connection) => connection.destroy());
    const here = async () =>
      (await docker.listContainers({ all: true, filters: { label: [`${LABELS.run}=${run}`] } })).map(
        ({ Id }) => Id.slice(0, 12),
      );
    const made = await here();
    expect(made).toHaveLength(2);
    daemon.keepContainers(true);
    await environment.close();
    expect(said.toSorted()).toEqual(
      made.map((id) => `container ${id} could not be removed; it is tried again`).toSorted(),
    );
    daemon.keepContainers(false);
    await factory.close();
    expect(said.slice(2).toSorted()).toEqual(made.map((id) => `container ${id} is removed now`).toSorted());
    expect(await here()).toEqual([]);
  });
});
