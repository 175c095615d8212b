/** The conversation of an attempt. Only messages in sight are fetched and drawn, so that thousands of them stay smooth. */
import { useVirtualizer, type Virtualizer } from '@tanstack/react-virtual';
import { type KeyboardEvent, type RefObject, useEffect, useMemo, useRef, useState } from 'react';
import type { AttemptDocument, OutlineRow } from '../../documents/documents.ts';
import { useRoute } from '../route.ts';
import { isFailure } from './isFailure.ts';
import { isFolded, MessageItem } from './MessageItem.tsx';
import { ReadingBar } from './ReadingBar.tsx';
import { ScrollMarks } from './ScrollMarks.tsx';
import { StepOutline } from './StepOutline.tsx';
import { Threads } from './Threads.tsx';
import { type Found, markMatches, useSearch } from './trajectorySearch.ts';
import { type TrajectoryProps, usePlace } from './usePlace.ts';

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
