/** Two trajectories of one instance, their steps laid beside each other by what they do. */

import { useMemo, useState } from 'preact/compat';
import type { AttemptDocument, EvaluationDocument, MessageChunk } from '../../documents/attemptDocuments.ts';
import { MESSAGES_PER_CHUNK } from '../../documents/documents.ts';
import type { HistoryRow } from '../../documents/trialDocuments.ts';
import { alignAttempts, failureOf, rowOfSide, type StepLine, sideName } from '../../steps/alignedAttempts.ts';
import { useDocument } from '../data/source.ts';
import { Badge, Foldout, Nothing, PlainTable, Scrolled, Up, Waiting } from '../parts.tsx';
import { go, href } from '../route.ts';
import { Diff } from '../text/Diff.tsx';
import { plain } from '../text/foreignText.ts';
import { cost, duration, integer, nano } from '../text/numbers.ts';
import { Conversation } from '../trajectory/Message.tsx';
import { PatchOf } from '../trajectory/PatchPanel.tsx';

export function AlignedPage({ a, b, instance }: { a: string; b: string; instance: string }) {
  const entry = useDocument<HistoryRow[]>(`history/${instance}`);
  const rows = entry.data ?? [];
  const [left, right] = [rowOfSide(a, rows), rowOfSide(b, rows)];
  const docA = useDocument<AttemptDocument>(left ? `attempts/${left.attempt}` : undefined);
  const docB = useDocument<AttemptDocument>(right ? `attempts/${right.attempt}` : undefined);
  if (!entry.data) return <Waiting entry={entry} />;
  if (!left || !right)
    return (
      <Nothing title={`There are not two attempts at ${plain(instance)} to compare`}>
        <p>
          {plain(left ? b : a)} has no attempt at it. These have:{' '}
          {plain(
            rows
              .filter((row) => row.attempt !== null)
              .map((row) => sideName(row, rows))
              .join(', '),
          )}
        </p>
      </Nothing>
    );
  if (!docA.data || !docB.data) return <Waiting entry={docA.data ? docB : docA} />;
  return (
    <article className="page scroll aligned">
      <Up to={href(['compare'], { s: `${left.runId}:${left.arm}|${right.runId}:${right.arm}` })}>Compare</Up>
      <h1>{plain(instance)}</h1>
      <div className="two">
        <SideHead
          name="A"
          row={left}
          rows={rows}
          choose={(next) => go(href(['compare', next, b, instance]))}
        />
        <SideHead
          name="B"
          row={right}
          rows={rows}
          choose={(next) => go(href(['compare', a, next, instance]))}
        />
      </div>
      <Steps left={docA.data} right={docB.data} />
      <h2>Patches</h2>
      <div className="two">
        <PatchOf doc={docA.data} label="patch of A" />
        <PatchOf doc={docB.data} label="patch of B" />
      </div>
      <Foldout title="gold patch">
        {() => <Diff text={docA.data!.instance.goldPatch} label="gold patch" />}
      </Foldout>
      <TestsBeside left={docA.data} right={docB.data} />
    </article>
  );
}

interface SideProps {
  name: string;
  row: HistoryRow;
  rows: readonly HistoryRow[];
  choose: (side: string) => void;
}

function SideHead({ name, row, rows, choose }: SideProps) {
  return (
    <section className="sidehead" aria-label={name}>
      <label>
        <strong>{name}</strong>{' '}
        <select value={sideName(row, rows)} onChange={(event) => choose(event.currentTarget.value)}>
          {rows
            .filter((one) => one.attempt !== null)
            .map((one) => (
              <option key={one.trial} value={sideName(one, rows)}>
                {plain(sideName(one, rows))}
              </option>
            ))}
        </select>
      </label>{' '}
      <Badge word={row.verdict} /> <span className="quiet">{plain(row.model)}</span>
      <p className="sidefacts">
        {integer(row.steps)} steps · {cost(row.money)}
        {row.elapsed_ms === null ? '' : ` · ${duration(row.elapsed_ms)}`} ·{' '}
        <a href={href(['attempt', row.attempt!])}>the whole trajectory</a>
      </p>
    </section>
  );
}

const TELLING = new Set(['edit', 'test', 'submit']);

