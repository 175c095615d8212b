/** One attempt: its conversation, its time, its patch beside the gold patch and the test output, all attempts of its trial. */
import { useMemo, useState } from 'preact/compat';
import type { AttemptDocument, RawChunk } from '../../documents/attemptDocuments.ts';
import { judgeText, staysText, targetText } from '../../documents/documents.ts';
import type { Why } from '../../documents/why.ts';
import { mode, readDocument, useDocument, useTrials } from '../data/source.ts';
import {
  Badge,
  type Fact,
  Facts,
  Flags,
  Foldout,
  PlainTable,
  parsed,
  Scrolled,
  save,
  Tabs,
  Waiting,
} from '../parts.tsx';
import { href, setQuery, useRoute } from '../route.ts';
import { rowsOfList } from '../tables/columns.tsx';
import { plain } from '../text/foreignText.ts';
import { cost, duration, integer, reward, rewardNames, time, tokensText, words } from '../text/numbers.ts';
import { CopyButton, Output } from '../text/Text.tsx';
import { PatchPanel } from '../trajectory/PatchPanel.tsx';
import { Trajectory } from '../trajectory/Trajectory.tsx';
import { Waterfall } from '../trajectory/Waterfall.tsx';

const TABS: readonly [string, string][] = [
  ['trajectory', 'Trajectory'],
  ['patch', 'Patch and tests'],
  ['time', 'Time'],
  ['task', 'Task'],
  ['raw', 'Raw JSON'],
];

export function AttemptPage({ id }: { id: string }) {
  const entry = useDocument<AttemptDocument>(`attempts/${id}`);
  const { query } = useRoute();
  if (!entry.data) return <Waiting entry={entry} />;
  const doc = entry.data;
  // An import brings no times of phases.
  const tabs = TABS.filter(([name]) => name !== 'time' || doc.phases.length > 0);
  const tab = tabs.some(([name]) => name === query.get('tab')) ? query.get('tab')! : 'trajectory';
  return (
    <section className="page">
      <Neighbours doc={doc} />
      <Head doc={doc} />
      <Tabs
        tabs={tabs}
        current={tab}
        onChange={(next) => setQuery({ tab: next === 'trajectory' ? undefined : next })}
      />
      <div id="panel" role="tabpanel" aria-labelledby={`tab-${tab}`} className="panel">
        {tab === 'trajectory' ? <Trajectory doc={doc} /> : null}
        {tab === 'patch' ? <PatchPanel doc={doc} /> : null}
        {tab === 'time' ? <Waterfall doc={doc} /> : null}
        {tab === 'task' ? <Task doc={doc} /> : null}
        {tab === 'raw' ? <RawPanel doc={doc} /> : null}
      </div>
    </section>
  );
}

export function Head({ doc }: { doc: AttemptDocument }) {
  const { attempt, instance, trial, run, attempts } = doc;
  const verdict = doc.evaluations.find((evaluation) => evaluation.current);
  const list = useRoute().query.get('list') ?? '';
  return (
    <header className="attempt">
      <h1>
        {plain(instance.instanceId)} {verdict ? <Badge word={verdict.outcome} /> : null}
        <Badge word={attempt.exitReason ?? attempt.state} />
        <Flags flags={[...new Set([...attempt.flags, ...(verdict?.flags ?? [])].map((flag) => flag.rule))]} />
      </h1>
      <p className="crumbs">
        <a data-up="" href={listHref(run.name, list)}>
          {plain(run.name)}
        </a>{' '}
        · {plain(trial.arm)} ({plain(trial.model)}) · epoch {trial.epoch} ·{' '}
        <a href={href(['history', instance.instanceId])}>history of this instance</a>
        {attempts.length > 1 ? (
          <>
            {' · attempts: '}
            {attempts.map((one) => (
              <a
                key={one.id}
                href={href(['attempt', one.id], { list })}
                aria-current={one.id === attempt.id ? 'page' : undefined}
                title={`${one.exitReason ?? one.state}, ${one.steps} steps, ${duration(one.elapsedMs)}`}
              >
                {one.number}
                {one.final ? ' (final)' : ''}{' '}
              </a>
            ))}
          </>
        ) : null}
      </p>
      <Facts facts={factsOf(doc)} />
      {doc.why ? <WhySection why={doc.why} /> : null}
      {attempt.error && attempt.error !== doc.why?.firstError ? (
        <p className="problem" role="note">
          {plain(attempt.error.slice(0, 2000))}
        </p>
      ) : null}
      {run.imported ? null : (
        <p className="quiet again">
          Run it again:{' '}
          <code>
            swebatch resume {plain(run.name)} --retry --id {plain(instance.instanceId)}
          </code>{' '}
          <CopyButton
            text={`swebatch resume ${run.name} --retry --id ${instance.instanceId}`}
            what="the command that runs it again"
          />
        </p>
      )}
      {attempt.judge ? <p className="quiet">{plain(judgeText(attempt.judge, cost(attempt.judge)))}</p> : null}
      {attempt.connections ? <Connections lines={attempt.connections} /> : null}
      {attempt.program ? (
        <Foldout
          title={
            attempt.program.exitCode === null
              ? 'the program was killed'
              : `the program ended with exit code ${attempt.program.exitCode}${attempt.program.oomKilled ? ', and the memory limit killed a process of it' : ''}; the end of its output`
          }
        >
          {() => <Output text={attempt.program?.outputEnd ?? ''} label="the end of the output" />}
        </Foldout>
      ) : null}
    </header>
  );
}

