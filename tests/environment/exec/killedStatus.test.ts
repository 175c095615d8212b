// What a command's status is when we killed it, or when nobody knows how it ended: never 0, whatever is reported afterwards.
import { describe, expect, test } from 'vitest';
import { environmentConfigSchema } from '../../../src/environment/environments.ts';
import { createChannel } from '../../../src/environment/exec/channel.ts';
import type { CommandEnd, ContainerControl, Transport } from '../../../src/environment/exec/transport.ts';

const exited = (code: number): CommandEnd => ({
  kind: 'exit',
  code,
  oomKills: 0,
  held: false,
  forksRefused: 0,
});

/** One command that ends in this way: by itself, or once it is killed. */
function channelOf(end: CommandEnd, ends: 'by itself' | 'when killed') {
  const told = Promise.withResolvers<CommandEnd>();
  if (ends === 'by itself') told.resolve(end);
  const transport: Transport = {
    name: 'supervisor',
    run: async () => ({
      ended: told.promise,
      kill: () => {
        told.resolve(end);
        return undefined;
      },
      output: () => ({
        output: 'said',
        raw: new Uint8Array(),
        totalBytes: 4,
        omittedBytes: 0,
        replacedBytes: 0,
      }),
      transport: 'supervisor',
    }),
    killAll: async () => true,
    reset: () => undefined,
    lastWords: () => '',
    close: () => undefined,
  };
  const control: ContainerControl = {
    death: async () => undefined,
    restart: async () => undefined,
    watchDisk: () => () => undefined,
  };
  return createChannel(transport, environmentConfigSchema.parse({ timeout: 60 }), control);
}

describe('the status of a command', () => {
  test.each([
    ['a status of 0 that came after our kill', exited(0)],
    ['a status of 137', exited(137)],
    ['a lost stream', { kind: 'lost' } as const],
  ])('that ran into its time limit is unknown: %s', async (_what, end) => {
    const result = await channelOf(end, 'when killed').execute('x', { timeoutS: 0.01 });
    expect(result).toMatchObject({ exitCode: -1, timedOut: true, output: 'said' });
  });

  test('that was killed for its caller is no result at all', async () => {
    const abort = new AbortController();
    const running = channelOf(exited(0), 'when killed').execute('x', { signal: abort.signal });
    abort.abort(new Error('enough'));
    await expect(running).rejects.toThrow('enough');
  });

  test('whose stream was lost is unknown, and says so', async () => {
    expect(await channelOf({ kind: 'lost' }, 'by itself').execute('x')).toMatchObject({
      exitCode: -1,
      timedOut: false,
      exceptionInfo: expect.stringContaining('the result is not known'),
    });
  });
});
