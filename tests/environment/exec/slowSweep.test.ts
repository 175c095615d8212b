// On a machine that is drowning a second process in a container takes seconds to start: the first is not restarted for that, because
// a restart kills what the agent left running.
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { EnvironmentError } from '../../../src/environment/environment.ts';
import { environmentConfigSchema } from '../../../src/environment/environments.ts';
import { createChannel } from '../../../src/environment/exec/channel.ts';
import { createCollector } from '../../../src/environment/exec/outputCollector.ts';
import { createPlainExecTransport } from '../../../src/environment/exec/plainExec.ts';
import type {
  CommandEnd,
  ContainerControl,
  ContainerProcess,
  RunningCommand,
  StartProcess,
  Transport,
} from '../../../src/environment/exec/transport.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
afterEach(() => void vi.useRealTimers());

/** The clock goes on until the work is done. */
async function settled<T>(work: Promise<T>): Promise<T> {
  let over = false;
  const end = () => {
    over = true;
  };
  work.then(end, end);
  while (!over) {
    await vi.advanceTimersByTimeAsync(1000);
    await new Promise((resolve) => setImmediate(resolve));
  }
  return work;
}

type Told = Parameters<ContainerProcess['listen']>[0];

/** A container with bash: its commands run until they are swept, and its sweeps and starts take as long as is said. */
async function slowContainer({
  startMs = 0,
  sweepMs = 0,
  runMs = Number.POSITIVE_INFINITY,
  noSweep = false,
  first = '',
  bash = 'yes',
  restart = vi.fn(async (): Promise<void> => undefined),
}) {
  const sweeps: string[] = [];
  const argvs: string[][] = [];
  let unanswered = first;
  let command: Told | undefined;
  let started = false;
  let swept = false;
  const processOf = (listen: (told: Told) => void): ContainerProcess => ({
    listen,
    write: (fence) => {
      command?.stdout(Buffer.from(`\x1e${String(fence).trim()}\x1e`));
    },
    pause: () => undefined,
    resume: () => undefined,
    destroy: () => undefined,
    exitCode: async () => 0,
  });
  const answering = (text: string, ms: number, before?: () => void) =>
    processOf((told) => {
      setTimeout(() => {
        before?.();
        told.stdout(Buffer.from(text));
        told.gone();
      }, ms);
    });
  const start: StartProcess = async (argv) => {
    argvs.push([...argv]);
    if (argv.includes('swebatch-exec'))
      return processOf((told) => {
        command = told;
        setTimeout(() => {
          started = true;
          told.stderr(Buffer.from('\x1epid 77\x1e'));
          if (runMs < Number.POSITIVE_INFINITY)
            setTimeout(() => told.stderr(Buffer.from('\x1eend 0 0 0 0\x1e')), runMs);
        }, startMs);
      });
    if (noSweep && argv.includes('swebatch-sweep')) return new Promise(() => undefined);
    if (!argv.includes('swebatch-sweep')) {
      const what = argv.includes('swebatch-probe') ? 'first' : 'again';
      if (unanswered === `${what} late`) {
        unanswered = '';
        return answering('', 6000);
      }
      if (unanswered === `${what} refused`) {
        unanswered = '';
        return answering('OCI runtime exec failed: exec failed: cannot exec in a stopped state', 0);
      }
      return answering(what === 'first' ? `${bash} 0 1,9` : '1,9', 0);
    }
    return answering('1', sweepMs, () => {
      sweeps.push(argv.at(-1) ?? '');
      if (!started || swept) return;
      swept = true;
      command?.stderr(Buffer.from('\x1eend 137 0 0 0\x1e'));
    });
  };
  const opening = createPlainExecTransport(start, ['bash', '-c'], async () => undefined);
  const control: ContainerControl = {
    death: async () => undefined,
    restart,
    watchDisk: () => () => undefined,
  };
  const channel = createChannel(
    await settled(opening),
    environmentConfigSchema.parse({ timeout: 60 }),
    control,
  );
  return { channel, restart, sweeps, argvs };
}

test.each([
  ['a sweep takes four seconds', { sweepMs: 4000 }],
  ['a command has not begun when its time is up', { startMs: 3000 }],
  ['both', { startMs: 3000, sweepMs: 4000 }],
])('no restart, where %s', async (_when, slow) => {
  const { channel, restart, sweeps } = await slowContainer(slow);
  const running = channel.execute('sleep 100', { timeoutS: 0.5 });
  expect(await settled(running)).toMatchObject({ timedOut: true, exitCode: -1 });
  expect(restart).not.toHaveBeenCalled();
  expect(sweeps.at(-1)).toBe('77');
});

