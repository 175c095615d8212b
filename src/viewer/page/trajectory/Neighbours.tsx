/** The previous and the next instance of the list that somebody came from: its filters and its order are in the address. */
import { useMemo } from 'react';
import type { AttemptDocument, TrialDocument } from '../../documents/documents.ts';
import { useTrials } from '../data/useTrials.ts';
import { href, useRoute } from '../route.ts';
import { rowsOfList } from '../tables/trialFacets.ts';
import { plain } from '../text/foreignText.ts';
import { integer } from '../text/numbers.ts';

/** Back to the list, as it was left. */
export const listHref = (run: string, list: string): string =>
  href(['run', run, 'instances'], Object.fromEntries(new URLSearchParams(list)));

export function Neighbours({ doc }: { doc: AttemptDocument }) {
  const { query } = useRoute();
  const list = query.get('list') ?? '';
  const tab = query.get('tab') ?? undefined;
  const { data, total } = useTrials(doc.run.id);
  const rows = useMemo(
    () => rowsOfList(data ?? [], new URLSearchParams(list)).filter((row) => row.attempt !== null),
    [data, list],
  );
  const at = rows.findIndex((row) => row.trial === doc.trial.id);
  const to = (row: TrialDocument | undefined) => row && href(['attempt', row.attempt!], { list, tab });
  const [before, after] = at < 0 ? [undefined, undefined] : [rows[at - 1], rows[at + 1]];
  return (
    <nav className="neighbours" aria-label="Neighbours in the list">
      <a className="up" href={listHref(doc.run.name, list)}>
        <span aria-hidden="true">‹ </span>
        {list === '' ? 'Instances' : 'The filtered list'}
      </a>
      <span className="spacer" />
      {before ? (
        <a data-previous="" href={to(before)} title={`${plain(before.instance_id)} (key [)`}>
          ← previous
        </a>
      ) : (
        <span className="quiet">← previous</span>
      )}
      <span className="quiet">
        {at < 0 ? '–' : integer(at + 1)} of {integer(list === '' ? total : rows.length)}
      </span>
      {after ? (
        <a data-next="" href={to(after)} title={`${plain(after.instance_id)} (key ])`}>
          next →
        </a>
      ) : (
        <span className="quiet">next →</span>
      )}
    </nav>
  );
}
