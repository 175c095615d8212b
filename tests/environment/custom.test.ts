// The conformance suite over a module of somebody else's: SWEBATCH_TEST_ENVIRONMENT=./my-environment.ts npx vitest run tests/environment/custom.test.ts
// See docs/extension.md. Without the variable there is nothing to test.
import { resolve } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import type { Environment, EnvironmentFactory } from '../../src/environment/environment.ts';
import { createEnvironmentFactory, environmentConfigSchema } from '../../src/environment/environments.ts';
import { currentOwner } from '../../src/environment/owner.ts';
import { REPOSITORY_SCRIPT } from '../support/dockerEnvironment.ts';
import { describeEnvironment } from './conformance.ts';
import type { Bench, StartOptions } from './suites/bench.ts';

/** What a module may say of itself beside `createEnvironmentFactory`. */
interface Conformance {
  /** Default: /testbed. It is made a git repository by the setup of each start. */
  readonly workTree?: string;
  readonly image?: string;
  readonly can?: Partial<Bench['can']>;
}

const path = process.env.SWEBATCH_TEST_ENVIRONMENT;

if (!path) test.skip('no module is named in SWEBATCH_TEST_ENVIRONMENT', () => undefined);
else {
  const { conformance = {} } = (await import(resolve(path))) as { conformance?: Conformance };
  const workTree = conformance.workTree ?? '/testbed';
  const factories: EnvironmentFactory[] = [];
  const open: Environment[] = [];
  const stop = async () => {
    await Promise.all(open.splice(0).map((environment) => environment.close()));
    await Promise.all(factories.splice(0).map((factory) => factory.close()));
  };
  let started = 0;
  // One after the other: an implementation may have a single work tree.
  let last: Promise<unknown> = Promise.resolve();
  const start: Bench['start'] = (options = {}) => {
    const next = last.then(() => startOne(options));
    last = next.catch(() => undefined);
    return next;
  };
  const startOne = async (options: StartOptions) => {
    const config = environmentConfigSchema.parse({
      environment_class: resolve(path),
      cwd: workTree,
      ...options.config,
    });
    const factory = await createEnvironmentFactory(config);
    factories.push(factory);
    started += 1;
    // In a subshell, without the GIT variables that a test may have set for commands.
    const repository = `(unset \${!GIT_*}; W='${workTree}'; mkdir -p "$W"; find "$W" -mindepth 1 -delete; ${REPOSITORY_SCRIPT})`;
    const environment = await factory.start({
      instanceId: 'test__test-1',
      image: conformance.image ?? '',
      owner: currentOwner('test-run', String(started)),
      // A setup is run by the configured interpreter, which one test sets to python: that one needs no repository.
      ...(config.interpreter[0] === 'bash' && { startupCommand: `${repository}\n${options.setup ?? ''}` }),
    });
    open.push(environment);
    return environment;
  };
  describe('a module of somebody else [M-39]', () => {
    describeEnvironment(path, {
      start,
      stop,
      sideBySide: false,
      workTree: () => workTree,
      can: { limits: false, container: false, separateOutput: false, ...conformance.can },
    });
    test('a setup that fails is an EnvironmentError', async () => {
      await expect(start({ setup: 'exit 3' })).rejects.toMatchObject({
        name: 'EnvironmentError',
        code: 'setup_failed',
      });
    });
  });
  afterAll(stop);
}
