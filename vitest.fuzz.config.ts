// The fuzz suite: random and half-broken input until the time is up. npm run fuzz; FUZZ_SECONDS, FUZZ_SEED and FUZZ_ONLY choose how long, what and which.
import { defineConfig } from 'vitest/config';

process.env.TZ = 'UTC';

export default defineConfig({
  test: {
    include: ['tests/fuzz/**/*.fuzz.ts'],
    globalSetup: ['tests/support/temporaryFolder.ts'],
    pool: 'forks',
    maxWorkers: 1,
    testTimeout: 3_600_000,
    hookTimeout: 300_000,
  },
});