function Steps({ left, right }: { left: AttemptDocument; right: AttemptDocument }) {
  const { rows, partsAt, editsPartAt } = useMemo(() => alignAttempts(left, right), [left, right]);
  const [onlyTelling, hide] = useState(false);
  const [open, setOpen] = useState<ReadonlySet<number>>(new Set());
  const toggle = (at: number) => {
    const next = new Set(open);
    if (!next.delete(at)) next.add(at);
    setOpen(next);
  };
  const same = rows.filter((row) => row.how === 'same').length;
  const alike = rows.filter((row) => row.how === 'alike').length;
  const jump = (row: number, name: string) => (
    <button
      type="button"
      onClick={() => document.getElementById(`row-${row}`)?.scrollIntoView({ block: 'center' })}
    >
      {name}
    </button>
  );
  return (
    <section aria-labelledby="steps-title">
      <h2 id="steps-title">Steps</h2>
      <div className="bar">
        <span>
          {integer(same)} the same, {integer(alike)} alike, {integer(rows.length - same - alike)} on one side
          only
        </span>
        {partsAt === null ? <span className="quiet">they never part</span> : jump(partsAt, 'where they part')}
        {editsPartAt === null ? null : jump(editsPartAt, 'first different edit')}
        <label>
          <input
            type="checkbox"
            checked={onlyTelling}
            onChange={(event) => hide(event.currentTarget.checked)}
          />{' '}
          only edits, tests and what one side did alone
        </label>
      </div>
      <ol className="alignedrows">
        {rows.map((row, at) => {
          const { kind } = (row.a ?? row.b)!.does;
          if (onlyTelling && row.how !== 'alone' && !TELLING.has(kind)) return null;
          return (
            <li
              // biome-ignore lint/suspicious/noArrayIndexKey: rows of two ended trajectories
              key={at}
              id={`row-${at}`}
              className={`alignedrow ${row.how}${at === partsAt ? ' parts' : ''}`}
            >
              {at === partsAt ? <p className="parting">they part here</p> : null}
              <button type="button" className="two" aria-expanded={open.has(at)} onClick={() => toggle(at)}>
                <Cell side="A" line={row.a} />
                <Cell side="B" line={row.b} />
              </button>
              {open.has(at) ? (
                <div className="two">
                  <Body line={row.a} attempt={left.attempt.id} />
                  <Body line={row.b} attempt={right.attempt.id} />
                </div>
              ) : null}
            </li>
          );
        })}
      </ol>
    </section>
  );
}

function Cell({ side, line }: { side: 'A' | 'B'; line: StepLine | undefined }) {
  if (!line) return <span className="empty" />;
  const { kind, command } = line.does;
  const failure = failureOf(line);
  return (
    <span className="alignedcell">
      <span className="number">
        <span className="sidename">{side} </span>
        {line.row.step}
      </span>
      <span className={`kind ${kind}`}>{kind}</span>
      <code>{command === '' ? 'says' : plain(command.split('\n', 1)[0]!.slice(0, 200))}</code>
      <span className="quiet facts">
        {failure ? <span className="bad">{failure} </span> : null}
        {line.ms === null ? '' : `${duration(line.ms)} `}
        {line.row.call?.cost_nano ? nano(line.row.call.cost_nano) : ''}
      </span>
    </span>
  );
}

/** The answer and the observation after it. */
function Body({ line, attempt }: { line: StepLine | undefined; attempt: number }) {
  const first = line?.row.seq ?? 0;
  const path = (seq: number) =>
    line ? `attempts/${attempt}/messages/${Math.floor(seq / MESSAGES_PER_CHUNK)}` : undefined;
  const answer = useDocument<MessageChunk>(path(first), false);
  const after = useDocument<MessageChunk>(path(first + 1), false);
  if (!line) return <div />;
  const messages = [
    answer.data?.messages.find((one) => one.seq === first),
    after.data?.messages.find((one) => one.seq === first + 1),
  ];
  return (
    <div className="alignedbody">
      {messages.map((message) =>
        message && (message.seq === first || message.role !== 'assistant') ? (
          <Conversation key={message.seq} message={message} />
        ) : null,
      )}
      <a href={href(['attempt', attempt], { step: line.row.step ?? undefined })}>
        step {line.row.step} in its trajectory
      </a>
    </div>
  );
}

function useVerdict(doc: AttemptDocument): EvaluationDocument | undefined {
  const current = doc.evaluations.findLast((evaluation) => evaluation.current);
  return useDocument<EvaluationDocument>(current ? `evaluations/${current.id}` : undefined, false).data;
}

const MOST = 300;
const resultOf = (verdict: EvaluationDocument | undefined): ReadonlyMap<string, boolean> =>
  new Map(verdict?.tests.map((test) => [`${test.group} ${test.name}`, test.passed]));

function TestsBeside({ left, right }: { left: AttemptDocument; right: AttemptDocument }) {
  const [a, b] = [useVerdict(left), useVerdict(right)];
  if (!a && !b) return null;
  const [resultsA, resultsB] = [resultOf(a), resultOf(b)];
  const names = [...new Set([...resultsA.keys(), ...resultsB.keys()])];
  const failed = names.filter((name) => resultsA.get(name) === false || resultsB.get(name) === false);
  return (
    <section>
      <h2>Tests</h2>
      <p>
        A <Badge word={a?.outcome} /> B <Badge word={b?.outcome} />{' '}
        {names.length > 0
          ? `${integer(failed.length)} of ${integer(names.length)} counted tests failed on a side`
          : null}
      </p>
      {failed.length > 0 ? (
        <Scrolled className="wide" label="Tests that failed">
          <PlainTable
            columns={[
              { header: 'Test', cell: (name) => <code>{plain(name.slice(name.indexOf(' ') + 1))}</code> },
              { header: 'A', cell: (name) => said(resultsA.get(name)) },
              { header: 'B', cell: (name) => said(resultsB.get(name)) },
            ]}
            rows={failed.slice(0, MOST)}
            rowId={(name) => name}
          />
        </Scrolled>
      ) : null}
    </section>
  );
}

const said = (passed: boolean | undefined) =>
  passed === undefined ? (
    '–'
  ) : passed ? (
    <span className="passed">passed</span>
  ) : (
    <span className="bad">failed</span>
  );