type ConnectionLines = NonNullable<AttemptDocument['attempt']['connections']>;

/** The addresses that the attempt's containers reached, or wanted to. */
function Connections({ lines }: { lines: ConnectionLines }) {
  const refused = lines.reduce((sum, line) => sum + (line.outcome === 'refused' ? line.count : 0), 0);
  const all = lines.reduce((sum, line) => sum + line.count, 0);
  return (
    <Foldout
      title={`${integer(all)} connection${all === 1 ? '' : 's'} to the outside, ${integer(refused)} refused`}
    >
      {() => (
        <PlainTable
          columns={[
            { header: 'host', cell: (line) => plain(targetText(line)) },
            { header: 'phase', cell: ({ phase }) => phase },
            { header: 'outcome', cell: ({ outcome }) => outcome },
            { header: 'times', cell: ({ count }) => integer(count) },
            { header: 'bytes in', cell: ({ bytesIn }) => integer(bytesIn) },
            { header: 'bytes out', cell: ({ bytesOut }) => integer(bytesOut) },
            { header: 'why', cell: ({ reason }) => plain(reason ?? '') },
          ]}
          rows={lines}
          rowId={({ phase, host, port, outcome, reason }) =>
            JSON.stringify([phase, host, port, outcome, reason])
          }
        />
      )}
    </Foldout>
  );
}

const NAMED = 5;

const Names = ({ title, names }: { title: string; names: readonly string[] }) =>
  names.length === 0 ? null : (
    <div>
      <dt>
        {title} ({integer(names.length)})
      </dt>
      <dd>
        {names.slice(0, NAMED).map((name) => (
          <code key={name}>{plain(name)}</code>
        ))}
        {names.length > NAMED ? `and ${names.length - NAMED} more, see “Patch and tests”` : ''}
      </dd>
    </div>
  );

/** Why it failed, before anything else. */
function WhySection({ why }: { why: Why }) {
  return (
    <Scrolled className="why" label="Why">
      <p>
        <strong>{plain(why.says)}</strong>
        {why.next ? (
          <>
            {' '}
            <code>swebatch {plain(why.next.command)}</code> {why.next.does}.
          </>
        ) : null}
      </p>
      <dl>
        <Names title="Should pass now and does not" names={why.notPassed} />
        <Names title="Passed before and is broken" names={why.broken} />
        {why.firstError ? (
          <div>
            <dt>First error</dt>
            <dd>
              <code>{plain(why.firstError.slice(0, 2000))}</code>
            </dd>
          </div>
        ) : null}
        <Names
          title="The patch touches"
          names={why.touched.map(({ file, added, removed }) => `${file} +${added} −${removed}`)}
        />
      </dl>
      {why.logEnd.length > 0 ? (
        <Foldout title="the end of the test output">
          {() => <Output text={why.logEnd.join('\n')} label="the test output" />}
        </Foldout>
      ) : null}
    </Scrolled>
  );
}

function factsOf({ attempt, evaluations, outline }: AttemptDocument): Fact[] {
  const { money, elapsedMs, workingMs } = attempt;
  const verdict = evaluations.find((evaluation) => evaluation.current);
  const isRunning = attempt.state === 'running';
  const failed = money.failedCalls > 0 ? `, ${integer(money.failedCalls)} failed` : '';
  const working = workingMs === null ? '' : ` (working ${duration(workingMs)})`;
  const hasContainer = attempt.transport !== null || attempt.history !== null;
  return [
    ['Steps', isRunning ? outline.filter((row) => row.role === 'assistant').length : attempt.steps],
    [
      'Reward',
      verdict?.reward === undefined ? null : reward(verdict.reward),
      plain(rewardNames(verdict?.rewards)),
    ],
    ['Cost', cost(money)],
    [
      'Tokens',
      tokensText(money),
      `input ${money.inputTokens}, cache read ${money.cacheReadTokens}, cache write ${money.cacheWriteTokens}, output ${money.outputTokens}, of it reasoning ${money.reasoningTokens}`,
    ],
    ['Calls', integer(money.calls) + failed],
    [
      'Time',
      elapsedMs === null ? null : duration(elapsedMs) + working,
      'working: without pulls, rate waits and back-off',
    ],
    ['Started', elapsedMs === null ? null : time(attempt.startedAt)],
    ['Patch', `${words(attempt.patchSource ?? '–')}, ${words(attempt.patchState ?? '–')}`],
    [
      'Container',
      hasContainer ? `${plain(attempt.transport ?? '–')}, history ${attempt.history ?? '–'}` : null,
    ],
    ['Engine', attempt.engines ? plain(staysText(attempt.engines)) : null],
  ];
}

