/** Two trajectories of one instance, their steps laid beside each other by what they do. */
import { useMemo, useState } from 'react';
import type { AttemptDocument, HistoryRow } from '../../documents/documents.ts';
import { alignAttempts, rowOfSide, sideName } from '../../steps/alignedAttempts.ts';
import { AlignedRows } from '../aligned/AlignedRows.tsx';
import { TestsBeside } from '../aligned/TestsBeside.tsx';
import { useDocument } from '../data/source.ts';
import { Badge, Foldout, Nothing, Up, Waiting } from '../parts.tsx';
import { go, href } from '../route.ts';
import { Diff } from '../text/Diff.tsx';
import { plain } from '../text/foreignText.ts';
import { cost, duration, integer } from '../text/numbers.ts';

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
        <Diff text={docA.data.patch} label="patch of A" />
        <Diff text={docB.data.patch} label="patch of B" />
      </div>
      <Foldout title="gold patch">
        {() => <Diff text={docA.data!.instance.goldPatch} label="gold patch" />}
      </Foldout>
      <TestsBeside left={docA.data} right={docB.data} />
    </article>
  );
}

function SideHead({
  name,
  row,
  rows,
  choose,
}: {
  name: string;
  row: HistoryRow;
  rows: readonly HistoryRow[];
  choose: (side: string) => void;
}) {
  return (
    <section className="sidehead" aria-label={name}>
      <label>
        <strong>{name}</strong>{' '}
        <select value={sideName(row, rows)} onChange={(event) => choose(event.target.value)}>
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

function Steps({ left, right }: { left: AttemptDocument; right: AttemptDocument }) {
  const aligned = useMemo(() => alignAttempts(left, right), [left, right]);
  const [hidden, hide] = useState(false);
  const { rows, partsAt, editsPartAt } = aligned;
  const same = rows.filter((row) => row.how === 'same').length;
  const alike = rows.filter((row) => row.how === 'alike').length;
  const jump = (row: number) => document.getElementById(`row-${row}`)?.scrollIntoView({ block: 'center' });
  return (
    <section aria-labelledby="steps-title">
      <h2 id="steps-title">Steps</h2>
      <div className="bar">
        <span>
          {integer(same)} the same, {integer(alike)} alike, {integer(rows.length - same - alike)} on one side
          only
        </span>
        {partsAt === null ? (
          <span className="quiet">they never part</span>
        ) : (
          <button type="button" onClick={() => jump(partsAt)}>
            where they part
          </button>
        )}
        {editsPartAt === null ? null : (
          <button type="button" onClick={() => jump(editsPartAt)}>
            first different edit
          </button>
        )}
        <label>
          <input type="checkbox" checked={hidden} onChange={(event) => hide(event.target.checked)} /> only
          edits, tests and what one side did alone
        </label>
      </div>
      <AlignedRows aligned={aligned} left={left.attempt.id} right={right.attempt.id} onlyTelling={hidden} />
    </section>
  );
}
