// Which engine a trial goes to, of several: a free slot, memory, its image, and then the emptiest.
import { describe, expect, test } from 'vitest';
import { bestEngines, type EngineFacts } from '../../../../src/environment/places/places.ts';
import fc from '../../../support/property.ts';

const GIB = 2 ** 30;
const engine = (host: string, more: Partial<EngineFacts> = {}): EngineFacts => ({
  ...{ host, placed: 0, slots: 4, memoryBytes: 64 * GIB, image: 'absent' },
  ...more,
});

describe('a trial goes', () => {
  test.each<[string, EngineFacts[], string[]]>([
    [
      'where its image is',
      [engine('a'), engine('b', { image: 'here', placed: 3 }), engine('c', { image: 'coming' })],
      ['b'],
    ],
    ['else where it is on its way', [engine('a'), engine('b', { image: 'coming', placed: 2 })], ['b']],
    [
      'not where it would wait for a slot, while another has one',
      [engine('a', { image: 'here', placed: 4 }), engine('b', { placed: 3 })],
      ['b'],
    ],
    [
      'where all are full to the one whose slots come round first',
      [engine('a', { placed: 6 }), engine('b', { slots: 16, placed: 17 })],
      ['b'],
    ],
    [
      'and to the image among those that are as full',
      [engine('a', { placed: 5 }), engine('b', { placed: 5, image: 'here' })],
      ['b'],
    ],
    [
      'not where its memory is promised to others',
      [engine('a', { image: 'here', memoryBytes: 8 * GIB, placed: 2 }), engine('b')],
      ['b'],
    ],
    [
      'to the one that is short by less, where all are',
      [engine('a', { memoryBytes: 4 * GIB, placed: 3 }), engine('b', { memoryBytes: 8 * GIB, placed: 3 })],
      ['b'],
    ],
    [
      'to any of those that are alike: the pool takes the emptiest',
      [engine('a'), engine('b', { placed: 2 })],
      ['a', 'b'],
    ],
    [
      'evenly where neither slots nor memory say when it is full',
      [
        engine('a', { slots: 0, memoryBytes: undefined, image: 'here', placed: 1 }),
        engine('b', { slots: 0, memoryBytes: undefined }),
      ],
      ['b'],
    ],
    ['nowhere where there is none', [], []],
  ])('%s', (_what, engines, expected) => {
    expect(bestEngines(engines, 4 * GIB)).toEqual(expected);
  });

  test('by its image on engines without a number of slots, as long as there is memory', () => {
    const [a, b] = [engine('a', { slots: 0, image: 'here', placed: 15 }), engine('b', { slots: 0 })];
    expect(bestEngines([a, b], 4 * GIB)).toEqual(['a']);
    expect(bestEngines([{ ...a, placed: 16 }, b], 4 * GIB)).toEqual(['b']);
    // Without a limit of memory nothing says when one is full.
    expect(bestEngines([a, b], 0)).toEqual(['b']);
  });
});

const anyEngines = fc.uniqueArray(
  fc.record({
    host: fc.constantFrom('a', 'b', 'c', 'd', 'e'),
    placed: fc.nat(20),
    slots: fc.nat(8),
    memoryBytes: fc.option(fc.integer({ min: GIB, max: 64 * GIB }), { nil: undefined }),
    image: fc.constantFrom('here' as const, 'coming' as const, 'absent' as const),
  }),
  { minLength: 1, selector: ({ host }) => host },
);

test('whatever the engines: one is chosen, no free slot is passed for a full engine, no image for its absence, and order does not count', () => {
  fc.assert(
    fc.property(anyEngines, fc.constantFrom(0, GIB, 4 * GIB), (engines, memory) => {
      const best = bestEngines(engines, memory);
      expect(best.length).toBeGreaterThan(0);
      expect(new Set(bestEngines(engines.toReversed(), memory))).toEqual(new Set(best));
      const fits = (e: EngineFacts) =>
        e.slots > 0 &&
        e.placed < e.slots &&
        (e.placed + 1) * memory <= (e.memoryBytes ?? Number.POSITIVE_INFINITY);
      const chosen = engines.filter(({ host }) => best.includes(host));
      if (engines.some((e) => e.slots > 0 && e.placed < e.slots))
        expect(chosen.every((e) => e.slots === 0 || e.placed < e.slots)).toBe(true);
      if (engines.some((e) => fits(e) && e.image === 'here'))
        expect(chosen.every((e) => e.image === 'here')).toBe(true);
    }),
  );
});

test('trials placed one after the other use every slot before one waits', () => {
  fc.assert(
    fc.property(anyEngines, (given) => {
      const engines = given.map((e) => ({ ...e, placed: 0, slots: Math.max(1, e.slots) }));
      const slots = engines.reduce((sum, e) => sum + e.slots, 0);
      for (let i = 0; i < slots; i++) {
        const best = new Set(bestEngines(engines, 4 * GIB));
        const taken = engines.find(({ host }) => best.has(host))!;
        taken.placed += 1;
      }
      expect(engines.every((e) => e.placed === e.slots)).toBe(true);
    }),
  );
});
