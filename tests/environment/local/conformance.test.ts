// The conformance suite against this machine: the part of it that needs no isolation.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import type { Environment } from '../../../src/environment/environment.ts';
import { environmentConfigSchema } from '../../../src/environment/environments.ts';
import { createLocalFactory } from '../../../src/environment/local/localFactory.ts';
import { currentOwner } from '../../../src/environment/owner.ts';
import { REPOSITORY_SCRIPT } from '../../support/dockerEnvironment.ts';
import { describeEnvironment } from '../conformance.ts';

const root = mkdtempSync(join(tmpdir(), 'swebatch-conformance-'));
const workTree = join(root, 'testbed');
const open: Environment[] = [];

const stop = async () => {
  await Promise.all(open.splice(0).map((environment) => environment.close()));
  rmSync(root, { recursive: true, force: true });
};

describeEnvironment('local', {
  async start(options = {}) {
    const home = join(root, 'home');
    execFileSync('bash', ['-ec', `rm -rf "$W"; mkdir -p "$W" ${home}; ${REPOSITORY_SCRIPT}`], {
      env: { PATH: process.env.PATH ?? '', W: workTree, HOME: home },
    });
    const config = environmentConfigSchema.parse({
      environment_class: 'local',
      cwd: workTree,
      ...options.config,
    });
    const environment = await createLocalFactory(config, {
      baseEnv: { PATH: process.env.PATH ?? '', HOME: home },
    }).start({
      instanceId: 'test__test-1',
      image: '',
      owner: currentOwner('test-run', '1'),
      ...(options.setup ? { startupCommand: options.setup } : {}),
    });
    open.push(environment);
    return environment;
  },
  stop,
  sideBySide: false,
  workTree: () => workTree,
  can: { limits: false, container: false, separateOutput: true },
});

afterAll(stop);
