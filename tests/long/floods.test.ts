// T-29 as it is written: a flood of output costs less than 50 MB and holds up nobody. Alone in its process, by both transports.
import { afterAll, beforeAll, describe } from 'vitest';
import { containerBench } from '../environment/containerBench.ts';
import { floodSuite } from '../environment/suites/output.ts';
import { docker } from '../support/docker.ts';
import { repositoryImage, testDocker } from '../support/dockerEnvironment.ts';

const MB = 1024 * 1024;
/** What the configuration keeps unless somebody sets another. */
const LIMITS = { rss: 50 * MB, yesS: 10, keptBytes: 5 * MB, zerosMB: 2048, othersMs: 1000 };

describe.each([
  ['supervisor', true],
  ['plain exec', false],
] as const)('%s', (_name, supervisor) => {
  const bench = testDocker({ supervisor });
  beforeAll(async () => {
    await docker.ping();
    // What every run has loaded and warmed before the first command is not the flood's: one ordinary command, one of the size kept.
    await repositoryImage();
    const env = await bench.start();
    await env.execute('head -c 6000000 /dev/zero');
  });
  floodSuite(containerBench(bench), LIMITS);
  afterAll(() => bench.stop());
});
