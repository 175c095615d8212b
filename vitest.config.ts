// Test runner settings: projects by what a file needs, no retries, a fixed time zone and no language so that nothing depends on the machine.
import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { LongestFirst } from './tests/support/longestFirst.ts';
import { PROJECTS, type Project, projectOf, testFiles } from './tests/support/projects.ts';

process.env.TZ = 'UTC';
// Else bash warns on stderr of a locale that is not installed here, and git and others answer in another language.
for (const name of Object.keys(process.env)) if (/^(LC_|LANG)/.test(name)) delete process.env[name];

const cores = availableParallelism();
const files = Map.groupBy(testFiles(), projectOf);
const FOLDER = 'tests/support/temporaryFolder.ts';

/**
 * Unit tests compute. The others wait a good part of the time, for programs, engines and browsers: with four of them two processors idle for 9 % of a
 * run, with five for 3 %. Files that share a worker share the modules that they load.
 */
const how = (name: Project) =>
  name === 'unit'
    ? {
        pool: 'threads' as const,
        isolate: false,
        maxWorkers: cores,
        globalSetup: [FOLDER],
        sequence: { groupOrder: 0 },
      }
    : {
        pool: 'forks' as const,
        isolate: name === 'alone',
        maxWorkers: Math.ceil(2.5 * cores),
        globalSetup: [FOLDER, 'tests/support/builtProgram.ts'],
        sequence: { groupOrder: 1 },
      };

export default defineConfig({
  test: {
    sequence: { sequencer: LongestFirst },
    reporters: ['default', './tests/support/notRun.ts'],
    projects: PROJECTS.map((name) => ({
      extends: true as const,
      test: {
        name,
        include: files.get(name) ?? [],
        // Far above what any test takes: they end what hangs, and judge nobody's speed.
        testTimeout: 300_000,
        hookTimeout: 300_000,
        expect: { poll: { timeout: 120_000 } },
        setupFiles: ['tests/support/ownVariables.ts'],
        ...how(name),
      },
    })),
  },
});
