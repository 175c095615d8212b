// The conformance suite against Podman: as root and without, by both transports. vitest.podman.config.ts says which socket is asked.
import { afterAll, beforeAll, describe } from 'vitest';
import { engineInfo } from '../../src/environment/places/engineInfo.ts';
import { describeEnvironment } from '../environment/conformance.ts';
import { containerBench } from '../environment/containerBench.ts';
import { docker, dockerAvailable } from '../support/docker.ts';
import { repositoryImage, testDocker } from '../support/dockerEnvironment.ts';

await dockerAvailable();
const info = await engineInfo(docker);
if (!info.ok || info.name !== 'Podman') throw new Error(`no Podman answers at ${process.env.DOCKER_HOST}`);
const { rootless, limitsIgnored } = info;

describe(`podman, ${rootless ? 'rootless' : 'rootful'}`, () => {
  beforeAll(async () => {
    await repositoryImage();
  });
  for (const [name, bench] of [
    ['supervisor', testDocker()],
    ['plain exec', testDocker({ supervisor: false })],
  ] as const) {
    const { can, ...rest } = containerBench(bench);
    describeEnvironment(name, { ...rest, can: { ...can, limits: !limitsIgnored } });
    afterAll(() => bench.stop());
  }
});
