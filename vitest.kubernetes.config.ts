// Tests on a real cluster: npm run test:kubernetes, which sets one up on this machine. They share one node and run one after the other.
import { homedir } from 'node:os';
import { join } from 'node:path';
import { defineConfig } from 'vitest/config';

process.env.TZ = 'UTC';
process.env.SWEBATCH_KUBERNETES ??= join(homedir(), '.cache', 'swebatch', 'kubernetes');
process.env.KUBECONFIG = join(process.env.SWEBATCH_KUBERNETES, 'run', 'runner.kubeconfig');

export default defineConfig({
  test: {
    include: ['tests/kubernetes/**/*.test.ts'],
    globalSetup: ['tests/support/temporaryFolder.ts'],
    pool: 'forks',
    maxWorkers: 1,
    fileParallelism: false,
    testTimeout: 300_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 120_000 } },
  },
});
