// A sparse file that an agent left in an image without git: it takes nothing of the disk there, and an engine sends every zero of it.
import tar from 'tar-stream';
import { expect, test } from 'vitest';
import { diffTrees, type ReadFolder } from '../../../src/environment/patch/treeSnapshot.ts';

test('a new file that is too long ends the capture at its name, and one of the image that is as long does not', async () => {
  const LONG = 50 * 2 ** 30;
  const sent: string[] = [];
  const tree = (files: Readonly<Record<string, number>>) => {
    const pack = tar.pack();
    // Of the long ones no byte ever comes.
    for (const [name, size] of Object.entries(files))
      if (size < LONG) pack.entry({ name: `tree/${name}` }, Buffer.alloc(size));
      else pack.entry({ name: `tree/${name}`, size }).on('error', () => undefined);
    pack.finalize();
    return pack;
  };
  const read =
    (trees: Readonly<Record<string, Readonly<Record<string, number>>>>): ReadFolder =>
    async (folder, reader) => {
      sent.push(folder);
      const archive = tar.extract();
      // It is let go of before its end.
      tree(trees[folder]!)
        .on('error', () => undefined)
        .pipe(archive);
      return reader(archive);
    };
  const limits = { timeoutS: 20, maxBytes: 1000 };
  const snapshot = { kind: 'copy', folder: '/start' } as const;
  const trees = { '/start/tree': { kept: 3 }, '/work': { kept: 3, sparse: LONG } };
  const found = await diffTrees(read(trees), snapshot, '/work', limits);
  expect([found.state, found.warnings]).toEqual([
    'oversized',
    [expect.stringContaining(`sparse (${LONG} bytes) is more than 50 times environment.max_patch_bytes`)],
  ]);
  const large = { kept: 3, data: 60_000 };
  const same = await diffTrees(read({ '/start/tree': large, '/work': large }), snapshot, '/work', limits);
  expect(same.state).toBe('empty');
  expect(sent).toEqual(['/start/tree', '/work', '/start/tree', '/work']);
});
