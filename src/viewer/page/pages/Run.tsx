/** One run: how far it is, what it found, where money and time go, what each slot does now. */
import type { ArmSummary, RunDocument } from '../../documents/documents.ts';
import { pace, RunSeries } from '../charts/RunSeries.tsx';
import { useRun, useRunId } from '../data/useTrials.ts';
import { Badge, Fact, Foldout, NoRun, Up, Waiting } from '../parts.tsx';
import { href } from '../route.ts';
import type { Column } from '../tables/column.ts';
import { costColumn, numberColumn, textColumn } from '../tables/columnKinds.tsx';
import { DataTable } from '../tables/DataTable.tsx';
import { useSort } from '../tables/FilteredTable.tsx';
import { SlotTable } from '../tables/SlotTable.tsx';
import { plain } from '../text/foreignText.ts';
import {
  cost,
  DASH,
  duration,
  integer,
  nano,
  percent,
  rate,
  short,
  time,
  tokens,
  words,
} from '../text/numbers.ts';

export function RunPage({ run }: { run: string }) {
  const found = useRunId(run);
  const entry = useRun(found.id);
  if (found.data && found.id === undefined) return <NoRun name={run} />;
  if (!entry.data) return <Waiting entry={found.error ? found : entry} />;
  return <Overview run={entry.data} />;
}

function Overview({ run }: { run: RunDocument }) {
  const { summary } = run;
  const instances = (f?: string) => href(['run', summary.name, 'instances'], { f });
  const isGoing = summary.status === 'running' || summary.status === 'paused';
  return (
    <article className="page scroll">
      <Up to={href(['runs'])}>All runs</Up>
      <h1>
        {plain(summary.name)} <Badge word={summary.status} />
      </h1>
      <Facts run={run} />
      <p>
        <a href={instances()}>All instances</a> · <a href={instances('verdict=unresolved')}>unresolved</a> ·{' '}
        <a href={instances('class:infra|config')}>infrastructure failures</a> ·{' '}
        <a href={instances('flags:any')}>flagged</a> ·{' '}
        <a href={href(['compare'], { a: summary.id })}>compare with another run</a>
      </p>
      {isGoing ? <Now run={run} /> : null}
      {run.arms.length > 1 ? <Arms run={run} /> : null}
      <h2>Spend and progress</h2>
      <RunSeries run={run} />
      <h2>Where the time went</h2>
      <Phases run={run} />
      <Endings run={run} />
      <Foldout title="Events">{() => <Events run={run} />}</Foldout>
      <Foldout title="Configuration">
        {() => <pre className="output">{plain(pretty(run.config))}</pre>}
      </Foldout>
      <Foldout title="Manifest">{() => <pre className="output">{plain(pretty(run.manifest))}</pre>}</Foldout>
    </article>
  );
}

function pretty(json: string): string {
  try {
    return JSON.stringify(JSON.parse(json), null, 2);
  } catch {
    return json;
  }
}

/** Failures counted in and left out: the truth lies between. */
function bounds({ resolved, graded, planned }: RunDocument['summary']['tally']): string {
  if (graded === 0) return DASH;
  return `${percent(resolved / planned)} to ${percent((resolved + planned - graded) / planned)}`;
}

function Facts({ run }: { run: RunDocument }) {
  const { summary, breaker, pulls } = run;
  const { tally, money } = summary;
  const spent = money.costNano ?? 0;
  return (
    <dl className="facts">
      <Fact name="Resolved of graded" title="Wilson 95 % interval">
        {tally.resolved} / {tally.graded}: {rate(tally.resolved, tally.graded)}
      </Fact>
      <Fact name="Bounds over all planned" title="everything missing counted as failed, and as resolved">
        {bounds(tally)}
      </Fact>
      <Fact name="Valid">
        {integer(tally.valid)} / {integer(tally.planned)} ({percent(tally.valid / Math.max(1, tally.planned))}
        )
      </Fact>
      <Fact name="Running, pending">
        {tally.running}, {tally.pending}
      </Fact>
      <Fact name="Cost">
        {cost(money)}
        {summary.budgetNano ? ` of ${nano(summary.budgetNano)} (${percent(spent / summary.budgetNano)})` : ''}
      </Fact>
      <Fact
        name="Tokens"
        title={`input ${money.inputTokens}, cache read ${money.cacheReadTokens}, output ${money.outputTokens}`}
      >
        {short(tokens(money))}
      </Fact>
      <Fact name="Calls, failed">
        {integer(money.calls)}, {integer(money.failedCalls)}
      </Fact>
      <Fact name="Breaker">
        {breaker?.open ? <span className="badge warn">open: {plain(breaker.reason)}</span> : 'closed'}
      </Fact>
      <Fact name="Image pulls">
        {pulls.now > 0 ? `${pulls.now} now, ` : ''}
        {integer(pulls.done)} in {duration(pulls.ms)}
      </Fact>
      <Fact name="Flagged">{tally.flagged}</Fact>
      <Fact name="Started">{time(summary.createdAt)}</Fact>
      <Fact name="Ended">{time(summary.finishedAt)}</Fact>
      <Fact name="Dataset">{plain(summary.dataset)}</Fact>
      <Fact name="Models">{plain(summary.arms.map((arm) => arm.model).join(', '))}</Fact>
    </dl>
  );
}

