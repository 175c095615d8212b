/** The conversation of an attempt. Only messages in sight are fetched and drawn, so that thousands of them stay smooth. */
import { useVirtualizer, type Virtualizer } from '@tanstack/react-virtual';
import { type KeyboardEvent, type UIEvent, useEffect, useLayoutEffect, useRef, useState } from 'react';
import {
  type AttemptDocument,
  MESSAGES_PER_CHUNK,
  type MessageChunk,
  type OutlineRow,
} from '../../documents/documents.ts';
import { useDocument } from '../data/source.ts';
import { setQuery, useRoute } from '../route.ts';
import { plain } from '../text/foreignText.ts';
import { duration, integer, nano, short } from '../text/numbers.ts';
import { Conversation } from './Conversation.tsx';
import { Threads } from './Threads.tsx';

const estimate = (row: OutlineRow): number => 70 + Math.min(620, Math.ceil(row.chars / 90) * 18);
const isFailure = (row: OutlineRow): boolean => row.timedOut || (row.exitCode !== null && row.exitCode !== 0);

interface TrajectoryProps {
  readonly doc: AttemptDocument;
  readonly step?: number | undefined;
  readonly linked?: boolean;
}

/** Of a program, one conversation at a time: the one that the step of the address is in, else its own. */
export function Trajectory(props: TrajectoryProps) {
  const { doc } = props;
  const [chosen, choose] = useState<string | null>(null);
  const { query } = useRoute();
  if (doc.threads.length < 2) return <OneThread key="only" {...props} />;
  const wanted = props.step ?? Number(query.get('step') ?? Number.NaN);
  const found = doc.outline.find((row) => row.step === wanted && row.role === 'assistant')?.thread;
  const name = chosen ?? found ?? doc.threads[0]!.name;
  const outline = doc.outline.filter((row) => row.thread === name);
  return (
    <>
      <Threads threads={doc.threads} current={name} choose={choose} />
      <OneThread key={name} {...props} doc={{ ...doc, outline }} />
    </>
  );
}

function OneThread(props: TrajectoryProps) {
  const { doc } = props;
  const { outline } = doc;
  const follows = doc.attempt.state === 'running';
  const scroller = useRef<HTMLDivElement>(null);
  const virtualizer = useVirtualizer({
    count: outline.length,
    getScrollElement: () => scroller.current,
    estimateSize: (i) => estimate(outline[i]!),
    getItemKey: (i) => outline[i]!.seq,
    overscan: 4,
  });
  const { active, show, unpin, onScroll } = usePlace(props, virtualizer);
  const seek = (by: number) => {
    for (let i = active + by; i >= 0 && i < outline.length; i += by)
      if (isFailure(outline[i]!)) return show(i);
  };
  return (
    <div className="trajectory">
      <Bar outline={outline} show={show} seek={seek} />
      <div
        ref={scroller}
        className="messages"
        role="feed"
        aria-label="Trajectory"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolled region must be reachable by keyboard
        tabIndex={0}
        data-keys=""
        onKeyDown={(event) => onKey(event, { active, last: outline.length - 1, show, seek })}
        onWheel={unpin}
        onPointerDown={unpin}
        onTouchMove={unpin}
        onScroll={onScroll}
      >
        <div className="rows" style={{ height: virtualizer.getTotalSize() }}>
          {virtualizer.getVirtualItems().map((item) => (
            <div
              key={item.key}
              ref={virtualizer.measureElement}
              data-index={item.index}
              className="placed"
              style={{ transform: `translateY(${item.start}px)` }}
            >
              <MessageItem
                row={outline[item.index]!}
                attempt={doc.attempt.id}
                live={follows}
                active={item.index === active}
                count={outline.length}
                index={item.index}
              />
            </div>
          ))}
        </div>
      </div>
    </div>
  );
}

