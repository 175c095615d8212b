// The conformance suite against pods, by both transports.
import { afterAll, beforeAll } from 'vitest';
import { describeEnvironment } from '../environment/conformance.ts';
import { repositoryImage } from '../support/dockerEnvironment.ts';
import { testCluster } from './testCluster.ts';

beforeAll(async () => {
  await repositoryImage();
});

for (const [name, supervisor] of [
  ['supervisor', true],
  ['plain exec', false],
] as const) {
  const cluster = testCluster({ supervisor });
  describeEnvironment(`kubernetes, ${name}`, {
    start: cluster.start,
    stop: cluster.stop,
    sideBySide: false,
    workTree: () => '/testbed',
    can: { limits: true, container: true, separateOutput: true },
  });
  afterAll(() => cluster.stop());
}
