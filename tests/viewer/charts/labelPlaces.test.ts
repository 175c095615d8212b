// Names on a chart never cover each other while there is room.
import { describe, expect, test } from 'vitest';
import { type Box, labelPlaces } from '../../../src/viewer/page/charts/labelPlaces.ts';
import fc from '../../support/property.ts';

const AREA: Box = { left: 0, top: 0, right: 800, bottom: 320 };
const size = { width: 120, height: 16 };
const meet = (a: Box, b: Box): boolean =>
  a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
const inside = (box: Box): boolean =>
  box.left >= AREA.left && box.right <= AREA.right && box.top >= AREA.top && box.bottom <= AREA.bottom;

describe('names of points', () => {
  test('a name stands right of its point, at its height', () => {
    expect(labelPlaces([{ x: 100, y: 100, ...size }], AREA)).toEqual([
      { left: 108, top: 92, right: 228, bottom: 108 },
    ]);
  });
  test('at the right edge it stands left of its point', () => {
    expect(labelPlaces([{ x: 790, y: 100, ...size }], AREA)).toMatchObject([{ left: 662, right: 782 }]);
  });
  test('two runs of the same cost and share have names that both can be read', () => {
    const [one, other] = labelPlaces(Array(2).fill({ x: 100, y: 100, ...size }), AREA);
    expect(meet(one!, other!)).toBe(false);
  });
  test('no name covers another one, a whisker or the edge, wherever three points lie', () => {
    const points = fc.array(
      fc.record({ x: fc.integer({ min: 0, max: 800 }), y: fc.integer({ min: 0, max: 320 }) }),
      {
        minLength: 1,
        maxLength: 3,
      },
    );
    fc.assert(
      fc.property(points, (given) => {
        const whiskers = given.map(({ x, y }) => ({
          left: x - 4,
          right: x + 4,
          top: y - 30,
          bottom: y + 30,
        }));
        const boxes = labelPlaces(
          given.map((point) => ({ ...point, ...size })),
          AREA,
          whiskers,
        );
        boxes.forEach((box, i) => {
          expect(inside(box)).toBe(true);
          expect([...whiskers, ...boxes.slice(0, i)].some((other) => meet(box, other))).toBe(false);
        });
      }),
    );
  });
  test('where there is no room at all every name has a place', () => {
    expect(labelPlaces(Array(200).fill({ x: 400, y: 160, ...size }), AREA)).toHaveLength(200);
  });
});
