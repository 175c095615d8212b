/** What has no verdict, and why; each line leads to its trials. */
import { useMemo } from 'react';
import { type MapCell, missingParts } from '../../documents/mapGroups.ts';
import { Badge } from '../parts.tsx';
import { href } from '../route.ts';
import { plain } from '../text/foreignText.ts';
import { integer, words } from '../text/numbers.ts';

/** What helps, by why a trial is missing from the score. */
const NEXT = new Map([
  ['not_graded', 'swebatch evaluate grades it'],
  ['infra', 'swebatch run --resume tries it again'],
  ['grading_infra', 'swebatch evaluate grades it again'],
  ['not_run', 'swebatch run --resume runs it'],
]);

export function MissingList({ cells, run }: { cells: readonly MapCell[]; run: string }) {
  const parts = useMemo(() => missingParts(cells), [cells]);
  if (parts.length === 0) return null;
  const total = parts.reduce((sum, part) => sum + part.n, 0);
  return (
    <section className="keep">
      <h2>Missing from the score: {integer(total)}</h2>
      <ul className="plainlist missing">
        {parts.map(({ verdict, reason, n }) => (
          <li key={`${verdict} ${reason}`}>
            <span className="count">{integer(n)}</span>
            <a href={href(['run', run, 'instances'], { verdict, reason })}>
              <Badge word={verdict} /> {reason === verdict ? '' : plain(words(reason))}
            </a>
            {NEXT.has(verdict) ? <span className="quiet"> {NEXT.get(verdict)}</span> : null}
          </li>
        ))}
      </ul>
    </section>
  );
}
