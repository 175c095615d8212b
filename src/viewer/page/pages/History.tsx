/** One instance across all runs: does it always resolve, never, or by luck? */
import { useMemo } from 'react';
import type { HistoryRow } from '../../documents/documents.ts';
import { useDocument } from '../data/source.ts';
import { CsvButton, Waiting } from '../parts.tsx';
import { href, setQuery, useRoute } from '../route.ts';
import type { Column } from '../tables/column.ts';
import { DataTable } from '../tables/DataTable.tsx';
import { TRIAL_COLUMNS } from '../tables/trialColumns.tsx';
import { plain } from '../text/foreignText.ts';
import { rate, time } from '../text/numbers.ts';

const SHOWN = new Set([
  'verdict',
  'reason',
  'class',
  'arm',
  'model',
  'epoch',
  'steps',
  'cost',
  'time',
  'flags',
]);
const COLUMNS: readonly Column<HistoryRow>[] = [
  { id: 'run', header: 'Run', width: 180, value: (r) => r.run, cell: (r) => plain(r.run) },
  { id: 'date', header: 'Started', width: 140, value: (r) => r.createdAt, cell: (r) => time(r.createdAt) },
  ...TRIAL_COLUMNS.filter((column) => SHOWN.has(column.id)),
];

export function HistoryPage({ instanceId }: { instanceId: string }) {
  const entry = useDocument<HistoryRow[]>(`history/${instanceId}`);
  const { query } = useRoute();
  const rows = useMemo(() => entry.data ?? [], [entry.data]);
  if (!entry.data) return <Waiting entry={entry} />;
  const graded = rows.filter((row) => row.verdict === 'resolved' || row.verdict === 'unresolved');
  const resolved = graded.filter((row) => row.verdict === 'resolved').length;
  return (
    <section className="page">
      <h1>History of {plain(instanceId)}</h1>
      <div className="bar">
        <p>
          Resolved {resolved} of {graded.length} times: {rate(resolved, graded.length)}
        </p>
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
        visible={new Set(COLUMNS.map((column) => column.id))}
        rowId={(row) => String(row.trial)}
        rowHref={(row) => (row.attempt === null ? undefined : href(['attempt', row.attempt]))}
        sort={query.get('sort') ?? '-date'}
        onSort={(sort) => setQuery({ sort })}
        empty="No run has this instance."
      />
    </section>
  );
}
