// The free space of a remote engine, measured in a container of ours there; the real one is in realEngines.test.ts.
import type Docker from 'dockerode';
import { describe, expect, test } from 'vitest';
import { availableOf, measuredDisk } from '../../../../src/environment/places/diskRoom.ts';

const HEAD = 'Filesystem           1024-blocks    Used Available Capacity Mounted on';

test.each([
  [
    'Debian',
    `Filesystem     1024-blocks      Used Available Capacity Mounted on\r\noverlay           61611820 39482932  18966796      68% /\r\n`,
    18_966_796 * 1024,
  ],
  ['busybox', `${HEAD}\noverlay               1000000    900000    100000  90% /\n`, 100_000 * 1024],
  ['a full disk', `${HEAD}\noverlay 10 10 0 100% /`, 0],
  ['a device with spaces in its name', `${HEAD}\nC:\\Program Files 100 40 60 40% /`, 60 * 1024],
  ['no line', '', undefined],
  ['only the head', HEAD, undefined],
  ['another program', 'usage: df [-h]\nno such option', undefined],
  ['a number that is none', `${HEAD}\noverlay 10 10 1e99 100% /`, undefined],
  ['less than nothing', `${HEAD}\noverlay 10 10 -5 100% /`, undefined],
])('what df of %s says', (_what, text, bytes) => {
  expect(availableOf(text)).toBe(bytes);
});

/** Answers as an engine does whose images have `df` or not. */
function engine(images: Record<string, { available?: number; status?: number }>) {
  const made: string[] = [];
  const left = new Set<string>();
  const docker = {
    async createContainer({ name, Image }: Docker.ContainerCreateOptions) {
      made.push(Image!);
      left.add(name!);
      const image = images[Image!];
      if (!image) throw new Error(`no such image: ${Image}`);
      return {
        start: async () => undefined,
        wait: async () => ({ StatusCode: image.status ?? 0 }),
        logs: async () => Buffer.from(`${HEAD}\noverlay 100 50 ${image.available} 50% /`),
      };
    },
    getContainer: (name: string) => ({ remove: async () => void left.delete(name) }),
  } as unknown as Docker;
  return { docker, made, left, images };
}

describe('measured', () => {
  test('once for all who ask, again after 15 s, and no container is left', async () => {
    const { docker, made, left, images } = engine({ a: { available: 7 } });
    let now = 0;
    const free = measuredDisk({ docker, images: async () => ['a'], now: () => now });
    expect(await Promise.all([free(), free(), free()])).toEqual([7168, 7168, 7168]);
    images.a!.available = 1;
    now = 14_999;
    expect(await free()).toBe(7168);
    now = 15_000;
    expect(await free()).toBe(1024);
    expect(made).toEqual(['a', 'a']);
    expect(left.size).toBe(0);
  });

  test('with the next image where one is gone or has no df; not known before there is an image', async () => {
    const { docker, made, left } = engine({ none: { status: 127 }, a: { available: 7 } });
    let now = 0;
    let known: string[] = [];
    const free = measuredDisk({ docker, images: async () => known, now: () => now });
    expect(await free()).toBeUndefined();
    known = ['gone', 'none', 'a'];
    now = 20_000;
    expect(await free()).toBe(7168);
    expect(made).toEqual(['gone', 'none', 'a']);
    expect(left.size).toBe(0);
  });

  test('an engine that fails keeps what was last known for five minutes, and then nothing is known', async () => {
    const { docker, images } = engine({ a: { available: 7 } });
    let now = 0;
    const free = measuredDisk({ docker, images: async () => ['a'], now: () => now });
    expect(await free()).toBe(7168);
    delete images.a;
    now = 299_999;
    expect(await free()).toBe(7168);
    now = 600_000;
    expect(await free()).toBeUndefined();
  });
});
