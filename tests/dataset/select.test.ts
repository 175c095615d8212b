// Selection: the order of its steps, what is refused, and what a sample promises.

import { describe, expect, test } from 'vitest';
import { type SelectOptions, selectInstances } from '../../src/dataset/select.ts';
import fc from '../support/property.ts';
import { instanceOf } from './rows.ts';

const ids = [
  'b__b-1',
  'a__a-1',
  'a__a-2',
  'c__c-1',
  'a__a-3',
  'b__b-2',
  'c__c-2',
  'a__a-4',
  'b__b-3',
  'c__c-3',
];
const rows = ids.map((id) => ({ instance: instanceOf(id) }));
const picked = (options: SelectOptions, from = rows) => {
  const selection = selectInstances(from, options);
  if (selection.kind !== 'selected') throw new Error(JSON.stringify(selection));
  return selection.rows.map(({ row }) => row.instance.instance_id);
};

describe('shuffle, filter, slice', () => {
  test('without options the dataset order stays [M-49]', () => {
    expect(picked({})).toEqual(ids);
  });

  test('shuffle sorts by id first, so the order of the file does not matter [M-49]', () => {
    const order = [7, 3, 2, 8, 5, 6, 9, 4, 0, 1].map((i) => ids.toSorted()[i]);
    expect(picked({ shuffle: true })).toEqual(order);
    expect(picked({ shuffle: true }, rows.toReversed())).toEqual(order);
  });

  test('the filter comes before the slice, the shuffle before both [M-49]', () => {
    expect(picked({ filter: 'a__', slice: '1:3' })).toEqual(['a__a-2', 'a__a-3']);
    const shuffledA = picked({ shuffle: true }).filter((id) => id.startsWith('a__'));
    expect(picked({ shuffle: true, filter: 'a__', slice: ':2' })).toEqual(shuffledA.slice(0, 2));
    expect(picked({ filter: 'b__', slice: '::-1', limit: 2 })).toEqual(['b__b-3', 'b__b-2']);
  });

  test('ids keep dataset order and unknown ones are named', () => {
    expect(picked({ ids: ['c__c-1', 'b__b-1', 'c__c-1'] })).toEqual(['b__b-1', 'c__c-1']);
    expect(selectInstances(rows, { ids: ['a__a-1', 'a__a-99', 'x'] })).toEqual({
      kind: 'invalid',
      problems: [expect.stringContaining('no instance named a__a-99, x')],
    });
  });

  test('all mistakes of the options are told in one go', () => {
    const selection = selectInstances(rows, { filter: '(', slice: 'x', limit: -1, stratify: ['nope'] });
    expect(selection).toMatchObject({ kind: 'invalid' });
    expect(selection.kind === 'invalid' && selection.problems).toHaveLength(5);
  });

  test.each([
    [{ limit: 0 }, '--limit 0'],
    [{ filter: 'zzz' }, '--filter "zzz"'],
    [{ filter: 'a__', slice: '10:' }, '--slice "10:"'],
    [{ ids: [] }, 'the list of ids'],
    [{ sample: 0 }, '--sample 0'],
  ])('%j selects nothing and says which step it was [M-49]', (options, step) => {
    expect(selectInstances(rows, options)).toEqual({
      kind: 'empty',
      message: expect.stringMatching(/^0 instances selected: /),
    });
    expect(selectInstances(rows, options)).toMatchObject({ message: expect.stringContaining(step) });
  });
});

describe('sample', () => {
  const populationArb = fc
    .uniqueArray(
      fc.record({
        n: fc.nat(500),
        repo: fc.constantFrom('a/a', 'b/b', 'c/c'),
        difficulty: fc.constantFrom('x', 'y'),
      }),
      { selector: (r) => r.n, minLength: 1, maxLength: 60 },
    )
    .map((list) => list.map(({ n, ...more }) => ({ instance: instanceOf(`i__i-${n}`, more) })));
  const draw = (population: typeof rows, sample: number, seed: number, stratify: string[]) => {
    const selection = selectInstances(population, { sample, seed, stratify });
    if (selection.kind !== 'selected') throw new Error(JSON.stringify(selection));
    return selection;
  };
  const idsOf = (s: ReturnType<typeof draw>) => s.rows.map(({ row }) => row.instance.instance_id);

  test('a larger N holds every smaller one, in every stratification', () => {
    fc.assert(
      fc.property(
        populationArb,
        fc.subarray(['repo', 'difficulty']),
        fc.nat(1000),
        fc.integer({ min: 1, max: 60 }),
        fc.integer({ min: 0, max: 30 }),
        (population, stratify, seed, n, more) => {
          const large = new Set(idsOf(draw(population, n + more, seed, stratify)));
          const small = idsOf(draw(population, n, seed, stratify));
          expect(small).toHaveLength(Math.min(n, population.length));
          for (const id of small) expect(large).toContain(id);
        },
      ),
    );
  });

  test('weights add up to the population once every stratum is covered, and each stratum to its size', () => {
    fc.assert(
      fc.property(populationArb, fc.integer({ min: 1, max: 60 }), fc.nat(1000), (population, n, seed) => {
        const drawn = draw(population, n, seed, ['repo', 'difficulty']);
        const total = drawn.rows.reduce((sum, r) => sum + r.weight, 0);
        const covered = drawn.strata.filter((s) => s.sampled > 0).reduce((sum, s) => sum + s.size, 0);
        expect(total).toBeCloseTo(covered, 6);
        const allCovered = drawn.strata.every((s) => s.sampled > 0);
        expect(allCovered).toBe(n >= drawn.strata.length);
        expect(drawn.warnings).toHaveLength(allCovered ? 0 : 1);
      }),
    );
  });

  test('strata get their proportional share', () => {
    const population = [
      ...Array.from({ length: 80 }, (_, i) => ({ instance: instanceOf(`big__b-${i}`, { repo: 'big/b' }) })),
      ...Array.from({ length: 20 }, (_, i) => ({
        instance: instanceOf(`small__s-${i}`, { repo: 'small/s' }),
      })),
    ];
    const { strata } = draw(population, 50, 1, ['repo']);
    expect(strata).toEqual([
      { key: ['big/b'], size: 80, sampled: 40 },
      { key: ['small/s'], size: 20, sampled: 10 },
    ]);
  });

  test('does not depend on the order of the rows, nor on instances that are added elsewhere', () => {
    const shuffled = rows.toReversed();
    expect(new Set(picked({ sample: 4 }, shuffled))).toEqual(new Set(picked({ sample: 4 })));
    const grown = [...rows, { instance: instanceOf('z__z-1') }];
    const kept = picked({ sample: 5 }, grown).filter((id) => id !== 'z__z-1');
    for (const id of kept) expect(picked({ sample: 5 })).toContain(id);
  });

  test('another seed draws another sample; every instance is drawn about equally often', () => {
    const counts = new Map<string, number>();
    for (let seed = 0; seed < 1000; seed++)
      for (const id of picked({ sample: 3, seed })) counts.set(id, (counts.get(id) ?? 0) + 1);
    // Binomial(1000, 0.3): standard deviation 14.5, so five of them either way.
    for (const id of ids) expect(Math.abs(counts.get(id)! - 300)).toBeLessThan(73);
  });

  test('is taken from what shuffle, filter and slice left, and keeps their order', () => {
    const population = picked({ shuffle: true, filter: 'a__|b__' });
    const sampled = picked({ shuffle: true, filter: 'a__|b__', sample: 4 });
    expect(sampled).toEqual(population.filter((id) => sampled.includes(id)));
  });
});
