/** All runs of a results root. */
import { useMemo } from 'react';
import type { RunList, RunSummary } from '../../documents/documents.ts';
import { compileFilter, type Fields } from '../../documents/filter.ts';
import { useDocument } from '../data/source.ts';
import { Badge, CsvButton, FilterBox, Waiting } from '../parts.tsx';
import { href, setQuery, useRoute } from '../route.ts';
import type { Column } from '../tables/column.ts';
import { DataTable } from '../tables/DataTable.tsx';
import { costColumn, tokensColumn } from '../tables/moneyColumns.ts';
import { plain } from '../text/foreignText.ts';
import { duration, integer, nano, percent, rate, time } from '../text/numbers.ts';

const elapsed = (run: RunSummary): number =>
  (run.finishedAt === null ? Date.now() : Date.parse(run.finishedAt)) - Date.parse(run.createdAt);
const infra = (run: RunSummary): number =>
  run.tally.classes
    .filter(([name]) => name === 'infra' || name === 'config')
    .reduce((sum, [, n]) => sum + n, 0);
const share = (run: RunSummary): number | null =>
  run.tally.graded === 0 ? null : run.tally.resolved / run.tally.graded;

const COLUMNS: readonly Column<RunSummary>[] = [
  { id: 'run', header: 'Run', width: 180, value: (r) => r.name, cell: (r) => plain(r.name) },
  {
    id: 'status',
    header: 'Status',
    width: 100,
    value: (r) => r.status,
    cell: (r) => <Badge word={r.status} />,
  },
  {
    id: 'arms',
    header: 'Arms',
    width: 170,
    value: (r) => r.arms.map((arm) => arm.model),
    cell: (r) => plain(r.arms.map((arm) => `${arm.name}: ${arm.model}`).join(', ')),
  },
  {
    id: 'coverage',
    header: 'Valid',
    title: 'trials whose ending says something final about the model, of those planned',
    width: 110,
    numeric: true,
    value: (r) => r.tally.valid,
    cell: (r) => `${integer(r.tally.valid)} / ${integer(r.tally.planned)}`,
  },
  {
    id: 'resolved',
    header: 'Resolved, 95 % interval',
    title: 'resolved of the graded, with its Wilson interval',
    width: 210,
    numeric: true,
    value: share,
    cell: (r) => rate(r.tally.resolved, r.tally.graded),
  },
  { id: 'graded', header: 'Graded', width: 80, numeric: true, value: (r) => r.tally.graded },
  costColumn({ width: 100 }),
  {
    id: 'budget',
    header: 'Of budget',
    width: 95,
    numeric: true,
    value: (r) => (r.budgetNano ? (r.money.costNano ?? 0) / r.budgetNano : null),
    cell: (r) =>
      r.budgetNano ? (
        <span title={nano(r.budgetNano)}>{percent((r.money.costNano ?? 0) / r.budgetNano)}</span>
      ) : (
        '–'
      ),
  },
  tokensColumn(),
  {
    id: 'time',
    header: 'Time',
    width: 100,
    numeric: true,
    value: elapsed,
    cell: (r) => duration(elapsed(r)),
  },
  {
    id: 'infra',
    header: 'Infra',
    title: 'trials that ended for reasons that are not the model’s',
    width: 70,
    numeric: true,
    value: infra,
  },
  {
    id: 'flags',
    header: 'Flags',
    title: 'trials with a suspicion',
    width: 70,
    numeric: true,
    value: (r) => r.tally.flagged,
  },
  { id: 'created', header: 'Started', width: 140, value: (r) => r.createdAt, cell: (r) => time(r.createdAt) },
  { id: 'dataset', header: 'Dataset', width: 220, value: (r) => r.dataset, cell: (r) => plain(r.dataset) },
];

const FIELDS: Fields<RunSummary> = new Map([
  ...COLUMNS.map((column) => [column.id, column.value] as const),
  ['imported', (r: RunSummary) => (r.imported ? 'yes' : 'no')] as const,
  ['model', (r: RunSummary) => r.arms.map((arm) => arm.model)] as const,
]);

export function RunsPage() {
  const entry = useDocument<RunList>('runs');
  const { query } = useRoute();
  const text = query.get('f') ?? '';
  const filter = useMemo(
    () =>
      compileFilter(
        text,
        FIELDS,
        (run) => `${run.name} ${run.dataset} ${run.arms.map((arm) => arm.model).join(' ')}`,
      ),
    [text],
  );
  const rows = useMemo(() => entry.data?.runs.filter(filter.test) ?? [], [entry.data, filter]);
  if (!entry.data) return <Waiting entry={entry} />;
  return (
    <section className="page">
      <h1>Runs in {plain(entry.data.title)}</h1>
      <div className="bar">
        <FilterBox
          value={text}
          onChange={(f) => setQuery({ f })}
          problems={filter.problems}
          hint="filter: nightly status:complete cost>10 resolved>=0.5"
        />
        <span className="quiet" role="status">
          {rows.length} of {entry.data.runs.length}
        </span>
        <CsvButton name="runs" columns={COLUMNS} rows={rows} />
      </div>
      <DataTable
        label="Runs"
        rows={rows}
        columns={COLUMNS}
        rowId={(run) => String(run.id)}
        rowHref={(run) => href(['run', run.name])}
        sort={query.get('sort') ?? ''}
        onSort={(sort) => setQuery({ sort })}
        empty={text === '' ? 'There are no runs yet.' : 'No run matches the filter.'}
      />
    </section>
  );
}
