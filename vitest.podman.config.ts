// Tests on Podman, as root and without: npm run test:podman, which starts a service of each. One after the other: they share two processors.
import { join } from 'node:path';
import { defineConfig } from 'vitest/config';

process.env.TZ = 'UTC';
const folder = process.env.SWEBATCH_PODMAN ?? '/var/tmp/swebatch-podman';

const project = (name: string) => ({
  extends: true as const,
  test: {
    name,
    env: { DOCKER_HOST: `unix://${join(folder, name, 'podman.sock')}`, SWEBATCH_REQUIRE_DOCKER: '1' },
  },
});

export default defineConfig({
  test: {
    include: ['tests/podman/**/*.test.ts'],
    globalSetup: ['tests/support/temporaryFolder.ts'],
    pool: 'forks',
    maxWorkers: 1,
    fileParallelism: false,
    testTimeout: 120_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 30_000 } },
    projects: [project('rootful'), project('rootless')],
  },
});
