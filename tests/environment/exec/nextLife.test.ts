// A container that is started anew has another keeper, which waits for its script: a question about a command of the life before is taken for it.
import { expect, test } from 'vitest';
import { environmentConfigSchema } from '../../../src/environment/environments.ts';
import { createChannel } from '../../../src/environment/exec/channel.ts';
import { createSupervisorTransport } from '../../../src/environment/exec/supervisor.ts';
import type { ContainerProcess, StartProcess } from '../../../src/environment/exec/transport.ts';

const REQUEST = { command: 'sleep 9', cwd: '/', env: {}, maxOutputBytes: 1000 };

/** Supervisors that answer, and that are killed with their container. */
function container() {
  const asked: string[] = [];
  const start: StartProcess = async () => {
    let told: Parameters<ContainerProcess['listen']>[0];
    let answered = false;
    return {
      listen(events) {
        told = events;
      },
      write(data) {
        const letter = String(data)[0]!;
        const isFirst = !answered;
        answered = true;
        if (isFirst) setImmediate(() => told.stderr(Buffer.from('\x1eready 1,17 none keeper\x1e')));
        asked.push(letter);
      },
      pause: () => undefined,
      resume: () => undefined,
      destroy: () => told.gone(),
      exitCode: async () => 137,
    };
  };
  return { asked, start };
}

test('it is not asked for one', async () => {
  const { asked, start } = container();
  const transport = await createSupervisorTransport(start, ['bash', '-c'], 1000);
  const running = await transport.run(REQUEST);
  const before = asked.length;
  transport.reset();
  expect(await running.ended).toEqual({ kind: 'lost' });
  expect(asked.slice(before)).toEqual([]);
});

test('nor by a supervisor that was on its way meanwhile', async () => {
  const { start } = container();
  const later = Promise.withResolvers<void>();
  let starts = 0;
  const slow: StartProcess = async (argv) => {
    starts += 1;
    if (starts === 2) await later.promise;
    return start(argv);
  };
  const transport = await createSupervisorTransport(slow, ['bash', '-c'], 1000);
  transport.reset();
  const running = transport.run(REQUEST);
  transport.reset();
  later.resolve();
  await expect(running).rejects.toThrow('the container was started anew meanwhile');
});

test('what is open ends before the container does', async () => {
  const order: string[] = [];
  const never = new Promise<never>(() => {});
  const channel = createChannel(
    {
      name: 'exec',
      run: async () =>
        ({ ended: never, kill: () => undefined, output: () => never, transport: 'exec' }) as never,
      killAll: async () => false,
      reset: () => void order.push('reset'),
      lastWords: () => '',
      close: () => undefined,
    },
    environmentConfigSchema.parse({}),
    {
      death: async () => undefined,
      restart: async () => void order.push('restart'),
      watchDisk: () => () => undefined,
    },
  );
  await channel.killAll();
  expect(order).toEqual(['reset', 'restart']);
});
