/** Where the names of points stand on a chart, so that none covers another one, a point or a whisker. */

export interface Box {
  readonly left: number;
  readonly top: number;
  readonly right: number;
  readonly bottom: number;
}

/** In the pixels of the canvas, y downwards. */
interface Named {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

const GAP = 8;
/** So many lines above or below its point a name may go. */
const MOST_LINES = 24;

const shared = (a: Box, b: Box): number =>
  Math.max(0, Math.min(a.right, b.right) - Math.max(a.left, b.left)) *
  Math.max(0, Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top));

const outside = (box: Box, area: Box): number =>
  (box.right - box.left) * (box.bottom - box.top) - shared(box, area);

/** Right of its point, then left of it, then the same a line further away, up and down in turn. */
function* candidates({ x, y, width, height }: Named, gap: number): Generator<Box> {
  for (let step = 0; step <= 2 * MOST_LINES; step++) {
    const lines = Math.ceil(step / 2) * (step % 2 === 0 ? 1 : -1);
    const top = y - height / 2 + lines * height;
    for (const left of [x + gap, x - gap - width])
      yield { left, top, right: left + width, bottom: top + height };
  }
}

/**
 * A box for each name, in the given order. A name goes to the first place that is free and inside of the area; where there is none, to
 * the one that covers least. `taken` are boxes that no name may cover; `scale` is how many pixels of the canvas one of the page has.
 */
export function labelPlaces(
  names: readonly Named[],
  area: Box,
  taken: readonly Box[] = [],
  scale = 1,
): Box[] {
  const placed: Box[] = [];
  for (const name of names) {
    let best: { readonly box: Box; readonly cost: number } | undefined;
    for (const box of candidates(name, GAP * scale)) {
      const cost = [...taken, ...placed].reduce((sum, other) => sum + shared(box, other), outside(box, area));
      if (!best || cost < best.cost) best = { box, cost };
      if (cost === 0) break;
    }
    placed.push(best!.box);
  }
  return placed;
}
