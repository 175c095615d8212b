// The relay as a program on this machine: what it says, and how it ends when its other side is gone or breaks the rules.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { buildPrograms } from '../../../scripts/buildPrograms.ts';
import {
  createRelayReader,
  creditFrame,
  DOWN_WINDOW,
  FRAME,
  type Frame,
  frameOf,
  MAX_PAYLOAD,
  UP_WINDOW,
} from '../../../src/environment/relay/carrier.ts';
import { freePort } from './freePort.ts';

const said = buildPrograms();
const PROGRAM = join(import.meta.dirname, `../../../dist/environment/relay/relay.${process.arch}`);

const running: ChildProcess[] = [];
afterEach(() => {
  for (const child of running.splice(0)) child.kill('SIGKILL');
});

async function relay() {
  const port = await freePort();
  const child = spawn(PROGRAM, [String(port)], { stdio: 'pipe' });
  running.push(child);
  child.stdin.on('error', () => undefined);
  const frames: Frame[] = [];
  child.stdout.on(
    'data',
    createRelayReader((frame) => frames.push({ ...frame, payload: Buffer.from(frame.payload) })),
  );
  const of = (type: number) => frames.filter((frame) => frame.type === type);
  const ended = once(child, 'exit').then(([code]) => code as number);
  await expect.poll(() => of(FRAME.ready)).toHaveLength(1);
  const open = async (): Promise<Socket> => {
    const before = of(FRAME.open).length;
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    socket.on('error', () => undefined);
    await expect.poll(() => of(FRAME.open)).toHaveLength(before + 1);
    return socket;
  };
  return {
    send: (bytes: Buffer) => void child.stdin.write(bytes),
    close: () => child.stdin.end(),
    of,
    ended,
    open,
  };
}

describe.skipIf(!existsSync(PROGRAM))(`the relay (${said})`, () => {
  test('it ends with its input', async () => {
    const one = await relay();
    await one.open();
    one.close();
    expect(await one.ended).toBe(0);
  });

  test.each([
    ['bytes that are no frames', Buffer.from('GET / HTTP/1.1\r\nhost: x\r\n\r\n')],
    ['a type that only the relay sends', frameOf(1, FRAME.open)],
    [
      'more than the program can have taken',
      Buffer.concat(Array(3).fill(frameOf(1, FRAME.data, Buffer.alloc(MAX_PAYLOAD)))),
    ],
    ['more credit than there are bytes', creditFrame(1, 1)],
    ['data after the end', Buffer.concat([frameOf(1, FRAME.end), frameOf(1, FRAME.data, Buffer.from('x'))])],
  ])('it ends at once on %s', async (what, bytes) => {
    const one = await relay();
    const socket = await one.open();
    if (what.startsWith('more than')) {
      // The program does not read, so its own buffers are filled first.
      socket.pause();
      const full = Buffer.concat(Array(1000).fill(bytes));
      one.send(full);
    } else one.send(bytes);
    expect(await one.ended).toBe(2);
  });

  test('frames of a connection that is gone are no fault', async () => {
    const one = await relay();
    const socket = await one.open();
    socket.resetAndDestroy();
    await expect.poll(() => one.of(FRAME.reset)).toHaveLength(1);
    one.send(
      Buffer.concat([frameOf(1, FRAME.data, Buffer.from('late')), creditFrame(1, 9), frameOf(1, FRAME.end)]),
    );
    const next = await one.open();
    next.end('still here');
    await expect.poll(() => one.of(FRAME.data).at(-1)?.payload.toString()).toBe('still here');
  });

  test('a connection sends no more than its window until it is given credit', async () => {
    const one = await relay();
    const socket = await one.open();
    socket.write(Buffer.alloc(UP_WINDOW + DOWN_WINDOW));
    const sent = () => one.of(FRAME.data).reduce((sum, { payload }) => sum + payload.length, 0);
    await expect.poll(sent).toBe(UP_WINDOW);
    one.send(creditFrame(1, 1000));
    await expect.poll(sent).toBe(UP_WINDOW + 1000);
  });
});
