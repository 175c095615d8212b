// A container is committed standing still, and on an engine that cannot pause it as it is.
import type Docker from 'dockerode';
import { expect, test } from 'vitest';
import { commitContainer } from '../../../src/environment/docker/seal.ts';

function fakeContainer(refusal: string) {
  const asked: unknown[] = [];
  const container = {
    id: 'c',
    async commit({ _query }: { _query: { pause: boolean } }) {
      asked.push(_query);
      if (_query.pause && refusal !== '') throw Object.assign(new Error(refusal), { statusCode: 500 });
      return { Id: 'image' };
    },
  } as unknown as Docker.Container;
  return { container, asked };
}
const request = { _query: { repo: 'r', tag: 't' }, _body: {} };

test('it is paused meanwhile', async () => {
  const { container, asked } = fakeContainer('');
  expect(await commitContainer(container, request)).toEqual({ Id: 'image' });
  expect(asked).toEqual([{ container: 'c', repo: 'r', tag: 't', pause: true }]);
});

test('rootless Podman on cgroup v1 refuses to pause, and is asked again without', async () => {
  const { container, asked } = fakeContainer(
    'CommitFailure: pausing container "c": can not pause containers on rootless containers without cgroup v2',
  );
  expect(await commitContainer(container, request)).toEqual({ Id: 'image' });
  expect(asked).toMatchObject([{ pause: true }, { pause: false }]);
});

test('any other refusal stays one', async () => {
  const { container, asked } = fakeContainer('no space left on device');
  await expect(commitContainer(container, request)).rejects.toThrow('no space left');
  expect(asked).toHaveLength(1);
});
