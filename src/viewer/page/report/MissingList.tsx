/** What has no verdict, and why; each line leads to its trials. */
import { useMemo } from 'react';
import { type MapCell, missingParts } from '../../documents/mapGroups.ts';
import { Badge } from '../parts.tsx';
import { href } from '../route.ts';
import { plain } from '../text/foreignText.ts';
import { integer, words } from '../text/numbers.ts';

/** What helps, by why a trial is missing from the score. */
const nextOf = (verdict: string, run: string): string | undefined =>
  ({
    not_graded: `swebatch evaluate ${run} grades it`,
    infra: `swebatch resume ${run} tries it again`,
    grading_infra: `swebatch evaluate ${run} grades it again`,
    not_run: `swebatch resume ${run} runs it`,
  })[verdict];

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
            {nextOf(verdict, run) ? <span className="quiet"> {nextOf(verdict, run)}</span> : null}
          </li>
        ))}
      </ul>
    </section>
  );
}
