// An environment module as docs/extension.md has them: every trial works on this machine, in a copy of environment.cwd that nobody else has. For
// faults in which the container plays no part.
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLocalFactory } from '../../dist/index.js';

export const createEnvironmentFactory = (config) => ({
  kind: 'local',
  close: async () => undefined,
  async start(request) {
    const folder = await mkdtemp(join(tmpdir(), 'swebatch-tree-'));
    const cwd = join(folder, 'testbed');
    await cp(config.cwd, cwd, { recursive: true, verbatimSymlinks: true });
    // What images load before a command is no file of this machine.
    const { BASH_ENV: _, ...env } = config.env;
    const environment = await createLocalFactory({ ...config, cwd, env }).start(request);
    return {
      ...environment,
      async close() {
        await environment.close();
        await rm(folder, { recursive: true, force: true });
      },
    };
  },
});
