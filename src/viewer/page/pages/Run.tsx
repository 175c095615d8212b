/** One run as a report: what it came to, every instance at one look, what is missing, where money and time went; while it runs, each slot. */
import { useMemo } from 'react';
import { type RunMap, readCells } from '../../documents/mapGroups.ts';
import type { RunDocument } from '../../documents/resources.ts';
import { RunSeries } from '../charts/RunSeries.tsx';
import { useDocument, useRun, useRunId } from '../data/source.ts';
import { Badge, Fact, Foldout, NoRun, parsed, Up, Waiting } from '../parts.tsx';
import { ArmTable, cacheShare, MissingList } from '../report/ArmTable.tsx';
import { GroupTable, Headline } from '../report/Headline.tsx';
import { InstanceMap } from '../report/InstanceMap.tsx';
import { Now } from '../report/Now.tsx';
import { href } from '../route.ts';
import { plain } from '../text/foreignText.ts';
import { cost, duration, integer, nano, percent, short, time, tokens, words } from '../text/numbers.ts';

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
        {plain(summary.arms.map((arm) => arm.model).join(', '))} on {plain(summary.dataset)} ·{' '}
        <When run={run} />
      </p>
      <div className="hero">
        <Headline run={run} />
        <Facts run={run} />
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

function When({ run: { summary } }: { run: RunDocument }) {
  if (summary.imported) return <>imported {time(summary.createdAt)}</>;
  if (summary.finishedAt === null) return <>began {time(summary.createdAt)}</>;
  const ms = Date.parse(summary.finishedAt) - Date.parse(summary.createdAt);
  return (
    <>
      {time(summary.createdAt)}, {duration(ms)}
    </>
  );
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
function Facts({ run }: { run: RunDocument }) {
  const { summary, breaker, pulls } = run;
  const { tally, money, budgetNano } = summary;
  const isKnown = money.costNano !== null;
  const waiting = tally.running + tally.pending;
  return (
    <dl className="facts">
      {isKnown || money.calls > 0 ? (
        <Fact name="Cost">
          {cost(money)}
          {budgetNano ? ` of ${nano(budgetNano)} (${percent((money.costNano ?? 0) / budgetNano)})` : ''}
        </Fact>
      ) : null}
      {isKnown && tally.resolved > 0 ? (
        <Fact name="Cost of one resolved">
          {cost({ ...money, costNano: Math.round(money.costNano! / tally.resolved) })}
        </Fact>
      ) : null}
      {tokens(money) > 0 ? (
        <Fact name="Tokens">
          {short(tokens(money))}
          {money.cacheReadTokens > 0 ? `, ${percent(cacheShare(money))} of what was sent from cache` : ''}
        </Fact>
      ) : null}
      <Fact name="Valid" title="trials whose ending says something final about the model">
        {integer(tally.valid)} of {integer(tally.planned)}
      </Fact>
      {waiting > 0 ? (
        <Fact name="Running, pending">
          {integer(tally.running)}, {integer(tally.pending)}
        </Fact>
      ) : null}
      {money.failedCalls > 0 ? (
        <Fact name="Failed calls">
          {integer(money.failedCalls)} of {integer(money.calls)}
        </Fact>
      ) : null}
      {breaker?.open ? (
        <Fact name="Breaker">
          <span className="badge warn">open: {plain(breaker.reason)}</span>
        </Fact>
      ) : null}
      {pulls.done + pulls.now > 0 ? (
        <Fact name="Image pulls">
          {pulls.now > 0 ? `${pulls.now} now, ` : ''}
          {integer(pulls.done)} in {duration(pulls.ms)}
        </Fact>
      ) : null}
      {tally.flagged > 0 ? <Fact name="Flagged">{integer(tally.flagged)}</Fact> : null}
    </dl>
  );
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
