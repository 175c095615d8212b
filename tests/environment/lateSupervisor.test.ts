// On a machine that is drowning a supervisor answers late: an environment does not do without it for that.
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { type Container, openChannels } from '../../src/environment/container/container.ts';
import { environmentConfigSchema } from '../../src/environment/environments.ts';
import type { ContainerProcess } from '../../src/environment/exec/transport.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
afterEach(() => void vi.useRealTimers());

const processThat = (listen: ContainerProcess['listen'], destroy = () => {}): ContainerProcess => ({
  listen,
  write: () => {},
  pause: () => {},
  resume: () => {},
  destroy,
  exitCode: async () => 0,
});

/** Its supervisor answers after that time, and its plain exec at once. */
const containerWith = (answerMs: number, supervisors: unknown[]) =>
  ({
    supervisorMs: 15_000,
    death: async () => undefined,
    wasCut: () => false,
    remove: async () => {},
    startProcess: async (argv: readonly string[]) => {
      if (argv.includes('swebatch-supervisor')) {
        supervisors.push(argv);
        let gone = () => {};
        return processThat(
          (told) => {
            gone = told.gone;
            setTimeout(() => told.stderr(Buffer.from('\x1eready 1,7 /tmp/x\x1e')), answerMs);
          },
          () => gone(),
        );
      }
      return processThat((told) => {
        told.stdout(Buffer.from(argv.includes('swebatch-probe') ? 'yes 0 1,9' : '1,9'));
        told.gone();
      });
    },
  }) as unknown as Container;

test.each([
  [3000, 1, 'supervisor'],
  [40_000, 2, 'supervisor'],
  [1_000_000, 2, 'exec'],
])('a supervisor that answers after %i ms', async (answerMs, tries, transport) => {
  const supervisors: unknown[] = [];
  const notes: string[] = [];
  const opening = openChannels(
    containerWith(answerMs, supervisors),
    environmentConfigSchema.parse({ start_timeout: 0 }),
    notes,
  );
  await vi.advanceTimersByTimeAsync(100_000);
  expect((await opening).own.transport).toBe(transport);
  expect(supervisors).toHaveLength(tries);
  expect(notes).toHaveLength(transport === 'exec' ? 1 : 0);
});
