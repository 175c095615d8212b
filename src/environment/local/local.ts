/** This machine, without any isolation. */
import type { EnvironmentKind } from '../environmentKind.ts';

export const local: EnvironmentKind = {
  name: 'local',
  title: 'this machine',
  inImages: false,
  onThisMachine: true,
  engines: 'gradings',
  grades: true,
  canKeepWork: false,
  listens: true,
  opensHosts: false,
  runsServices: false,
  hasGpus: false,
  bringsPrograms: false,
  async create(config) {
    const { createLocalFactory } = await import('./localFactory.ts');
    return createLocalFactory(config);
  },
};
