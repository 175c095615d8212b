// The probe of an environment: no answer, on a machine that is drowning, is no fact about the image and no fault of the configuration.
import { expect, test } from 'vitest';
import type { CommandResult, Environment } from '../../../src/environment/environment.ts';
import { startEnvironment } from '../../../src/run/attempt/environment.ts';
import type { AttemptJournal } from '../../../src/run/record/attemptJournal.ts';
import type { Turn } from '../../../src/run/schedule/trialQueue.ts';
import { loadSuite } from '../../../src/suites/suites.ts';
import { openedRun } from '../openedRun.ts';

await loadSuite('swe-bench');

const phases = { begin: () => undefined };
const journal = {
  phases,
  number: 1,
  environmentStarted: () => {},
  warn: () => {},
} as unknown as AttemptJournal;

/** Starts an environment whose commands end with these codes, in order. Resolves to whether it was closed. */
async function started(...codes: number[]): Promise<boolean> {
  let closed = false;
  const environment = {
    capabilities: {},
    info: {},
    async execute() {
      const exitCode = codes.shift()!;
      const exceptionInfo = exitCode < 0 ? 'timed out' : '';
      return { exitCode, output: '', timedOut: exitCode < 0, exceptionInfo } as CommandResult;
    },
    async close() {
      closed = true;
    },
  } as unknown as Environment;
  const trial = {
    image: 'image:1',
    instance: {},
    arm: {
      environment: { probe: 'flask', interpreter: ['bash', '-c'] },
      environmentFactory: { start: async () => environment },
    },
  };
  const turn = { trial, admission: undefined } as unknown as Turn;
  try {
    await startEnvironment(openedRun(), turn, journal, new AbortController().signal);
  } catch (error) {
    expect(closed).toBe(true);
    throw error;
  }
  return closed;
}

test('a package that can be imported is there', () => expect(started(0)).resolves.toBe(false));

test.each([
  ['nowhere', [1, 1], 'wrong_env'],
  ['in a login shell alone', [1, 0], 'login_shell'],
])(
  'a package that can be imported %s is told so, and the environment is removed',
  async (_where, codes, sub) => {
    await expect(started(...codes)).rejects.toMatchObject({ code: 'start_failed', sub });
  },
);

test.each([
  ['the shell', [-1, 0]],
  ['the login shell', [1, -1]],
])('no answer of %s is no answer', async (_shell, codes) => {
  await expect(started(...codes)).rejects.toMatchObject({
    code: 'start_failed',
    sub: undefined,
    message: 'whether python package "flask" of image:1 can be imported is not known: timed out',
  });
});
