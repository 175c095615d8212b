/** A share with its Wilson interval, drawn on a line from 0 to 100 %. The numbers stand beside it. */
import type { CSSProperties } from 'react';
import { wilson } from '../../../report/statistics/proportions.ts';

export function Interval({ x, n, big = false }: { x: number; n: number; big?: boolean }) {
  if (n === 0) return <span className="interval none" aria-hidden="true" />;
  const { low, high } = wilson(x, n);
  const places = { '--low': low, '--high': high, '--at': x / n } as CSSProperties;
  return (
    <span className={big ? 'interval big' : 'interval'} style={places} aria-hidden="true">
      <span className="range" />
      <span className="point" />
    </span>
  );
}
