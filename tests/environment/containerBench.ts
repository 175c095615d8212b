// Real containers as the conformance suite takes them.
import type { TestDocker } from '../support/dockerEnvironment.ts';
import type { Bench } from './suites/bench.ts';

export const containerBench = (docker: TestDocker): Bench => ({
  start: docker.start,
  stop: docker.stop,
  sideBySide: true,
  workTree: () => '/testbed',
  can: { limits: true, container: true, separateOutput: true },
});
