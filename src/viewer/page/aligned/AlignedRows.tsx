/** The aligned steps as rows of two cells; a row opens to what was said and seen there. */
import { useState } from 'react';
import { MESSAGES_PER_CHUNK, type MessageChunk } from '../../documents/documents.ts';
import type { AlignedAttempts } from '../../steps/alignedAttempts.ts';
import type { StepLine } from '../../steps/stepLines.ts';
import { useDocument } from '../data/source.ts';
import { href } from '../route.ts';
import { plain } from '../text/foreignText.ts';
import { duration, nano } from '../text/numbers.ts';
import { Conversation } from '../trajectory/Conversation.tsx';

const TELLING = new Set(['edit', 'test', 'submit']);

interface RowsProps {
  readonly aligned: AlignedAttempts;
  readonly left: number;
  readonly right: number;
  readonly onlyTelling: boolean;
}

export function AlignedRows({ aligned, left, right, onlyTelling }: RowsProps) {
  const [open, setOpen] = useState<ReadonlySet<number>>(new Set());
  const { a, b, rows, partsAt } = aligned;
  const toggle = (at: number) => {
    const next = new Set(open);
    if (!next.delete(at)) next.add(at);
    setOpen(next);
  };
  return (
    <ol className="alignedrows">
      {rows.map((row, at) => {
        const [one, other] = [row.a === null ? undefined : a[row.a]!, row.b === null ? undefined : b[row.b]!];
        const kind = (one ?? other)?.row.does?.kind ?? 'talk';
        if (onlyTelling && row.how !== 'alone' && !TELLING.has(kind)) return null;
        return (
          // biome-ignore lint/suspicious/noArrayIndexKey: rows of two ended trajectories
          <li key={at} id={`row-${at}`} className={`alignedrow ${row.how}${at === partsAt ? ' parts' : ''}`}>
            {at === partsAt ? <p className="parting">they part here</p> : null}
            <button type="button" className="two" aria-expanded={open.has(at)} onClick={() => toggle(at)}>
              <Cell side="A" line={one} />
              <Cell side="B" line={other} />
            </button>
            {open.has(at) ? (
              <div className="two">
                <Body line={one} attempt={left} />
                <Body line={other} attempt={right} />
              </div>
            ) : null}
          </li>
        );
      })}
    </ol>
  );
}

function Cell({ side, line }: { side: 'A' | 'B'; line: StepLine | undefined }) {
  if (!line) return <span className="empty" />;
  const { kind, command } = line.row.does ?? { kind: 'talk', command: '' };
  const failed = line.timedOut || (line.exitCode !== null && line.exitCode !== 0);
  return (
    <span className="alignedcell">
      <span className="number">
        <span className="sidename">{side} </span>
        {line.row.step}
      </span>
      <span className={`kind ${kind}`}>{kind}</span>
      <code>{command === '' ? 'says' : plain(command.split('\n', 1)[0]!.slice(0, 200))}</code>
      <span className="quiet facts">
        {failed ? (
          <span className="bad">{line.timedOut ? 'timed out' : `exit ${line.exitCode}`} </span>
        ) : null}
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
