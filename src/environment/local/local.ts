/** The machine itself, without any isolation. */
import { NO_CAPABILITIES } from '../capabilities.ts';
import type { EnvironmentKind } from '../environmentKind.ts';

export const local: EnvironmentKind = {
  name: 'local',
  title: 'this machine',
  inImages: false,
  onThisMachine: true,
  engines: 'gradings',
  grades: true,
  capabilities: { ...NO_CAPABILITIES, listens: true },
  async create(config) {
    const { createLocalFactory } = await import('./localFactory.ts');
    return createLocalFactory(config);
  },
};
