/** What the colours of the map mean, with counts; each leads to its trials. */
import { useMemo } from 'react';
import type { MapCell } from '../../documents/mapGroups.ts';
import { href } from '../route.ts';
import { plain } from '../text/foreignText.ts';
import { integer, nano, words } from '../text/numbers.ts';

export type Colour = 'verdict' | 'exitClass';

export function MapLegend({
  cells,
  colour,
  run,
}: {
  cells: readonly MapCell[];
  colour: Colour;
  run: string;
}) {
  const counts = useMemo(
    () => [...Map.groupBy(cells, (cell) => cell[colour])].sort((a, b) => b[1].length - a[1].length),
    [cells, colour],
  );
  const costs = useMemo(() => {
    const known = cells.flatMap(({ costNano }) => costNano ?? []);
    return known.length === 0
      ? null
      : { low: known.reduce((a, b) => Math.min(a, b)), high: known.reduce((a, b) => Math.max(a, b)) };
  }, [cells]);
  const field = colour === 'exitClass' ? 'class' : 'verdict';
  return (
    <ul className="legend">
      {counts.map(([name, own]) => (
        <li key={name}>
          <a href={href(['run', run, 'instances'], { [field]: name })}>
            <i className={`cell s5 ${name.replace(/[^a-z_]/g, '')}`} aria-hidden="true" />
            {plain(words(name))}
          </a>{' '}
          {integer(own.length)}
        </li>
      ))}
      {costs && costs.high > costs.low ? (
        <li className="quiet">
          size: cost, {nano(costs.low)} to {nano(costs.high)}
        </li>
      ) : null}
    </ul>
  );
}