/** Which message is active, and what keeps it in sight. */
function usePlace(
  { doc, step, linked = true }: TrajectoryProps,
  virtualizer: Virtualizer<HTMLDivElement, Element>,
) {
  const { outline } = doc;
  const { query } = useRoute();
  const [active, setActive] = useState(0);
  const pinned = useRef<number | undefined>(undefined);
  const atEnd = useRef(false);
  const wanted = step ?? (linked && query.has('step') ? Number(query.get('step')) : undefined);
  // biome-ignore lint/correctness/useExhaustiveDependencies: only another step moves the view, not every new message
  useEffect(() => {
    if (wanted === undefined) return;
    const index = outline.findIndex((row) => row.step === wanted && row.role === 'assistant');
    if (index < 0) return;
    setActive(index);
    pinned.current = index;
    virtualizer.scrollToIndex(index, { align: 'start' });
  }, [wanted, doc.attempt.id]);
  // Messages arrive after the jump and change heights above it: the target stays put until the reader scrolls.
  const height = virtualizer.getTotalSize();
  // biome-ignore lint/correctness/useExhaustiveDependencies: a change of height is what moves the target
  useLayoutEffect(() => {
    if (pinned.current !== undefined) virtualizer.scrollToIndex(pinned.current, { align: 'start' });
  }, [height]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: runs when a message was added
  useEffect(() => {
    if (doc.attempt.state !== 'running' || !atEnd.current) return;
    pinned.current = undefined;
    virtualizer.scrollToIndex(outline.length - 1, { align: 'end' });
  }, [outline.length]);
  const show = (index: number) => {
    const next = Math.max(0, Math.min(outline.length - 1, index));
    setActive(next);
    pinned.current = next;
    virtualizer.scrollToIndex(next, { align: 'start' });
    const at = outline[next]?.step;
    if (linked && at !== null && at !== undefined) setQuery({ step: String(at) });
  };
  const unpin = () => {
    pinned.current = undefined;
  };
  const onScroll = ({ currentTarget: box }: UIEvent<HTMLDivElement>) => {
    atEnd.current = box.scrollTop + box.clientHeight > box.scrollHeight - 80;
  };
  return { active, show, unpin, onScroll };
}

interface Moves {
  readonly active: number;
  readonly last: number;
  readonly show: (index: number) => void;
  readonly seek: (by: number) => void;
}

function onKey(event: KeyboardEvent, { active, last, show, seek }: Moves): void {
  if (event.metaKey || event.ctrlKey || event.altKey) return;
  if (event.key === 'j' || event.key === 'ArrowDown') show(active + 1);
  else if (event.key === 'k' || event.key === 'ArrowUp') show(active - 1);
  else if (event.key === 'n') seek(1);
  else if (event.key === 'p') seek(-1);
  else if (event.key === 'Home') show(0);
  else if (event.key === 'End') show(last);
  else return;
  event.preventDefault();
}

function Bar({ outline, show, seek }: Pick<Moves, 'show' | 'seek'> & { outline: readonly OutlineRow[] }) {
  const failures = outline.filter(isFailure).length;
  return (
    <div className="bar">
      <span className="quiet">
        {integer(outline.length)} messages, {failures} failed commands
      </span>
      <button type="button" disabled={failures === 0} onClick={() => seek(-1)}>
        previous failure
      </button>
      <button type="button" disabled={failures === 0} onClick={() => seek(1)}>
        next failure
      </button>
      <label>
        step{' '}
        <input
          type="number"
          min={1}
          aria-label="go to step"
          onChange={(event) => {
            const at = Number(event.target.value);
            const index = outline.findIndex((row) => row.step === at && row.role === 'assistant');
            if (index >= 0) show(index);
          }}
        />
      </label>
    </div>
  );
}

const ROLES = new Map([
  ['system', 'System'],
  ['user', 'Observation'],
  ['tool', 'Observation'],
  ['assistant', 'Agent'],
  ['exit', 'End'],
]);

function MessageItem({
  row,
  attempt,
  live,
  active,
  index,
  count,
}: {
  row: OutlineRow;
  attempt: number;
  live: boolean;
  active: boolean;
  index: number;
  count: number;
}) {
  const chunk = Math.floor(row.seq / MESSAGES_PER_CHUNK);
  const { data, error } = useDocument<MessageChunk>(`attempts/${attempt}/messages/${chunk}`, live);
  const message = data?.messages.find((one) => one.seq === row.seq);
  const role = row.role === 'user' && row.step === null ? 'Task' : (ROLES.get(row.role) ?? plain(row.role));
  return (
    <article
      className={`message ${ROLES.has(row.role) ? row.role : 'other'}${active ? ' active' : ''}`}
      aria-posinset={index + 1}
      aria-setsize={count}
      aria-label={`${role}${row.step === null ? '' : `, step ${row.step}`}`}
    >
      <header>
        <strong>{role}</strong>
        {row.step !== null ? <span>step {row.step}</span> : null}
        <Facts row={row} />
        <time className="quiet">{row.at.slice(11, 19)}</time>
      </header>
      {message ? (
        <Conversation message={message} />
      ) : (
        <p className="quiet">{error ? plain(error.message) : 'loading …'}</p>
      )}
    </article>
  );
}

function Facts({ row }: { row: OutlineRow }) {
  const { call } = row;
  return (
    <>
      {call ? (
        <>
          <span title="time of the model’s answer">{duration(call.latency_ms)}</span>
          <span title="tokens in (of them cached) → out">
            {short((call.input_tokens ?? 0) + (call.cache_read_tokens ?? 0) + (call.cache_write_tokens ?? 0))}{' '}
            ({short(call.cache_read_tokens)}) → {short(call.output_tokens)}
          </span>
          <span>{nano(call.cost_nano)}</span>
          {row.tries > 1 ? <span className="badge warn">{row.tries} tries</span> : null}
          {call.finish_reason && call.finish_reason !== 'stop' && call.finish_reason !== 'tool_calls' ? (
            <span className="badge note">{plain(call.finish_reason)}</span>
          ) : null}
        </>
      ) : null}
      {row.execMs !== null ? <span title="time of the commands">{duration(row.execMs)}</span> : null}
      {row.timedOut ? <span className="badge bad">timed out</span> : null}
      {row.exitCode !== null && row.exitCode !== 0 && !row.timedOut ? (
        <span className="badge bad">exit {row.exitCode}</span>
      ) : null}
    </>
  );
}
