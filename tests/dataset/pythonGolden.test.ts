// Shuffle, slice and filter against results that CPython 3.11 gave (fixtures/pythonGolden.json) and reference golden values.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { pythonShuffle } from '../../src/base/python/random.ts';
import { parseFilter } from '../../src/base/python/regex.ts';
import { applySlice, parseSlice } from '../../src/base/python/values.ts';
import fc from '../support/property.ts';

interface Golden {
  shuffle: { seed: number; n: number; order: number[] }[];
  slice: { spec: string; n: number; got: number[] }[];
  filter: { pattern: string; matched: string[] }[];
  filterIds: string[];
}
const golden = JSON.parse(
  readFileSync(join(import.meta.dirname, 'fixtures', 'pythonGolden.json'), 'utf8'),
) as Golden;
const range = (n: number) => Array.from({ length: n }, (_, i) => i);

describe('shuffle', () => {
  test('random.seed(42) over range(10) and range(500) as mini-swe-agent orders them [M-49]', () => {
    expect(pythonShuffle(range(10), 42).join()).toBe('7,3,2,8,5,6,9,4,0,1');
    expect(pythonShuffle(range(500), 42).slice(0, 10).join()).toBe('164,383,45,156,53,72,315,209,74,333');
  });

  test.each(golden.shuffle)('seed $seed over $n items as CPython', ({ seed, n, order }) => {
    expect(pythonShuffle(range(n), seed).slice(0, order.length)).toEqual(order);
  });

  test('is a permutation and leaves its argument alone', () => {
    fc.assert(
      fc.property(fc.array(fc.integer()), fc.nat(), (items, seed) => {
        const before = [...items];
        const shuffled = pythonShuffle(items, seed);
        expect(items).toEqual(before);
        expect(shuffled.toSorted((a, b) => a - b)).toEqual(before.toSorted((a, b) => a - b));
      }),
    );
  });
});

describe('slice', () => {
  test.each(golden.slice)('"$spec" of $n items as CPython [M-49]', ({ spec, n, got }) => {
    const parsed = parseSlice(spec);
    expect(parsed.ok && applySlice(range(n), parsed.slice)).toEqual(got);
  });

  test.each(['a', '1:b', '1:2:3:4', '::0', ' ', '1.5', '1 2', '_1', '1__0'])(
    '"%s" is refused with a hint',
    (spec) => {
      const parsed = parseSlice(spec);
      expect(parsed).toMatchObject({ ok: false, message: expect.stringContaining(spec) });
      expect(parsed).toMatchObject({ message: expect.stringContaining('0:5') });
    },
  );
});

describe('filter', () => {
  test.each(golden.filter)('$pattern as re.match', ({ pattern, matched }) => {
    const filter = parseFilter(pattern);
    expect(filter.ok && golden.filterIds.filter(filter.matches)).toEqual(matched);
  });

  test.each(['(', '[a', '*a', '(?x)a b', 'a{2,1}'])('%s is refused by name', (pattern) => {
    expect(parseFilter(pattern)).toMatchObject({ ok: false, message: expect.stringContaining(pattern) });
  });
});
