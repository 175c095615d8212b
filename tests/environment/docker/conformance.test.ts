// The conformance suite against real containers, by both transports.
import { afterAll, beforeAll, describe } from 'vitest';
import { dockerAvailable } from '../../support/docker.ts';
import { repositoryImage, testDocker } from '../../support/dockerEnvironment.ts';
import { describeEnvironment } from '../conformance.ts';
import { containerBench } from '../containerBench.ts';

const available = await dockerAvailable();

describe.skipIf(!available)('docker', () => {
  const supervised = testDocker();
  const plain = testDocker({ supervisor: false });
  beforeAll(async () => {
    await repositoryImage();
  });
  for (const [name, bench, which] of [
    ['supervisor', supervised, 'all'],
    ['plain exec', plain, 'transport'],
  ] as const) {
    describeEnvironment(name, containerBench(bench), which);
    afterAll(() => bench.stop());
  }
});
