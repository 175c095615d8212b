/** All runs of a results root. */

import type { Facet } from '../../documents/facets.ts';
import type { Fields } from '../../documents/filter.ts';
import type { RunList, RunSummary } from '../../documents/resources.ts';
import { useDocument } from '../data/source.ts';
import { Waiting } from '../parts.tsx';
import { href } from '../route.ts';
import {
  badgeColumn,
  type Column,
  costColumn,
  numberColumn,
  textColumn,
  tokensColumn,
} from '../tables/columns.tsx';
import { FilteredTable } from '../tables/FilteredTable.tsx';
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
const spentShare = (run: RunSummary): number | null =>
  run.budgetNano ? (run.money.costNano ?? 0) / run.budgetNano : null;

/** The name of an arm tells it from others, so a single arm needs none. */
const armsOf = ({ arms }: RunSummary): string =>
  arms.length === 1 ? arms[0]!.model : arms.map((arm) => `${arm.name}: ${arm.model}`).join(', ');

const COLUMNS: readonly Column<RunSummary>[] = [
  textColumn('run', 'Run', 165, (r) => r.name),
  badgeColumn('status', 'Status', 112, (r) => r.status),
  {
    id: 'arms',
    header: 'Arms',
    width: 165,
    value: (r) => r.arms.map((arm) => arm.model),
    cell: (r) => plain(armsOf(r)),
  },
  numberColumn('coverage', 'Valid', 80, (r) => r.tally.valid, {
    title: 'trials whose ending says something final about the model, of those planned',
    cell: (r) => `${integer(r.tally.valid)} / ${integer(r.tally.planned)}`,
  }),
  numberColumn('resolved', 'Resolved, 95 % interval', 195, share, {
    title: 'resolved of the graded, with its Wilson interval',
    cell: (r) => rate(r.tally.resolved, r.tally.graded),
  }),
  numberColumn('graded', 'Graded', 78, (r) => r.tally.graded),
  costColumn(85),
  numberColumn('budget', 'Of budget', 85, spentShare, {
    cell: (r) => (r.budgetNano ? <span title={nano(r.budgetNano)}>{percent(spentShare(r)!)}</span> : '–'),
  }),
  tokensColumn(),
  numberColumn('time', 'Time', 90, elapsed, { cell: (r) => duration(elapsed(r)) }),
  numberColumn('infra', 'Infra', 55, infra, {
    title: 'trials that ended for reasons that are not the model’s',
  }),
  numberColumn('flags', 'Flags', 60, (r) => r.tally.flagged, { title: 'trials with a suspicion' }),
  textColumn('created', 'Started', 148, (r) => r.createdAt, { cell: (r) => time(r.createdAt) }),
  textColumn('dataset', 'Dataset', 220, (r) => r.dataset),
];

const FIELDS: Fields<RunSummary> = new Map([
  ...COLUMNS.map((column) => [column.id, column.value] as const),
  ['imported', (r: RunSummary) => (r.imported ? 'yes' : 'no')] as const,
  ['model', (r: RunSummary) => r.arms.map((arm) => arm.model)] as const,
]);

const runWords = (run: RunSummary): string =>
  `${run.name} ${run.dataset} ${run.arms.map((arm) => arm.model).join(' ')}`;

const FACETS: readonly Facet<RunSummary>[] = [
  { id: 'status', label: 'Status', values: (run) => [run.status] },
  { id: 'data', label: 'Dataset', values: (run) => [run.dataset] },
  { id: 'by', label: 'Model', values: (run) => run.arms.map((arm) => arm.model) },
  { id: 'kind', label: 'Kind', values: (run) => [run.imported ? 'imported' : 'run here'] },
];

const WITHOUT_BUDGET = COLUMNS.filter(({ id }) => id !== 'budget');

export function RunsPage() {
  const entry = useDocument<RunList>('runs');
  if (!entry.data) return <Waiting entry={entry} />;
  if (entry.data.runs.length === 0) return <FirstRun title={entry.data.title} />;
  return (
    <section className="page">
      <h1>Runs in {plain(entry.data.title)}</h1>
      <FilteredTable
        label="Runs"
        rows={entry.data.runs}
        columns={entry.data.runs.some((run) => run.budgetNano) ? COLUMNS : WITHOUT_BUDGET}
        fields={FIELDS}
        facets={FACETS}
        words={runWords}
        hint="nightly status:complete cost>10 resolved>=0.5"
        csvName="runs"
        rowId={(run) => String(run.id)}
        rowHref={(run) => href(['run', run.name])}
        empty="There are no runs yet."
      />
    </section>
  );
}

function FirstRun({ title }: { title: string }) {
  return (
    <section className="page nothing">
      <h1>No run in {plain(title)} yet</h1>
      <p>Start one in another terminal. It appears here by itself, instance by instance:</p>
      <pre className="output">npx swebatch run -c demo</pre>
      <p className="quiet">
        The demo needs Docker and no key. Results of other tools come in with <code>swebatch import</code>. Is
        this the wrong folder? Name the right one: <code>swebatch view RESULTS</code>.
      </p>
    </section>
  );
}
