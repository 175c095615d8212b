/** Containers of a Docker engine, or of Podman where it answers the same API. */
import type { EnvironmentKind } from '../environmentKind.ts';

export const docker: EnvironmentKind = {
  name: 'docker',
  title: 'Docker',
  inImages: true,
  onThisMachine: false,
  engines: 'all',
  grades: true,
  capabilities: {
    asUsers: true,
    readsFolders: true,
    canKeepWork: true,
    worksBeside: true,
    listens: true,
    opensHosts: true,
    runsServices: true,
    hasGpus: true,
    bringsPrograms: true,
  },
  async create(config, options) {
    const { createDockerFactory } = await import('./dockerFactory.ts');
    return createDockerFactory(config, options);
  },
  async refusals(engine, config, { capAdd } = {}) {
    const { engineRefusals } = await import('./engineRefusals.ts');
    return engineRefusals(engine, config, capAdd);
  },
};