test.each([
  ['first late', 'bash'],
  ['first refused', 'bash'],
])('what the container is made of is asked again: %s', async (first, shell) => {
  const { channel, argvs } = await slowContainer({ first });
  const running = channel.harness('true', { timeoutS: 1 });
  await settled(running);
  const command = argvs.find((argv) => argv.includes('swebatch-exec'))!;
  expect(command).toContain(shell);
  expect(argvs.find((argv) => argv.includes('swebatch-sweep'))).toContain('1,9,77');
});

test.each(['again late', 'again refused'])('and after a restart: %s', async (first) => {
  const { channel, restart, argvs } = await slowContainer({ startMs: 1_000_000, first });
  const running = channel.execute('sleep 100', { timeoutS: 0.5 });
  await vi.advanceTimersByTimeAsync(70_000);
  await running;
  expect(restart).toHaveBeenCalledOnce();
  const before = argvs.length;
  void channel.execute('sleep 100', { timeoutS: 0.5 });
  await vi.advanceTimersByTimeAsync(7000);
  const asked = argvs.slice(before).map((argv) => argv.includes('swebatch-exec'));
  expect(asked).toEqual([false, false, true]);
});

test('an image without bash runs our scripts by sh', async () => {
  const { channel, argvs } = await slowContainer({ bash: 'no' });
  const running = channel.harness('true', { timeoutS: 1 });
  await settled(running);
  const command = argvs.find((argv) => argv.includes('swebatch-exec'))!;
  expect(command.slice(-3)).toEqual(['sh', '-c', 'true']);
});

test('a container that never answers is no environment', async () => {
  await expect(slowContainer({ bash: 'exec format error' })).rejects.toThrow(
    'no command can be started in the container: exec format error',
  );
});

test.each([
  ['the sweep finds nothing that it could kill', { startMs: 1_000_000 }],
  ['the engine never starts the sweep', { noSweep: true }],
])('a restart, where %s', async (_when, slow) => {
  const { channel, restart } = await slowContainer(slow);
  const running = channel.execute('sleep 100', { timeoutS: 0.5 });
  await vi.advanceTimersByTimeAsync(70_000);
  expect(await running).toMatchObject({ timedOut: true });
  expect(restart).toHaveBeenCalledOnce();
});

test('what is left is killed without a restart, where its sweep takes eight seconds', async () => {
  const { channel, restart, sweeps } = await slowContainer({ sweepMs: 8000 });
  await settled(channel.killAll());
  expect(sweeps).not.toEqual([]);
  expect(restart).not.toHaveBeenCalled();
});

test('what is left is killed by a restart, where no sweep ever ends', async () => {
  const { channel, restart } = await slowContainer({ sweepMs: 1_000_000 });
  await settled(channel.killAll());
  expect(restart).toHaveBeenCalledOnce();
});

test.each([
  ['answers after eight seconds', 8000, 0],
  ['never answers', 1_000_000, 1],
])('a supervisor that %s to a kill', async (_how, ms, restarts) => {
  const ended = Promise.withResolvers<CommandEnd>();
  const exit = { kind: 'exit', code: 137, oomKills: 0, held: false, forksRefused: 0 } as const;
  const transport: Transport = {
    name: 'supervisor',
    run: async () => ({
      ended: ended.promise,
      kill: () => void setTimeout(() => ended.resolve(exit), ms),
      output: () => ({ output: '', raw: new Uint8Array(), totalBytes: 0, omittedBytes: 0, replacedBytes: 0 }),
      transport: 'supervisor',
    }),
    killAll: async () => true,
    reset: () => undefined,
    lastWords: () => '',
    close: () => undefined,
  };
  const restart = vi.fn(async () => undefined);
  const control: ContainerControl = {
    death: async () => undefined,
    restart,
    watchDisk: () => () => undefined,
  };
  const channel = createChannel(transport, environmentConfigSchema.parse({ timeout: 60 }), control);
  const result = await settled(channel.execute('sleep 100', { timeoutS: 0.5 }));
  expect(result).toMatchObject({ timedOut: true, exitCode: -1 });
  expect(restart).toHaveBeenCalledTimes(restarts);
});

test('what an engine takes to begin a command is not the time of the command', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  const { channel } = await slowContainer({ startMs: 12_000, runMs: 900 });
  const result = await settled(channel.execute('sleep 0.9', { timeoutS: 1 }));
  expect(result).toMatchObject({ timedOut: false, exitCode: 0 });
  // A limit inside of the container may count from before it is known to have begun: what is told is never less than that.
  expect(result.durationMs).toBeGreaterThanOrEqual(12_900);
});

