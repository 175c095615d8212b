// T-26, T-27 with their clock: whatever a command does, it is dead within two seconds of its limit, by both transports.
import { afterAll, describe } from 'vitest';
import { containerBench } from '../environment/containerBench.ts';
import { timeoutSuite } from '../environment/suites/control.ts';
import { testDocker } from '../support/dockerEnvironment.ts';

const KILL_MS = 2000;

describe.each([
  ['supervisor', true],
  ['plain exec', false],
] as const)('%s', (_name, supervisor) => {
  const bench = testDocker({ supervisor });
  timeoutSuite(containerBench(bench), KILL_MS);
  afterAll(() => bench.stop());
});
