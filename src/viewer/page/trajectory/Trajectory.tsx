/** The conversation of an attempt. Only messages in sight are fetched and drawn, so that thousands of them stay smooth. */
import { useVirtualizer, type Virtualizer } from '@tanstack/react-virtual';
import {
  type KeyboardEvent,
  type RefObject,
  type UIEvent,
  useEffect,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
} from 'react';
import type { AttemptDocument, OutlineRow, ThreadDocument } from '../../documents/documents.ts';
import { setQuery, useRoute } from '../route.ts';
import { plain } from '../text/foreignText.ts';
import { cost, integer } from '../text/numbers.ts';
import { isFailure } from './isFailure.ts';
import { isFolded, MessageItem } from './MessageItem.tsx';
import { ReadingBar } from './ReadingBar.tsx';
import { StepOutline } from './StepOutline.tsx';
import { type Found, markMatches, useSearch } from './trajectorySearch.ts';

const estimate = (row: OutlineRow): number =>
  isFolded(row) ? 76 : 70 + Math.min(620, Math.ceil(row.chars / 90) * 18);

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

/** The next row in this direction that is looked for: a match while something is searched, else a failed command. */
function nextOf(
  outline: readonly OutlineRow[],
  hits: Found['hits'],
  from: number,
  by: number,
): number | undefined {
  const isWanted = hits.size > 0 ? (row: OutlineRow) => hits.has(row.seq) : isFailure;
  for (let i = from + by; i >= 0 && i < outline.length; i += by) if (isWanted(outline[i]!)) return i;
  return undefined;
}

function OneThread(props: TrajectoryProps) {
  const { doc, linked = true } = props;
  const { outline } = doc;
  const scroller = useRef<HTMLDivElement>(null);
  const [asked, ask] = useState('');
  const { hits, isReading } = useSearch(doc, asked);
  const virtualizer = useVirtualizer({
    count: outline.length,
    getScrollElement: () => scroller.current,
    estimateSize: (i) => estimate(outline[i]!),
    getItemKey: (i) => outline[i]!.seq,
    overscan: 4,
  });
  const { active, show, unpin, onScroll, follows, follow } = usePlace(props, virtualizer);
  useMarks(scroller, asked, virtualizer);
  const seek = (by: number) => {
    const next = nextOf(outline, hits, active, by);
    if (next !== undefined) show(next);
  };
  return (
    <div className="trajectory">
      <ReadingBar
        outline={outline}
        search={{ asked, ask, hits, isReading }}
        tail={doc.attempt.state === 'running' ? { follows, follow } : undefined}
        show={show}
        seek={seek}
      />
      <div className="reading">
        {linked ? <StepOutline outline={outline} active={active} hits={hits} show={show} /> : null}
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
          <Rows doc={doc} virtualizer={virtualizer} active={active} asked={asked} linked={linked} />
        </div>
        <ScrollMarks
          outline={outline}
          hits={hits}
          startOf={(index) => virtualizer.measurementsCache[index]?.start ?? 0}
          height={virtualizer.getTotalSize()}
          show={show}
        />
      </div>
    </div>
  );
}

type Rows = Virtualizer<HTMLDivElement, Element>;

function Rows({
  doc,
  virtualizer,
  active,
  asked,
  linked,
}: {
  doc: AttemptDocument;
  virtualizer: Rows;
  active: number;
  asked: string;
  linked: boolean;
}) {
  const { outline } = doc;
  return (
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
            live={doc.attempt.state === 'running'}
            active={item.index === active}
            count={outline.length}
            index={item.index}
            asked={asked}
            linked={linked}
          />
        </div>
      ))}
    </div>
  );
}

