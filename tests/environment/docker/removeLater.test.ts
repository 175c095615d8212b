// An engine that refuses to remove a container: the person hears which one, and it is tried again.
import type Docker from 'dockerode';
import { expect, test } from 'vitest';
import { removeLater } from '../../../src/environment/docker/container.ts';

const refusal = Object.assign(new Error('(HTTP code 409) conflict - device is busy '), { statusCode: 409 });

async function removed(refusals: number, closing = new AbortController().signal) {
  let asked = 0;
  const said: string[] = [];
  const remove = async () => {
    asked += 1;
    if (asked <= refusals) throw refusal;
  };
  const container = { id: '0123456789abcdef', remove } as unknown as Docker.Container;
  const gone = await removeLater(container, closing, (text) => said.push(text), [1, 1, 1]);
  return { gone, asked, said };
}

test('it is said with its id, tried again, and said when it is gone', async () => {
  expect(await removed(1)).toEqual({
    gone: true,
    asked: 2,
    said: [
      'container 0123456789ab could not be removed; it is tried again',
      'container 0123456789ab is removed now',
    ],
  });
});

test('one that stays is named with what removes it', async () => {
  const { gone, asked, said } = await removed(100);
  expect([gone, asked]).toEqual([false, 3]);
  expect(said.at(-1)).toContain('docker rm -f 0123456789ab');
});

test('at the end of the run it is tried once more, without a wait', async () => {
  expect(await removed(100, AbortSignal.abort())).toMatchObject({ gone: false, asked: 1 });
  expect(await removed(0, AbortSignal.abort())).toMatchObject({ gone: true, asked: 1 });
});
