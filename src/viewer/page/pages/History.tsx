/** One instance across all runs: does it always resolve, never, or by luck? */

import { rate } from '../../../report/render/document.ts';
import { proportion } from '../../../report/statistics/proportions.ts';
import type { HistoryRow } from '../../documents/trialDocuments.ts';
import { useDocument } from '../data/source.ts';
import { CsvButton, Up, Waiting } from '../parts.tsx';
import { href } from '../route.ts';
import { type Column, TRIAL_COLUMNS, textColumn } from '../tables/columns.tsx';
import { DataTable } from '../tables/DataTable.tsx';
import { useSort } from '../tables/FilteredTable.tsx';
import { plain } from '../text/foreignText.ts';
import { time } from '../text/numbers.ts';

const SHOWN = new Set('verdict reason class arm model epoch steps cost time flags'.split(' '));
const COLUMNS: readonly Column<HistoryRow>[] = [
  textColumn('run', 'Run', 180, (r) => r.run),
  textColumn('date', 'Started', 165, (r) => r.createdAt, { cell: (r) => time(r.createdAt) }),
  ...TRIAL_COLUMNS.filter((column) => SHOWN.has(column.id)),
];
const ALL = new Set(COLUMNS.map((column) => column.id));

export function HistoryPage({ instanceId }: { instanceId: string }) {
  const entry = useDocument<HistoryRow[]>(`history/${instanceId}`);
  const sorting = useSort('-date');
  const rows = entry.data;
  if (!rows) return <Waiting entry={entry} />;
  const graded = rows.filter(({ verdict }) => verdict === 'resolved' || verdict === 'unresolved');
  const models = [...Map.groupBy(graded, ({ model }) => model)].map(([model, own]) => {
    const found = proportion(own.filter(({ verdict }) => verdict === 'resolved').length, own.length);
    return `${plain(model)} ${rate(found)}`;
  });
  return (
    <section className="page">
      <Up to={href(['runs'])}>All runs</Up>
      <h1>History of {plain(instanceId)}</h1>
      <div className="bar">
        <p>{models.length > 0 ? `Resolved: ${models.join('; ')}` : 'No verdict yet'}</p>
        <ol className="strip" aria-label="verdicts, oldest first">
          {rows.map((row) => (
            <li
              key={row.trial}
              className={row.verdict}
              title={`${plain(row.run)} ${plain(row.arm)}: ${row.verdict}`}
            >
              <span className="hide">{row.verdict}</span>
            </li>
          ))}
        </ol>
        <CsvButton name={`${instanceId}-history`} columns={COLUMNS} rows={rows} />
      </div>
      <DataTable
        label={`History of ${plain(instanceId)}`}
        rows={rows}
        columns={COLUMNS}
        visible={ALL}
        rowId={(row) => String(row.trial)}
        rowHref={(row) => (row.attempt === null ? undefined : href(['attempt', row.attempt]))}
        {...sorting}
        main
        empty="No run has this instance."
      />
    </section>
  );
}