/** Messages come and go while somebody scrolls: their matches are marked whenever what is in sight has changed. */
function useMarks(scroller: RefObject<HTMLDivElement | null>, asked: string, virtualizer: Rows): void {
  const items = virtualizer.getVirtualItems();
  const inSight = useMemo(() => items.map((item) => `${item.key}:${item.size}`).join(), [items]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: what is in sight is what is marked
  useEffect(() => {
    const frame = requestAnimationFrame(() => markMatches(scroller.current, asked));
    return () => cancelAnimationFrame(frame);
  }, [asked, inSight]);
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

/** So many places are told apart on a screen. */
const PLACES = 240;

interface Mark {
  readonly place: number;
  readonly index: number;
  readonly isHit: boolean;
}

function ScrollMarks({
  outline,
  hits,
  startOf,
  height,
  show,
}: {
  outline: readonly OutlineRow[];
  hits: ReadonlyMap<number, number>;
  startOf: (index: number) => number;
  height: number;
  show: (index: number) => void;
}) {
  const marks = useMemo(() => {
    const found = new Map<number, Mark>();
    for (const [index, row] of outline.entries()) {
      const isHit = hits.has(row.seq);
      if (!isHit && !isFailure(row)) continue;
      const place = Math.floor((startOf(index) / Math.max(1, height)) * PLACES);
      if (isHit || !found.has(place)) found.set(place, { place, index, isHit });
    }
    return [...found.values()];
  }, [outline, hits, startOf, height]);
  return (
    <div className="marks noprint" aria-hidden="true">
      {marks.map(({ place, index, isHit }) => (
        <button
          key={place}
          type="button"
          tabIndex={-1}
          className={isHit ? 'mark hit' : 'mark'}
          style={{ top: `${(place / PLACES) * 100}%` }}
          onClick={() => show(index)}
        />
      ))}
    </div>
  );
}

const counted = (n: number, what: string): string => `${integer(n)} ${what}${n === 1 ? '' : 's'}`;

function Threads({
  threads,
  current,
  choose,
}: {
  threads: readonly ThreadDocument[];
  current: string;
  choose: (name: string) => void;
}) {
  return (
    <div className="bar">
      <label>
        conversation{' '}
        <select value={current} onChange={(event) => choose(event.target.value)}>
          {threads.map(({ name, label, calls, messages, ...money }) => (
            <option key={name} value={name} disabled={messages === 0}>
              {plain(name)}
              {label?.startsWith('subagent') ? ' (sub-agent)' : ''}: {counted(messages, 'message')},{' '}
              {counted(calls, 'call')}, {cost(money)}
            </option>
          ))}
        </select>
      </label>
    </div>
  );
}

interface TrajectoryProps {
  readonly doc: AttemptDocument;
  readonly step?: number | undefined;
  readonly linked?: boolean;
}

function usePlace(
  { doc, step, linked = true }: TrajectoryProps,
  virtualizer: Virtualizer<HTMLDivElement, Element>,
) {
  const { outline } = doc;
  const { query } = useRoute();
  const [active, setActive] = useState(0);
  const pinned = useRef<number | undefined>(undefined);
  const wanted = step ?? (linked && query.has('step') ? Number(query.get('step')) : undefined);
  // A trajectory that is being written is followed, unless the address names a place in it.
  const [follows, follow] = useState(doc.attempt.state === 'running' && wanted === undefined && linked);
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
    else if (follows) virtualizer.scrollToIndex(outline.length - 1, { align: 'end' });
  }, [height, follows]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: runs when a message was added
  useEffect(() => {
    if (doc.attempt.state !== 'running' || !follows) return;
    pinned.current = undefined;
    virtualizer.scrollToIndex(outline.length - 1, { align: 'end' });
  }, [outline.length, follows]);
  const show = (index: number) => {
    const next = Math.max(0, Math.min(outline.length - 1, index));
    setActive(next);
    pinned.current = next;
    follow(doc.attempt.state === 'running' && next === outline.length - 1);
    virtualizer.scrollToIndex(next, { align: 'start' });
    const at = outline[next]?.step;
    if (linked && at !== null && at !== undefined) setQuery({ step: String(at) });
  };
  const unpin = () => {
    pinned.current = undefined;
  };
  const onScroll = ({ currentTarget: box }: UIEvent<HTMLDivElement>) => {
    if (doc.attempt.state !== 'running' || pinned.current !== undefined) return;
    follow(box.scrollTop + box.clientHeight > box.scrollHeight - 80);
  };
  return { active, show, unpin, onScroll, follows, follow };
}
