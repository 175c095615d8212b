// A daemon on a machine that is drowning learns seconds later that a container has died: until then nothing can be started in it, and the
// death is neither a result of the command nor a container that runs.
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { EnvironmentError } from '../../../src/environment/environment.ts';
import { environmentConfigSchema } from '../../../src/environment/environments.ts';
import { createChannel } from '../../../src/environment/exec/channel.ts';
import type { CommandEnd, Transport } from '../../../src/environment/exec/transport.ts';

// Waits pass at once.
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  vi.setTimerTickMode('nextTimerAsync');
});
afterEach(() => void vi.useRealTimers());

const DEATH = new EnvironmentError('died', 'container 1 is not running: state exited, exit code 137', {
  sub: 'oom',
});
/** More looks than there are within the first second. */
const LOOKS = 5;

const NO_TRANSPORT: Transport = {
  name: 'supervisor',
  run: async () => {
    throw new Error('cannot exec in a stopped state');
  },
  killAll: async () => false,
  reset: () => undefined,
  lastWords: () => '',
  close: () => undefined,
};

/** A channel into a container that has died, which its engine says after some looks. */
function intoDeadContainer(end: CommandEnd | undefined, lives = false) {
  let looks = 0;
  const transport: Transport = {
    ...NO_TRANSPORT,
    run: async () => {
      if (!end) throw new Error('cannot exec in a stopped state');
      const none = { raw: new Uint8Array(), totalBytes: 0, omittedBytes: 0, replacedBytes: 0 };
      const output = () => ({ ...none, output: '' });
      return { ended: Promise.resolve(end), kill: () => undefined, output, transport: 'supervisor' };
    },
    killAll: async () => {
      if (lives) return true;
      throw new Error('cannot exec in a stopped state');
    },
  };
  const control = {
    death: async () => {
      looks += 1;
      return !lives && looks > LOOKS ? DEATH : undefined;
    },
    restart: async () => undefined,
    watchDisk: () => () => undefined,
  };
  return createChannel(transport, environmentConfigSchema.parse({ timeout: 60 }), control);
}

test.each<[string, CommandEnd | undefined]>([
  ['the stream of a command is lost', { kind: 'lost' }],
  ['nothing of a command runs', { kind: 'unstarted' }],
])(
  'the end of a container is what ends the attempt, where the engine tells it late and %s',
  async (_, end) => {
    await expect(intoDeadContainer(end).execute('x')).rejects.toBe(DEATH);
  },
);

test('also of a script of ours', async () => {
  await expect(intoDeadContainer({ kind: 'lost' }).harness('x', { timeoutS: 60 })).rejects.toBe(DEATH);
});

test('where what is left can be killed, the container lives, and the command has a result', async () => {
  expect(await intoDeadContainer({ kind: 'lost' }, true).execute('x')).toMatchObject({ exitCode: -1 });
});

test.each([
  ['the connection broke', async () => undefined],
  ['no new one came', () => Promise.reject(new Error('the supervisor did not start: no answer'))],
])('what is left running is asked once more where %s', async (_when, first) => {
  const answers = [first, async () => ({ count: 1, names: ['server'] })];
  const channel = createChannel(
    { ...NO_TRANSPORT, left: () => answers.shift()!() },
    environmentConfigSchema.parse({}),
    { death: async () => undefined, restart: async () => undefined, watchDisk: () => () => undefined },
  );
  expect(await channel.left()).toEqual({ count: 1, names: ['server'] });
});