interface ListProps {
  title: string;
  items: readonly (readonly [text: string, evidence?: string])[];
}

const List = ({ title, items }: ListProps) => (
  <>
    {items.length > 0 ? <h2>{title}</h2> : null}
    <ul>
      {items.map(([text, evidence], i) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the list of an ended attempt does not change
        <li key={i}>
          {plain(text)}
          {evidence === undefined ? null : <code>{plain(evidence.slice(0, 500))}</code>}
        </li>
      ))}
    </ul>
  </>
);

function Task({ doc: { instance, attempt } }: { doc: AttemptDocument }) {
  return (
    <Scrolled className="scroll pad" label="Task">
      <h2>Problem</h2>
      <pre className="output">{plain(instance.problem)}</pre>
      <h2>Tests</h2>
      <p>
        {instance.failToPass.length} must pass after the patch, {instance.passToPass} must still pass.
      </p>
      <ul>
        {instance.failToPass.map((test) => (
          <li key={test}>
            <code>{plain(test)}</code>
          </li>
        ))}
      </ul>
      <h2>Image</h2>
      <code>{plain(attempt.imageDigest ?? instance.image)}</code>
      <List
        title="Flags"
        items={attempt.flags.map(({ rule, step, evidence }) => [
          `${rule} ${step === null ? '' : `at step ${step}`}: `,
          evidence,
        ])}
      />
      <List title="Notes" items={attempt.notes.map((note) => [note])} />
    </Scrolled>
  );
}

/** Back to the list, as it was left. */
const listHref = (run: string, list: string): string =>
  href(['run', run, 'instances'], Object.fromEntries(new URLSearchParams(list)));

function Neighbours({ doc }: { doc: AttemptDocument }) {
  const { query } = useRoute();
  const list = query.get('list') ?? '';
  const tab = query.get('tab') ?? undefined;
  const { data, total } = useTrials(doc.run.id, list !== '');
  const rows = useMemo(
    () => rowsOfList(data ?? [], new URLSearchParams(list)).filter((row) => row.attempt !== null),
    [data, list],
  );
  const at = rows.findIndex((row) => row.trial === doc.trial.id);
  const link = (to: number, text: string, key: string, mark: object) => {
    const row = at < 0 ? undefined : rows[to];
    if (!row) return <span className="quiet">{text}</span>;
    return (
      <a
        {...mark}
        href={href(['attempt', row.attempt!], { list, tab })}
        title={`${plain(row.instance_id)} (key ${key})`}
      >
        {text}
      </a>
    );
  };
  return (
    <nav className="neighbours" aria-label="Neighbours in the list">
      <a className="up" href={listHref(doc.run.name, list)}>
        <span aria-hidden="true">‹ </span>
        {list === '' ? 'Instances' : 'The filtered list'}
      </a>
      <span className="spacer" />
      {link(at - 1, '← previous', '[', { 'data-previous': '' })}
      <span className="quiet">
        {at < 0 ? '–' : integer(at + 1)} of {integer(list === '' ? total : rows.length)}
      </span>
      {link(at + 1, 'next →', ']', { 'data-next': '' })}
    </nav>
  );
}

function RawPanel({ doc }: { doc: AttemptDocument }) {
  const [chunk, setChunk] = useState(0);
  const [problem, setProblem] = useState('');
  const entry = useDocument<RawChunk>(
    `attempts/${doc.attempt.id}/raw/${chunk}`,
    doc.attempt.state === 'running',
  );
  const all = async () => {
    const messages: unknown[] = [];
    for (let i = 0; i < doc.chunks; i += 1) {
      const part = await readDocument<RawChunk>(`attempts/${doc.attempt.id}/raw/${i}`);
      messages.push(...part.messages.map((message) => parsed(message.data)));
    }
    save(`${doc.instance.instanceId}.messages.json`, 'application/json', JSON.stringify(messages, null, 2));
  };
  if (mode === 'single')
    return <p className="pad quiet">Raw messages are left out of a single file; swebatch view has them.</p>;
  return (
    <Scrolled className="scroll pad" label="Raw messages">
      <div className="bar">
        <button type="button" disabled={chunk === 0} onClick={() => setChunk(chunk - 1)}>
          earlier
        </button>
        <span role="status">
          part {chunk + 1} of {Math.max(1, doc.chunks)}
        </span>
        <button type="button" disabled={chunk + 1 >= doc.chunks} onClick={() => setChunk(chunk + 1)}>
          later
        </button>
        <button type="button" onClick={() => void all().catch((error: unknown) => setProblem(String(error)))}>
          save all
        </button>
        <span role="alert">{problem}</span>
      </div>
      {entry.data ? (
        entry.data.messages.map((message) => (
          <details key={message.seq} open={entry.data!.messages.length < 5}>
            <summary>
              {message.seq} {plain(message.data.slice(0, 100))}
            </summary>
            <pre className="output">{plain(JSON.stringify(parsed(message.data), null, 2))}</pre>
          </details>
        ))
      ) : (
        <Waiting entry={entry} />
      )}
    </Scrolled>
  );
}
