// A Parquet file with one wrong byte is a problem with a reason; it holds up nobody.
import { parquetWriteBuffer } from 'hyparquet-writer';
import { expect, test } from 'vitest';
import { readParquet } from '../../src/dataset/read/readRows.ts';

const rows = [1, 2, 3].map((n) => ({ instance_id: `a__a-${n}`, repo: 'a/a', patch: 'x'.repeat(50 * n) }));
const good = new Uint8Array(
  parquetWriteBuffer({
    columnData: (['instance_id', 'repo', 'patch'] as const).map((column) => ({
      name: column,
      data: rows.map((row) => row[column]),
      type: 'STRING',
    })),
  }),
);

test('a good file is read', async () => {
  expect(await readParquet(good)).toEqual(rows.map((row, i) => ({ line: i + 1, row })));
});

test('a byte that makes the reader go round for ever: it is ended, and others run meanwhile', async () => {
  const bytes = Uint8Array.from(good);
  bytes[120] = 162;
  let turns = 0;
  const timer = setInterval(() => turns++, 10);
  const read = await readParquet(bytes, 1000);
  clearInterval(timer);
  expect(read).toEqual([
    {
      line: 0,
      message: expect.stringMatching(
        /^not a readable Parquet file \(.+\); was the download complete\?$/,
      ) as string,
    },
  ]);
  expect(turns).toBeGreaterThan(5);
});

test('a file that is cut, or none at all', async () => {
  for (const bytes of [good.subarray(0, 200), new Uint8Array(), new Uint8Array(8)])
    expect(await readParquet(bytes)).toMatchObject([{ line: 0, message: expect.any(String) as string }]);
});
