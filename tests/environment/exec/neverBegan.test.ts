// A command whose connection was cut: whether it had begun is the keeper's to say, once nobody can pass it on any more.
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createSupervisorTransport } from '../../../src/environment/exec/supervisor.ts';
import type { ContainerProcess, StartProcess } from '../../../src/environment/exec/transport.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
afterEach(() => void vi.useRealTimers());

const REQUEST = { command: 'x', cwd: '/', env: {}, maxOutputBytes: 1000 };

/** The first supervisor is cut off at its command; `said`: what the keeper says of that to the second, and nothing where it is absent. */
async function cutOff(exitCode: number | undefined, said?: string) {
  const asked: string[] = [];
  const start: StartProcess = async () => {
    let told: Parameters<ContainerProcess['listen']>[0];
    const tell = (text: string) => void setImmediate(() => told.stderr(Buffer.from(`\x1e${text}\x1e`)));
    return {
      listen(events) {
        told = events;
        tell('ready 1,17 none keeper');
      },
      write(data) {
        const [, letter, payload] = /^(\w)\d{9}([\s\S]*)$/.exec(String(data))!;
        if (letter === 'L') return;
        asked.push(letter!);
        const id = payload!.split(' ')[1];
        if (letter === 'R') setImmediate(told.gone);
        if (letter === 'K') tell(`${id} 0`);
        if (letter === 'Q' && said !== undefined) tell(`${id} ${said}`);
      },
      pause: () => undefined,
      resume: () => undefined,
      destroy: () => undefined,
      exitCode: async () => exitCode,
    };
  };
  const transport = await createSupervisorTransport(start, ['bash', '-c'], 1000);
  const running = await transport.run(REQUEST);
  expect(await running.ended).toEqual({ kind: 'lost' });
  return { running, asked, transport };
}

test('it never began where the keeper has not heard of it', async () => {
  const { running, asked } = await cutOff(0, 'none');
  expect(await running.neverBegan!()).toBe(true);
  expect(asked).toEqual(['R', 'Q', 'K']);
});

test('it began where the keeper knows its end', async () => {
  const { running } = await cutOff(0, '137 0 0 0');
  expect(await running.neverBegan!()).toBe(false);
});

test('a keeper that says nothing has begun something', async () => {
  const { running, asked } = await cutOff(0);
  const answer = running.neverBegan!();
  while (!asked.includes('K')) await new Promise(setImmediate);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(await answer).toBe(false);
});

test('nobody is asked while its supervisor may pass it on still', async () => {
  const { running, asked } = await cutOff(undefined, 'none');
  expect(await running.neverBegan!()).toBe(false);
  expect(asked).toEqual(['R']);
});

test('nor in the next life of the container, whose keeper knows nothing', async () => {
  const { running, asked, transport } = await cutOff(0, 'none');
  transport.reset();
  expect(await running.neverBegan!()).toBe(false);
  expect(asked).toEqual(['R']);
});
