/** What has no verdict, and why; each line leads to its trials. */
import { useMemo } from 'react';
import { type MapCell, missingParts } from '../../documents/mapGroups.ts';
import { Badge } from '../parts.tsx';
import { href } from '../route.ts';
import { plain } from '../text/foreignText.ts';
import { integer, words } from '../text/numbers.ts';

/** What helps, by why a trial is missing from the score. */
const NEXT: Readonly<Record<string, (run: string) => string>> = {
  not_graded: (run) => `swebatch evaluate ${run} grades it`,
  infra: (run) => `swebatch resume ${run} tries it again`,
  grading_infra: (run) => `swebatch evaluate ${run} grades it again`,
  not_run: (run) => `swebatch resume ${run} runs it`,
};

interface Missing {
  readonly cells: readonly MapCell[];
  readonly run: string;
  /** The run works still: what is missing may come by itself. */
  readonly working: boolean;
}

export function MissingList({ cells, run, working }: Missing) {
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
              <Badge word={verdict} />
              {reason === verdict ? null : <span className="reason">{plain(words(reason))}</span>}
            </a>
            {working || !NEXT[verdict] ? null : <span className="quiet"> {NEXT[verdict](run)}</span>}
          </li>
        ))}
      </ul>
    </section>
  );
}
