// Shards of a selection: disjoint, complete, as large as each other, and the same on every machine.
import { describe, expect, test } from 'vitest';
import type { Instance } from '../../src/dataset/instance.ts';
import { parseShard, shardOfRows } from '../../src/dataset/shard.ts';

const rowsOf = (count: number) =>
  Array.from({ length: count }, (_, i) => ({
    instance: { instance_id: `a__a-${i}` } as Instance,
    rowHash: `h${i}`,
    line: i + 1,
  }));

const drawn = (count: number, of: number) =>
  Array.from({ length: of }, (_, i) => shardOfRows(rowsOf(count), { number: i + 1, of }));

describe.each([0, 1, 2, 3, 4, 5, 7, 12, 100, 499, 500])('%i rows', (count) => {
  test.each([1, 2, 3, 4, 5, 8, 13, 500])('in %i shards', (of) => {
    const shards = drawn(count, of);
    const ids = shards.flatMap(({ rows }) => rows.map(({ instance }) => instance.instance_id));
    expect(ids.toSorted()).toEqual(
      rowsOf(count)
        .map(({ instance }) => instance.instance_id)
        .sort(),
    );
    const sizes = shards.map(({ rows }) => rows.length);
    expect(Math.max(...sizes) - Math.min(...sizes)).toBeLessThanOrEqual(1);
    for (const { rows, shard } of shards) {
      const places = rows.map(({ instance }) => shard.places.get(instance.instance_id)!);
      expect(places).toEqual(places.toSorted((a, b) => a - b));
      expect(rows.map(({ rowHash }) => rowHash)).toEqual(places.map((place) => `h${place}`));
      expect(shard).toMatchObject({ of, instances: count, rows_sha256: shards[0]!.shard.rows_sha256 });
    }
  });
});

test('only the rows decide', () => {
  expect(drawn(9, 4)).toEqual(drawn(9, 4));
  const hashes = [8, 9, 10].map((count) => drawn(count, 2)[0]!.shard.rows_sha256);
  expect(new Set(hashes).size).toBe(3);
});

test.each(['1/1', '2/5', '5/5', '99999/99999'])('%s is a shard', (text) => {
  const [number, of] = text.split('/').map(Number);
  expect(parseShard(text)).toEqual({ number, of });
});

test.each([
  '',
  '0/5',
  '6/5',
  '2',
  '2/0',
  '/5',
  '2/',
  '-1/5',
  '1.5/5',
  '02/5',
  ' 2/5',
  '2/5\n',
  '1/100000',
  '2of5',
])('%j is none', (text) => expect(parseShard(text)).toBeNull());
