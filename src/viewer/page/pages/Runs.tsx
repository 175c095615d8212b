/** All runs of a results root. */

import { scoreText } from '../../../report/measure/score.ts';
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
import { DASH, duration, integer, nano, percent, time } from '../text/numbers.ts';

const elapsed = (run: RunSummary): number =>
  (run.finishedAt === null ? Date.now() : Date.parse(run.finishedAt)) - Date.parse(run.createdAt);
const infra = ({ classes }: RunSummary): number => {
  const { infra: failed = 0, config = 0 } = classes as Record<string, number>;
  return failed + config;
};

const valid = ({ arms }: RunSummary): number => arms.reduce((sum, { score }) => sum + (score?.valid ?? 0), 0);

type ArmOfList = RunSummary['arms'][number];

const NO_ARM: ArmOfList = { name: '', model: '', score: null };

/** As `report` and `ls` say it. */
const shareOf = ({ score }: ArmOfList = NO_ARM): number | null =>
  score?.graded ? (score.overInstances?.mean ?? score.resolved.p) : null;
const scoreOf = (arm: ArmOfList): string =>
  arm.score && shareOf(arm) !== null ? scoreText(arm.score) : DASH;
const scoresOf = ({ arms }: RunSummary): string =>
  arms.length === 1
    ? scoreOf(arms[0]!)
    : arms
        .map((arm) => [plain(arm.name), shareOf(arm)] as const)
        .map(([name, share]) => `${name} ${share === null ? DASH : percent(share)}`)
        .join(', ');
const allScores = ({ arms }: RunSummary): string =>
  arms.map((arm) => `${plain(arm.name)}: ${scoreOf(arm)}`).join('\n');

const spentShare = (run: RunSummary): number | null =>
  run.budgetNano ? (run.money.costNano ?? 0) / run.budgetNano : null;

/** The name of an arm tells it from others, so a single arm needs none. */
const armsOf = ({ arms }: RunSummary): string =>
  arms.length === 1 ? arms[0]!.model : arms.map((arm) => `${arm.name}: ${arm.model}`).join(', ');

const COLUMNS: readonly Column<RunSummary>[] = [
  textColumn('run', 'Run', 118, (r) => (r.shard ? `${r.name} (shard ${r.shard})` : r.name)),
  numberColumn('resolved', 'Resolved, 95 % interval', 232, ({ arms }) => shareOf(arms[0]), {
    title: 'of the trials with a result; with several epochs the mean over instances',
    cell: (r) => <span title={allScores(r)}>{scoresOf(r)}</span>,
  }),
  badgeColumn('status', 'Status', 105, (r) => r.status),
  textColumn('created', 'Started', 148, (r) => r.createdAt, { cell: (r) => time(r.createdAt) }),
  {
    id: 'arms',
    header: 'Arms',
    width: 150,
    value: (r) => r.arms.map((arm) => arm.model),
    cell: (r) => plain(armsOf(r)),
  },
  numberColumn('valid', 'With a result', 128, valid, {
    title: 'trials whose ending says something final about the model, of those planned',
    cell: (r) => `${integer(valid(r))} / ${integer(r.planned)}`,
  }),
  costColumn(85),
  numberColumn('budget', 'Of budget', 102, spentShare, {
    cell: (r) => (r.budgetNano ? <span title={nano(r.budgetNano)}>{percent(spentShare(r)!)}</span> : '–'),
  }),
  tokensColumn(),
  numberColumn('time', 'Time', 90, elapsed, { cell: (r) => duration(elapsed(r)) }),
  numberColumn('infra', 'Infra failed', 112, infra, {
    title: 'trials that ended for reasons that are not the model’s',
  }),
  numberColumn('flags', 'Flagged', 80, (r) => r.flagged, { title: 'trials with a suspicion' }),
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
