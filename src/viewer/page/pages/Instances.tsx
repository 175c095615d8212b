/** The trials of one run: filter, sort, choose columns, open one, take the rest away as CSV. */
import { useMemo } from 'react';
import { compileFilter } from '../../documents/filter.ts';
import { useRunId, useTrials } from '../data/useTrials.ts';
import { ColumnPicker, CsvButton, FilterBox, Waiting } from '../parts.tsx';
import { href, setQuery, useRoute } from '../route.ts';
import { DataTable } from '../tables/DataTable.tsx';
import { TRIAL_COLUMNS, TRIAL_FIELDS, trialWords } from '../tables/trialColumns.tsx';
import { plain } from '../text/foreignText.ts';
import { rate } from '../text/numbers.ts';

const DEFAULT = new Set(TRIAL_COLUMNS.filter((column) => column.hidden !== true).map((column) => column.id));

export function InstancesPage({ run }: { run: string }) {
  const found = useRunId(run);
  const trials = useTrials(found.id);
  const { query } = useRoute();
  const text = query.get('f') ?? '';
  const picked = query.get('cols');
  const visible = useMemo(
    () => (picked === null ? DEFAULT : new Set(['instance', ...picked.split(',')])),
    [picked],
  );
  const filter = useMemo(() => compileFilter(text, TRIAL_FIELDS, trialWords), [text]);
  const rows = useMemo(() => trials.data?.filter(filter.test) ?? [], [trials.data, filter]);
  if (found.data && found.id === undefined)
    return <p className="pad">There is no run “{plain(run)}” here.</p>;
  if (!trials.data) return <Waiting entry={found.error ? found : trials} />;
  const graded = rows.filter((row) => row.verdict === 'resolved' || row.verdict === 'unresolved');
  const resolved = graded.filter((row) => row.verdict === 'resolved').length;
  return (
    <section className="page">
      <h1>Instances of {plain(run)}</h1>
      <div className="bar">
        <FilterBox
          value={text}
          onChange={(f) => setQuery({ f })}
          problems={filter.problems}
          hint="filter: django class:limit steps>50 cost>=0.5 time>10m -flags:any"
        />
        <span className="quiet" role="status">
          {rows.length} of {trials.total};{' '}
          {graded.length > 0
            ? `resolved ${resolved}/${graded.length} = ${rate(resolved, graded.length)}`
            : 'none graded'}
        </span>
        <ColumnPicker
          columns={TRIAL_COLUMNS}
          visible={visible}
          onChange={(cols) => setQuery({ cols: cols.join(',') })}
        />
        <CsvButton
          name={`${run}-instances`}
          columns={TRIAL_COLUMNS.filter((column) => visible.has(column.id))}
          rows={rows}
        />
      </div>
      <DataTable
        label="Instances"
        rows={rows}
        columns={TRIAL_COLUMNS}
        visible={visible}
        rowId={(row) => String(row.trial)}
        rowHref={(row) => (row.attempt === null ? undefined : href(['attempt', row.attempt]))}
        sort={query.get('sort') ?? ''}
        onSort={(sort) => setQuery({ sort })}
        empty="No trial matches the filter."
      />
    </section>
  );
}