function Now({ run }: { run: RunDocument }) {
  const phases = Map.groupBy(run.slots, (slot) => slot.phase ?? 'starting');
  return (
    <>
      <h2>Now</h2>
      <p role="status">
        {run.slots.length} slots busy
        {[...phases].map(([phase, slots]) => ` · ${words(phase)} ${slots.length}`).join('')}
        {` · ${pace(run)}`}
      </p>
      <SlotTable slots={run.slots} />
    </>
  );
}

const ARM_COLUMNS: readonly Column<ArmSummary>[] = [
  textColumn('arm', 'Arm', 140, (r) => r.arm),
  textColumn('model', 'Model', 220, (r) => r.model),
  numberColumn('valid', 'Valid', 100, (r) => r.tally.valid, {
    cell: (r) => `${r.tally.valid} / ${r.tally.planned}`,
  }),
  numberColumn(
    'resolved',
    'Resolved, 95 % interval',
    200,
    (r) => r.tally.resolved / Math.max(1, r.tally.graded),
    { cell: (r) => rate(r.tally.resolved, r.tally.graded) },
  ),
  costColumn(100),
];

function Arms({ run }: { run: RunDocument }) {
  return (
    <>
      <h2>Arms</h2>
      <div className="short">
        <DataTable
          label="Arms"
          rows={run.arms}
          columns={ARM_COLUMNS}
          rowId={(row) => row.arm}
          rowHref={(row) => href(['run', run.summary.name, 'instances'], { f: `arm="${row.arm}"` })}
          {...useSort('', 'arms')}
          empty=""
        />
      </div>
    </>
  );
}

function Phases({ run }: { run: RunDocument }) {
  const total = run.phases.reduce((sum, phase) => sum + phase.ms, 0);
  if (total === 0) return <p className="quiet">No phase has ended yet.</p>;
  return (
    <ul className="bars">
      {run.phases.map((phase) => (
        <li key={phase.name}>
          <span>{plain(words(phase.name))}</span>
          <meter min={0} max={total} value={phase.ms} aria-label={plain(phase.name)} />
          <span>
            {duration(phase.ms)} ({percent(phase.ms / total)}), {integer(phase.n)} times
          </span>
        </li>
      ))}
    </ul>
  );
}

function Endings({ run }: { run: RunDocument }) {
  const { classes, outcomes } = run.summary.tally;
  const list = (rows: [string, number][], field: string) =>
    rows.map(([name, n]) => (
      <li key={name}>
        <a href={href(['run', run.summary.name, 'instances'], { f: `${field}=${name}` })}>
          <Badge word={name} /> {n}
        </a>
      </li>
    ));
  return (
    <div className="pair">
      <div>
        <h2>Exit classes</h2>
        <ul className="plainlist">{list(classes, 'class')}</ul>
      </div>
      <div>
        <h2>Outcomes</h2>
        <ul className="plainlist">{list(outcomes, 'outcome')}</ul>
      </div>
    </div>
  );
}

function Events({ run }: { run: RunDocument }) {
  return (
    <ol className="events">
      {run.events.map((event) => (
        <li key={event.seq}>
          <time>{time(event.at)}</time> <Badge word={event.type} />{' '}
          <code>{plain(event.data.slice(0, 500))}</code>
        </li>
      ))}
    </ol>
  );
}
