// The Docker environment as a module, with and without containers started ahead: what `bench:runner -- --turnover` compares.

import type { PlainFactory } from '../../src/environment/capabilities.ts';
import { createDockerFactory } from '../../src/environment/docker/dockerFactory.ts';
import type { EnvironmentConfig } from '../../src/environment/environmentConfig.ts';

export function createEnvironmentFactory(config: EnvironmentConfig): PlainFactory {
  const { prepare, ...rest } = createDockerFactory(config);
  return process.env.SWEBATCH_BENCH_AHEAD === '0' ? rest : { ...rest, prepare };
}
