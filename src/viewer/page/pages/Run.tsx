/** One run as a report: what it came to, every instance at one look, what is missing, where money and time went; while it runs, each slot. */
import { useMemo } from 'react';
import { type RunMap, readCells } from '../../documents/mapGroups.ts';
import type { RunDocument } from '../../documents/resources.ts';
import { RunSeries } from '../charts/RunSeries.tsx';
import { useDocument, useRun, useRunId } from '../data/source.ts';
import { Badge, type Fact, Facts, Foldout, NoRun, parsed, Up, Waiting } from '../parts.tsx';
import { ArmTable, cacheShare, MissingList } from '../report/ArmTable.tsx';
import { GroupTable, Headline } from '../report/Headline.tsx';
import { InstanceMap } from '../report/InstanceMap.tsx';
import { Now } from '../report/Now.tsx';
import { href } from '../route.ts';
import { plain } from '../text/foreignText.ts';
import {
  cost,
  costOfEach,
  duration,
  integer,
  nano,
  percent,
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
  return <Report run={entry.data} />;
}

function Report({ run }: { run: RunDocument }) {
  const { summary } = run;
  const map = useDocument<RunMap>(`runs/${summary.id}/map/0`);
  const cells = useMemo(() => (map.data ? readCells(map.data) : undefined), [map.data]);
  const isGoing = summary.status === 'running' || summary.status === 'paused';
  return (
    <article className="page scroll report">
      <Up to={href(['runs'])}>All runs</Up>
      <h1>
        {plain(summary.name)} <Badge word={summary.status} />
      </h1>
      <p className="sub">
        {plain(summary.arms.map((arm) => arm.model).join(', '))} on {plain(summary.dataset)} · {when(summary)}
      </p>
      <div className="hero">
        <Headline run={run} />
        <Facts facts={factsOf(run)} />
      </div>
      <Ways run={run} />
      {isGoing ? <Now run={run} /> : null}
      {cells && cells.length > 0 ? (
        <>
          <InstanceMap cells={cells} run={summary.name} />
          <MissingList cells={cells} run={summary.name} working={isGoing} />
          <div className="pair">
            <GroupTable title="By repository" cells={cells} by="repo" run={summary.name} />
            <GroupTable title="By difficulty" cells={cells} by="difficulty" run={summary.name} />
          </div>
        </>
      ) : summary.tally.planned > 0 ? (
        <Waiting entry={map} />
      ) : (
        <p className="quiet">
          No instance has been chosen yet: they appear here as soon as the run has its list.
        </p>
      )}
      <ArmTable run={run} />
      {/* Times of an import say nothing about a run, so there is nothing to draw. */}
      {run.series.length > 1 || isGoing ? (
        <>
          <h2>Spend and progress</h2>
          <RunSeries run={run} />
        </>
      ) : null}
      <Phases run={run} />
      <Foldouts run={run} />
    </article>
  );
}

function when({ imported, createdAt, finishedAt }: RunDocument['summary']): string {
  if (imported) return `imported ${time(createdAt)}`;
  if (finishedAt === null) return `began ${time(createdAt)}`;
  return `${time(createdAt)}, ${duration(Date.parse(finishedAt) - Date.parse(createdAt))}`;
}

/** Where to go from here. */
function Ways({ run: { summary } }: { run: RunDocument }) {
  const { tally } = summary;
  const instances = (query: Record<string, string> = {}) => href(['run', summary.name, 'instances'], query);
  const infra = tally.classes.some(([name]) => name === 'infra' || name === 'config');
  return (
    <p className="ways noprint">
      <a href={instances()}>All instances</a>
      {tally.graded > tally.resolved ? <a href={instances({ verdict: 'unresolved' })}>unresolved</a> : null}
      {infra ? <a href={instances({ class: 'infra|config' })}>infrastructure failures</a> : null}
      {tally.flagged > 0 ? <a href={instances({ f: 'flags:any' })}>flagged</a> : null}
      <a href={href(['compare'], { a: summary.id })}>compare with another run</a>
    </p>
  );
}

function Foldouts({ run }: { run: RunDocument }) {
  const json = (title: string, text: string) =>
    ['', '{}', 'null'].includes(text) ? null : (
      <Foldout title={title}>
        {() => <pre className="output">{plain(JSON.stringify(parsed(text), null, 2))}</pre>}
      </Foldout>
    );
  return (
    <div className="foldouts noprint">
      {run.events.length > 0 ? (
        <Foldout title="Events">
          {() => (
            <ol className="events">
              {run.events.map((event) => (
                <li key={event.seq}>
                  <time>{time(event.at)}</time> <Badge word={event.type} />{' '}
                  <code>{plain(event.data.slice(0, 500))}</code>
                </li>
              ))}
            </ol>
          )}
        </Foldout>
      ) : null}
      {json('Configuration', run.config)}
      {json('Manifest', run.manifest)}
    </div>
  );
}

/** Only what there is: an imported run has no pulls and no breaker. */
function factsOf({ summary, breaker, pulls }: RunDocument): Fact[] {
  const { tally, money, budgetNano } = summary;
  const { costNano, cacheReadTokens } = money;
  const ofBudget = budgetNano ? ` of ${nano(budgetNano)} (${percent((costNano ?? 0) / budgetNano)})` : '';
  const cached = cacheReadTokens > 0 ? `, ${percent(cacheShare(money))} of what was sent from cache` : '';
  const pulling = pulls.now > 0 ? `${pulls.now} now, ` : '';
  const shown = (isKnown: boolean, text: string) => (isKnown ? text : null);
  return [
    ['Cost', shown(costNano !== null || money.calls > 0, cost(money) + ofBudget)],
    [
      'Cost of one resolved',
      shown(costNano !== null && tally.resolved > 0, costOfEach(money, tally.resolved)),
    ],
    ['Tokens', shown(tokens(money) > 0, short(tokens(money)) + cached)],
    [
      'Valid',
      `${integer(tally.valid)} of ${integer(tally.planned)}`,
      'trials whose ending says something final about the model',
    ],
    [
      'Running, pending',
      shown(tally.running + tally.pending > 0, `${integer(tally.running)}, ${integer(tally.pending)}`),
    ],
    [
      'Failed calls',
      shown(money.failedCalls > 0, `${integer(money.failedCalls)} of ${integer(money.calls)}`),
    ],
    [
      'Breaker',
      breaker?.open ? (
        <span key="breaker" className="badge warn">
          open: {plain(breaker.reason)}
        </span>
      ) : null,
    ],
    [
      'Image pulls',
      shown(pulls.done + pulls.now > 0, `${pulling}${integer(pulls.done)} in ${duration(pulls.ms)}`),
    ],
    ['Flagged', shown(tally.flagged > 0, integer(tally.flagged))],
  ];
}

function Phases({ run }: { run: RunDocument }) {
  const total = run.phases.reduce((sum, phase) => sum + phase.ms, 0);
  if (total === 0) return null;
  return (
    <section className="keep">
      <h2>Where the time went</h2>
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
    </section>
  );
}
