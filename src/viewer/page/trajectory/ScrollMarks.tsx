/** Beside the scroll bar: where commands failed and where the search found something. */
import { useMemo } from 'react';
import type { OutlineRow } from '../../documents/documents.ts';
import { isFailure } from './isFailure.ts';

/** So many places are told apart on a screen. */
const PLACES = 240;

interface Mark {
  readonly place: number;
  readonly index: number;
  readonly isHit: boolean;
}

export function ScrollMarks({
  outline,
  hits,
  startOf,
  height,
  show,
}: {
  outline: readonly OutlineRow[];
  hits: ReadonlyMap<number, number>;
  startOf: (index: number) => number;
  height: number;
  show: (index: number) => void;
}) {
  const marks = useMemo(() => {
    const found = new Map<number, Mark>();
    for (const [index, row] of outline.entries()) {
      const isHit = hits.has(row.seq);
      if (!isHit && !isFailure(row)) continue;
      const place = Math.floor((startOf(index) / Math.max(1, height)) * PLACES);
      if (isHit || !found.has(place)) found.set(place, { place, index, isHit });
    }
    return [...found.values()];
  }, [outline, hits, startOf, height]);
  return (
    <div className="marks noprint" aria-hidden="true">
      {marks.map(({ place, index, isHit }) => (
        <button
          key={place}
          type="button"
          tabIndex={-1}
          className={isHit ? 'mark hit' : 'mark'}
          style={{ top: `${(place / PLACES) * 100}%` }}
          onClick={() => show(index)}
        />
      ))}
    </div>
  );
}