test('a command that is no longer wanted before it has begun is killed once it has, without a restart', async () => {
  const { channel, restart, sweeps } = await slowContainer({ startMs: 12_000 });
  const abort = new AbortController();
  const running = channel.execute('sleep 100', { signal: abort.signal });
  await vi.advanceTimersByTimeAsync(500);
  abort.abort(new Error('enough'));
  await expect(settled(running)).rejects.toThrow('enough');
  expect(restart).not.toHaveBeenCalled();
  expect(sweeps.at(-1)).toBe('77');
});

const unanswered = () =>
  Promise.reject(new EnvironmentError('died', 'the engine does not restart it', { sub: 'unanswered' }));

test('a container that cannot be started anew is no environment any more, and no result', async () => {
  const { channel } = await slowContainer({ noSweep: true, restart: vi.fn(unanswered) });
  const running = channel.execute('sleep 100', { timeoutS: 0.5 });
  const refused = expect(running).rejects.toMatchObject({ code: 'died', sub: 'unanswered' });
  await vi.advanceTimersByTimeAsync(60_000);
  await refused;
});

test('neither does a script of ours say that it only took too long', async () => {
  const { channel } = await slowContainer({ noSweep: true, restart: vi.fn(unanswered) });
  const running = channel.harness('sleep 100', { timeoutS: 0.5 });
  const refused = expect(running).rejects.toMatchObject({ code: 'died', sub: 'unanswered' });
  await vi.advanceTimersByTimeAsync(60_000);
  await refused;
});

test('whoever stopped the command hears that, whatever became of the container', async () => {
  const { channel } = await slowContainer({ noSweep: true, restart: vi.fn(unanswered) });
  const abort = new AbortController();
  const running = channel.execute('sleep 100', { timeoutS: 60, signal: abort.signal });
  const refused = expect(running).rejects.toThrow('stop now');
  await vi.advanceTimersByTimeAsync(500);
  abort.abort(new Error('stop now'));
  await vi.advanceTimersByTimeAsync(60_000);
  await refused;
});

describe('a container in which no command can be started', () => {
  const running: RunningCommand = {
    ended: Promise.resolve({ kind: 'exit', code: 0, oomKills: 0, held: false, forksRefused: 0 }),
    kill: () => undefined,
    output: () => createCollector(100).finish(),
    transport: 'supervisor',
  };
  const channelOf = (run: Transport['run'], restart: ContainerControl['restart'] = null) => {
    const transport = { name: 'supervisor', run, reset: vi.fn(), lastWords: () => '', close() {} } as const;
    return createChannel({ ...transport, killAll: async () => true }, environmentConfigSchema.parse({}), {
      ...{ death: async () => undefined, watchDisk: () => () => undefined, restart },
    });
  };
  const never = () => Promise.reject(new Error('no answer'));

  test('is started anew, and the result says what that has ended', async () => {
    const restart = vi.fn(async () => undefined);
    const run = vi
      .fn(async () => running)
      .mockImplementationOnce(never)
      .mockImplementationOnce(never);
    const channel = channelOf(run, restart);
    const said = 'no command could be started in the container; every process in the background was killed.';
    expect(await settled(channel.execute('true'))).toMatchObject({ exitCode: 0, exceptionInfo: said });
    expect(await settled(channel.execute('true'))).toMatchObject({ exitCode: 0, exceptionInfo: '' });
    expect(restart).toHaveBeenCalledOnce();
  });

  test.each([
    ['where that helps nothing', async () => undefined],
    ['where it cannot', undefined],
  ])('ends the attempt, %s', async (_where, restart) => {
    await expect(settled(channelOf(never, restart).execute('true'))).rejects.toThrow(
      'the container runs but no command can be started in it',
    );
  });
});

test('a command that the engine had not begun when it was killed is not begun again', async () => {
  const refused = Promise.withResolvers<ContainerProcess>();
  const begun: string[] = [];
  const start: StartProcess = async (argv) => {
    if (argv.includes('swebatch-exec')) {
      begun.push(argv.at(-1)!);
      return refused.promise;
    }
    const said = argv.includes('swebatch-probe') ? 'yes 0 1' : '1';
    return {
      listen: ({ stdout, gone }) => {
        stdout(Buffer.from(said));
        gone();
      },
      write: () => undefined,
      pause: () => undefined,
      resume: () => undefined,
      destroy: () => undefined,
      exitCode: async () => 0,
    };
  };
  const transport = await createPlainExecTransport(start, ['bash', '-c'], async () => undefined);
  const one = await transport.run({ command: 'sleep 100', cwd: '/', env: {}, maxOutputBytes: 100 });
  void one.kill();
  refused.reject(new Error('the container was started anew'));
  expect(await settled(one.ended)).toEqual({ kind: 'lost' });
  expect(begun).toEqual(['sleep 100']);
});
