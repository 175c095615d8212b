/** One run as a report: what it came to, every instance at one look, what is missing, where money and time went; while it runs, each slot. */
import { useMemo } from 'preact/compat';
import { type RunMap, readCells } from '../../documents/mapGroups.ts';
import type { RunDocument } from '../../documents/resources.ts';
import { RunSeries } from '../charts/RunSeries.tsx';
import { useDocument, useRun, useRunId } from '../data/source.ts';
import { Badge, type Fact, Facts, Foldout, NoRun, parsed, Up, Waiting } from '../parts.tsx';
import { ArmTable, MissingList } from '../report/ArmTable.tsx';
import { Blocks } from '../report/Blocks.tsx';
import { GroupTable, Headline } from '../report/Headline.tsx';
import { InstanceMap } from '../report/InstanceMap.tsx';
import { Now } from '../report/Now.tsx';
import { href } from '../route.ts';
import { plain } from '../text/foreignText.ts';
import { cost, duration, integer, nano, percent, time, tokens, tokensText, words } from '../text/numbers.ts';

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
        {plain(summary.name)} {summary.shard ? `shard ${summary.shard} ` : null}
        <Badge word={summary.status} />
      </h1>
      {summary.shard ? (
        <p className="sub">
          A part of a run: its figures are of this shard alone. <code>swebatch join</code> makes the run of
          all.
        </p>
      ) : null}
      <p className="sub">
        {plain(summary.arms.map((arm) => arm.model).join(', '))} on {plain(summary.dataset)} · {when(summary)}
      </p>
      <div className="hero">
        <Headline run={run} />
        <Facts facts={factsOf(run)} />
      </div>
      <Ways run={run} />
      {run.now ? <Now run={run.summary.name} live={run.now} /> : null}
      {summary.planned === 0 ? (
        <p className="quiet">
          No instance has been chosen yet: they appear here as soon as the run has its list.
        </p>
      ) : cells ? (
        <InstanceMap cells={cells} total={summary.planned} run={summary.name} />
      ) : (
        <Waiting entry={map} />
      )}
      <MissingList run={run} working={isGoing} />
      <div className={run.report.arms.length > 1 ? undefined : 'pair'}>
        <GroupTable title="By repository" run={run} by="repo" />
        <GroupTable title="By difficulty" run={run} by="difficulty" />
      </div>
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
  const instances = (query: Record<string, string> = {}) => href(['run', summary.name, 'instances'], query);
  const { infra = 0, config = 0 } = summary.classes as Record<string, number>;
  const failed = summary.arms.some(({ score }) => score?.graded && score.resolved.x < score.resolved.n);
  return (
    <p className="ways noprint">
      <a href={instances()}>All instances</a>
      {failed ? <a href={instances({ verdict: 'unresolved' })}>unresolved</a> : null}
      {infra + config > 0 ? <a href={instances({ class: 'infra|config' })}>infrastructure failures</a> : null}
      {summary.flagged > 0 ? <a href={instances({ f: 'flags:any' })}>flagged</a> : null}
      <a href={href(['compare'], { a: summary.name })}>
        {summary.arms.length > 1 ? 'compare its arms, or with another run' : 'compare with another run'}
      </a>
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
      <Foldout title="The whole report, as `swebatch report` words it">
        {() => <Blocks blocks={run.words} />}
      </Foldout>
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

/** Only what there is: an imported run has no calls and no pauses. */
function factsOf({ summary, breaker, now, report }: RunDocument): Fact[] {
  const { money, budgetNano, classes } = summary;
  const { costNano } = money;
  const ofBudget = budgetNano ? ` of ${nano(budgetNano)} (${percent((costNano ?? 0) / budgetNano)})` : '';
  const shown = (isKnown: boolean, text: string) => (isKnown ? text : null);
  const valid = report.arms.reduce((sum, arm) => sum + arm.valid, 0);
  const pending = classes.not_run;
  const pulling = now?.slots.filter(({ phase }) => phase === 'pull').length ?? 0;
  return [
    ['Cost', shown(costNano !== null || money.calls > 0, cost(money) + ofBudget)],
    ['Tokens', shown(tokens(money) > 0, tokensText(money))],
    [
      'Trials with a result',
      `${integer(valid)} of ${integer(summary.planned)}`,
      'trials whose ending says something final about the model',
    ],
    ['Running', shown(classes.running > 0, integer(classes.running))],
    ['Still to run', shown(pending > 0, integer(pending))],
    [
      'Model calls that failed',
      shown(money.failedCalls > 0, `${integer(money.failedCalls)} of ${integer(money.calls)}`),
    ],
    [
      'Paused',
      breaker?.open ? (
        <span key="breaker" className="badge warn">
          {plain(breaker.reason)}
        </span>
      ) : null,
    ],
    ['Waiting for an image', shown(pulling > 0, integer(pulling))],
    ['Flagged trials', shown(summary.flagged > 0, integer(summary.flagged))],
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
              {duration(phase.ms)} ({percent(phase.ms / total)})
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}
