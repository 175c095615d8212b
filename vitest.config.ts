// Test runner settings: one process pool, no retries, a fixed time zone and no language so that nothing depends on the machine.
import { defineConfig } from 'vitest/config';
import { LongestFirst } from './tests/support/longestFirst.ts';

process.env.TZ = 'UTC';
// Else bash warns on stderr of a locale that is not installed here, and git and others answer in another language.
for (const name of Object.keys(process.env)) if (/^(LC_|LANG)/.test(name)) delete process.env[name];

export default defineConfig({
  test: {
    include: ['tests/**/*.test.ts'],
    exclude: ['tests/long/**', 'tests/kubernetes/**', 'tests/podman/**', 'node_modules/**'],
    globalSetup: ['tests/support/temporaryFolder.ts', 'tests/support/builtProgram.ts'],
    pool: 'forks',
    maxWorkers: 2,
    sequence: { sequencer: LongestFirst },
    // Far above what any test takes: they end what hangs, and judge nobody's speed.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 30_000 } },
  },
});
