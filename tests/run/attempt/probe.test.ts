// The probe of an environment: what had no answer, on a machine that is drowning, is no fact about the image and no fault of the configuration.
import { expect, test } from 'vitest';
import type { CommandResult, Environment } from '../../../src/environment/environment.ts';
import { probeEnvironment } from '../../../src/run/attempt/environment.ts';
import type { PlannedTrial } from '../../../src/run/plannedTrial.ts';
import type { AttemptJournal } from '../../../src/run/record/attemptJournal.ts';

const trial = {
  image: 'image:1',
  arm: { environment: { probe: 'flask', interpreter: ['bash', '-c'] } },
} as unknown as PlannedTrial;
const journal = { phases: { begin: () => undefined } } as unknown as AttemptJournal;

/** Of what each command ends with, in order. */
const probed = (...codes: number[]) => {
  const execute = async (): Promise<CommandResult> => {
    const exitCode = codes.shift()!;
    return {
      exitCode,
      output: '',
      timedOut: exitCode < 0,
      exceptionInfo: exitCode < 0 ? 'timed out' : '',
    } as CommandResult;
  };
  return probeEnvironment(
    trial,
    { execute } as unknown as Environment,
    journal,
    new AbortController().signal,
  );
};

test('a package that can be imported is there', () => expect(probed(0)).resolves.toBeUndefined());

test.each([
  ['nowhere', [1, 1], 'wrong_env'],
  ['in a login shell alone', [1, 0], 'login_shell'],
])('a package that can be imported %s is told so', async (_where, codes, sub) => {
  await expect(probed(...codes)).rejects.toMatchObject({ code: 'start_failed', sub });
});

test.each([
  ['the shell', [-1, 0]],
  ['the login shell', [1, -1]],
])('no answer of %s is no answer', async (_who, codes) => {
  await expect(probed(...codes)).rejects.toMatchObject({
    code: 'start_failed',
    sub: undefined,
    message: 'whether python package "flask" of image:1 can be imported is not known: timed out',
  });
});
