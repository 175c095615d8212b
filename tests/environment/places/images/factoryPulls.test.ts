// The pulls of a Docker factory that is given no images: the jobs of all runs, over an engine that a test answers for.
import { Readable } from 'node:stream';
import type Docker from 'dockerode';
import { describe, expect, test } from 'vitest';
import { createFactoryPulls } from '../../../../src/environment/places/imageService.ts';

const NAME = 'registry.example/team/image:1';
const ASKS = { signal: undefined, waits: () => undefined };

function fakeDocker(answer: (name: string) => string | undefined = () => undefined) {
  const here = new Set<string>();
  const pulls: string[] = [];
  const docker = {
    ping: async () => 'OK',
    info: async () => ({ ID: 'x', Name: 'x', OSType: 'linux', Architecture: 'x86_64', DockerRootDir: '/d' }),
    getImage: (name: string) => ({
      inspect: async () => {
        if (!here.has(name)) throw Object.assign(new Error('no such image'), { statusCode: 404 });
        return {
          Id: `sha256:${name}`,
          Os: 'linux',
          Architecture: 'amd64',
          Size: 1,
          RepoDigests: [`${name}@d`],
        };
      },
    }),
    createImage: async (_: unknown, { fromImage, tag }: { fromImage: string; tag: string }) => {
      const name = `${fromImage}:${tag}`;
      pulls.push(name);
      const error = answer(name);
      if (error === undefined) here.add(name);
      return Readable.from([`${JSON.stringify(error === undefined ? { status: 'Done' } : { error })}\n`]);
    },
  } as unknown as Docker;
  return { docker, here, pulls };
}

const pullsOf = (docker: Docker, pull: 'never' | 'missing' | 'always') =>
  createFactoryPulls(docker, { pull, stallMs: 0 });

describe('pulls of a factory', () => {
  test('callers that want one image share a pull, and what is here is not pulled', async () => {
    const { docker, pulls } = fakeDocker();
    const { ensure, close } = pullsOf(docker, 'missing');
    const [first, second] = await Promise.all([ensure(NAME, ASKS), ensure(NAME, ASKS)]);
    expect(first).toEqual(second);
    expect(first).toMatchObject({ digest: `${NAME}@d`, architecture: 'amd64', pulled: true });
    await ensure(NAME, ASKS);
    expect(pulls).toEqual([NAME]);
    await close();
  });

  test('always pulls for each start', async () => {
    const { docker, pulls } = fakeDocker();
    const { ensure, close } = pullsOf(docker, 'always');
    await ensure(NAME, ASKS);
    await ensure(NAME, ASKS);
    expect(pulls).toEqual([NAME, NAME]);
    await close();
  });

  test('what was missing is looked for again: it may have been built', async () => {
    const { docker, here, pulls } = fakeDocker();
    const { ensure, close } = pullsOf(docker, 'never');
    await expect(ensure(NAME, ASKS)).rejects.toMatchObject({ code: 'image_missing', sub: 'not_local' });
    here.add(NAME);
    expect(await ensure(NAME, ASKS)).toMatchObject({ pulled: false });
    expect(pulls).toEqual([]);
    await close();
  });

  test.each([
    ['toomanyrequests: You have reached your pull rate limit', 'rate_limited'],
    ['unexpected EOF', 'interrupted'],
  ])('a pull that fails is told at once: %s', async (words, sub) => {
    const { docker, pulls } = fakeDocker(() => words);
    const { ensure, close } = pullsOf(docker, 'missing');
    await expect(ensure(NAME, ASKS)).rejects.toMatchObject({ code: 'image_pull_failed', sub });
    expect(pulls).toEqual([NAME]);
    await close();
  });

  test('who stops waiting gets the reason of the stop', async () => {
    const { docker } = fakeDocker();
    const { ensure, close } = pullsOf(docker, 'missing');
    await expect(ensure(NAME, { ...ASKS, signal: AbortSignal.abort(new Error('stop')) })).rejects.toThrow(
      'stop',
    );
    await close();
  });
});
