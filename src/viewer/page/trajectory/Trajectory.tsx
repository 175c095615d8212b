/** The conversation of an attempt. Only messages in sight are fetched and drawn, so that thousands of them stay smooth. */
import {
  type KeyboardEvent,
  type RefObject,
  type UIEvent,
  useEffect,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
} from 'preact/compat';
import type {
  AttemptDocument,
  MessageChunk,
  MessageDocument,
  OutlineRow,
} from '../../documents/attemptDocuments.ts';
import { MESSAGES_PER_CHUNK } from '../../documents/documents.ts';
import { failureOf, type StepLine, stepLines } from '../../steps/alignedAttempts.ts';
import { readDocument } from '../data/source.ts';
import { setQuery, useRoute } from '../route.ts';
import { useVirtualRows, type VirtualRows } from '../tables/virtualRows.ts';
import { countIn, plain } from '../text/foreignText.ts';
import { cost, duration, integer, nano } from '../text/numbers.ts';
import { isFolded, MessageItem } from './Message.tsx';

interface TrajectoryProps {
  doc: AttemptDocument;
  step?: number | undefined;
  linked?: boolean;
}

const counted = (n: number, what: string): string => `${integer(n)} ${what}${n === 1 ? '' : 's'}`;

/** Of a program, one conversation at a time: the one that the step of the address is in, else its own. */
export function Trajectory(props: TrajectoryProps) {
  const { doc, step } = props;
  const [chosen, choose] = useState<string | null>(null);
  const { query } = useRoute();
  if (doc.threads.length < 2) return <OneThread key="only" {...props} />;
  const wanted = step ?? Number(query.get('step') ?? Number.NaN);
  const found = doc.outline.find((row) => row.step === wanted && row.role === 'assistant')?.thread;
  const current = chosen ?? found ?? doc.threads[0]!.name;
  const outline = doc.outline.filter((row) => row.thread === current);
  return (
    <>
      <div className="bar">
        <label>
          conversation{' '}
          <select value={current} onChange={(event) => choose(event.currentTarget.value)}>
            {doc.threads.map(({ name, label, calls, messages, ...money }) => (
              <option key={name} value={name} disabled={messages === 0}>
                {plain(name)}
                {label?.startsWith('subagent') ? ' (sub-agent)' : ''}: {counted(messages, 'message')},{' '}
                {counted(calls, 'call')}, {cost(money)}
              </option>
            ))}
          </select>
        </label>
      </div>
      <OneThread key={current} {...props} doc={{ ...doc, outline }} />
    </>
  );
}

const estimate = (row: OutlineRow): number =>
  isFolded(row) ? 76 : 70 + Math.min(620, Math.ceil(row.chars / 90) * 18);

function OneThread(props: TrajectoryProps) {
  const { doc, linked = true } = props;
  const { outline, attempt } = doc;
  const scroller = useRef<HTMLDivElement>(null);
  const [asked, ask] = useState('');
  const search = useSearch(doc, asked);
  const { hits } = search;
  const virtualizer = useVirtualRows({
    count: outline.length,
    getScrollElement: () => scroller.current,
    estimateSize: (i) => estimate(outline[i]!),
    getItemKey: (i) => outline[i]!.seq,
    overscan: 4,
  });
  const { active, show, unpin, onScroll, follows, follow } = usePlace(props, virtualizer);
  useMarks(scroller, asked, virtualizer);
  /** To the next row in this direction that is looked for: a match while something is searched, else a failed command. */
  const seek = (by: number) => {
    const isWanted = (row: OutlineRow) => (hits.size > 0 ? hits.has(row.seq) : failureOf(row) !== '');
    for (let i = active + by; i >= 0 && i < outline.length; i += by)
      if (isWanted(outline[i]!)) return show(i);
  };
  const onKeyDown = (event: KeyboardEvent<HTMLElement>) => {
    if (event.metaKey || event.ctrlKey || event.altKey) return;
    if (event.key === 'j' || event.key === 'ArrowDown') show(active + 1);
    else if (event.key === 'k' || event.key === 'ArrowUp') show(active - 1);
    else if (event.key === 'n') seek(1);
    else if (event.key === 'p') seek(-1);
    else if (event.key === 'Home') show(0);
    else if (event.key === 'End') show(outline.length - 1);
    else return;
    event.preventDefault();
  };
  return (
    <div className="trajectory">
      <div className="bar readingbar noprint">
        <SearchBar outline={outline} search={search} asked={asked} ask={ask} seek={seek} />
        <label>
          step{' '}
          <input
            type="number"
            min={1}
            aria-label="go to step"
            onChange={(event) => {
              const index = placeOfStep(outline, Number(event.currentTarget.value));
              if (index >= 0) show(index);
            }}
          />
        </label>
        {attempt.state === 'running' ? (
          <label>
            <input
              type="checkbox"
              checked={follows}
              onChange={(event) => follow(event.currentTarget.checked)}
            />{' '}
            follow the newest
          </label>
        ) : null}
      </div>
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
          onKeyDown={onKeyDown}
          onWheel={unpin}
          onPointerDown={unpin}
          onTouchMove={unpin}
          onScroll={onScroll}
        >
          <div className="rows" style={{ height: virtualizer.getTotalSize() }}>
            {virtualizer.getVirtualItems().map(({ key, index, start }) => (
              <div
                key={key}
                ref={virtualizer.measureElement}
                data-index={index}
                className="placed"
                style={{ transform: `translateY(${start}px)` }}
              >
                <MessageItem
                  row={outline[index]!}
                  attempt={attempt.id}
                  live={attempt.state === 'running'}
                  active={index === active}
                  count={outline.length}
                  index={index}
                  asked={asked}
                  linked={linked}
                />
              </div>
            ))}
          </div>
        </div>
        <ScrollMarks outline={outline} hits={hits} virtualizer={virtualizer} show={show} />
      </div>
    </div>
  );
}

const placeOfStep = (outline: readonly OutlineRow[], step: number): number =>
  outline.findIndex((row) => row.step === step && row.role === 'assistant');

interface SearchProps {
  outline: readonly OutlineRow[];
  search: Found;
  asked: string;
  ask: (word: string) => void;
  seek: (by: number) => void;
}

/** The search, how much it found or failed, and the way to the next of them. */
function SearchBar({ outline, search: { hits, isReading }, asked, ask, seek }: SearchProps) {
  const failures = outline.filter((row) => failureOf(row) !== '').length;
  const what = asked.trim().length > 1 ? 'match' : 'failure';
  const none = what === 'match' ? hits.size === 0 : failures === 0;
  const matches = [...hits.values()].reduce((sum, n) => sum + n, 0);
  return (
    <>
      <input
        type="search"
        aria-label="Search this trajectory"
        placeholder="search all messages"
        value={asked}
        spellcheck={false}
        onChange={(event) => ask(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === 'Enter') seek(event.shiftKey ? -1 : 1);
        }}
      />
      <span className="quiet" role="status">
        {what === 'failure'
          ? `${integer(outline.length)} messages, ${failures} failed ${failures === 1 ? 'command' : 'commands'}`
          : isReading
            ? 'reading …'
            : `${integer(matches)} found in ${integer(hits.size)} messages`}
      </span>
      <button type="button" disabled={none} onClick={() => seek(-1)}>
        previous {what}
      </button>
      <button type="button" disabled={none} onClick={() => seek(1)}>
        next {what}
      </button>
    </>
  );
}

/** Messages come and go while somebody scrolls: their matches are marked whenever what is in sight has changed. */
function useMarks(scroller: RefObject<HTMLDivElement | null>, asked: string, virtualizer: VirtualRows): void {
  const items = virtualizer.getVirtualItems();
  const inSight = useMemo(() => items.map((item) => `${item.key}:${item.size}`).join(), [items]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: what is in sight is what is marked
  useEffect(() => {
    const frame = requestAnimationFrame(() => markMatches(scroller.current, asked));
    return () => cancelAnimationFrame(frame);
  }, [asked, inSight]);
}

/** So many places are told apart on a screen. */
const PLACES = 240;

interface MarksProps {
  outline: readonly OutlineRow[];
  hits: Found['hits'];
  virtualizer: VirtualRows;
  show: (index: number) => void;
}

function ScrollMarks({ outline, hits, virtualizer, show }: MarksProps) {
  const height = Math.max(1, virtualizer.getTotalSize());
  const marks = new Map<number, { index: number; isHit: boolean }>();
  for (const [index, row] of outline.entries()) {
    const isHit = hits.has(row.seq);
    if (!isHit && failureOf(row) === '') continue;
    const place = Math.floor(((virtualizer.measurementsCache[index]?.start ?? 0) / height) * PLACES);
    if (isHit || !marks.has(place)) marks.set(place, { index, isHit });
  }
  return (
    <div className="marks noprint" aria-hidden="true">
      {[...marks].map(([place, { index, isHit }]) => (
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

/** The message that is read, and how it changes: by keys and addresses, and by the newest one while it is followed. */
function usePlace({ doc, step, linked = true }: TrajectoryProps, virtualizer: VirtualRows) {
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
    const index = placeOfStep(outline, wanted);
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

// Search over a whole trajectory: every message is read once, then each question is answered from memory.

const textOf = (message: MessageDocument): string =>
  [
    message.content,
    message.reasoning ?? '',
    ...message.toolCalls.map((call) => call.text),
    ...message.commands.flatMap((command) => [command.command, command.output ?? '']),
  ]
    .join('\n')
    .toLowerCase();

async function readTexts(attempt: number, chunks: number): Promise<Map<number, string>> {
  const texts = new Map<number, string>();
  for (let chunk = 0; chunk < chunks; chunk += 1) {
    const { messages } = await readDocument<MessageChunk>(`attempts/${attempt}/messages/${chunk}`);
    for (const message of messages) texts.set(message.seq, textOf(message));
  }
  return texts;
}

interface Found {
  /** Matches by the number of the message. */
  readonly hits: ReadonlyMap<number, number>;
  readonly isReading: boolean;
}

const NOTHING: ReadonlyMap<number, number> = new Map();
/** One letter is on every line: nobody looks for it. */
const SHORTEST = 2;

function useSearch(doc: AttemptDocument, asked: string): Found {
  const word = asked.trim().toLowerCase();
  const isAsked = word.length >= SHORTEST;
  const last = doc.outline.at(-1)?.seq ?? -1;
  const [texts, setTexts] = useState<{ last: number; texts: Map<number, string> } | undefined>(undefined);
  useEffect(() => {
    if (!isAsked || texts?.last === last) return;
    let wanted = true;
    readTexts(doc.attempt.id, Math.ceil((last + 1) / MESSAGES_PER_CHUNK)).then(
      (read) => wanted && setTexts({ last, texts: read }),
      () => wanted && setTexts({ last, texts: new Map() }),
    );
    return () => {
      wanted = false;
    };
  }, [isAsked, doc.attempt.id, last, texts]);
  const hits = useMemo(() => {
    if (!isAsked || !texts) return NOTHING;
    const found = new Map<number, number>();
    for (const { seq } of doc.outline) {
      const n = countIn(texts.texts.get(seq) ?? '', word);
      if (n > 0) found.set(seq, n);
    }
    return found;
  }, [isAsked, texts, word, doc.outline]);
  return { hits, isReading: isAsked && texts?.last !== last };
}

/** Marks what is in sight. The highlights of the browser change no element, so foreign text stays as it is. */
function markMatches(root: HTMLElement | null, asked: string): void {
  const word = asked.trim().toLowerCase();
  if (typeof CSS === 'undefined' || !('highlights' in CSS)) return;
  CSS.highlights.delete('found');
  if (!root || word.length < SHORTEST) return;
  const ranges: Range[] = [];
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node && ranges.length < 2000; node = walker.nextNode()) {
    const text = (node.textContent ?? '').toLowerCase();
    for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + word.length)) {
      const range = document.createRange();
      range.setStart(node, at);
      range.setEnd(node, Math.min(at + word.length, node.textContent?.length ?? 0));
      ranges.push(range);
    }
  }
  CSS.highlights.set('found', new Highlight(...ranges));
}

// The steps of a trajectory in one column: what each does, how it ended, its time and its cost.

const HEIGHT = 40;

interface OutlineProps {
  outline: readonly OutlineRow[];
  active: number;
  hits: ReadonlyMap<number, number>;
  show: (index: number) => void;
}

/** The steps that a reader looks for first. */
const FILTERS: readonly (readonly [name: string, test: (line: StepLine) => boolean])[] = [
  ['edits', ({ does }) => does.kind === 'edit' || does.kind === 'submit'],
  ['tests', ({ does }) => does.kind === 'test'],
  ['failures', (line) => failureOf(line) !== ''],
];

function StepOutline({ outline, active, hits, show }: OutlineProps) {
  const all = useMemo(() => stepLines(outline), [outline]);
  const [chosen, choose] = useState<string | undefined>(undefined);
  const filter = FILTERS.find(([name]) => name === chosen)?.[1];
  const lines = useMemo(() => (filter ? all.filter(filter) : all), [all, filter]);
  const current = lines.findLastIndex((line) => line.index <= active);
  const box = useRef<HTMLElement>(null);
  const virtualizer = useVirtualRows({
    count: lines.length,
    getScrollElement: () => box.current,
    estimateSize: () => HEIGHT,
    overscan: 8,
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: the column follows the step that is read
  useEffect(() => {
    if (current >= 0) virtualizer.scrollToIndex(current, { align: 'auto' });
  }, [current]);
  return (
    <div className="stepcolumn noprint">
      <fieldset className="stepfilter">
        <legend className="hide">Show only these steps</legend>
        {FILTERS.map(([name, test]) => (
          <button
            key={name}
            type="button"
            className={chosen === name ? 'chip on' : 'chip'}
            aria-pressed={chosen === name}
            disabled={!all.some(test)}
            onClick={() => choose(chosen === name ? undefined : name)}
          >
            {name} <span className="n">{all.filter(test).length}</span>
          </button>
        ))}
      </fieldset>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolled region must be reachable by keyboard */}
      <nav ref={box} className="steps" aria-label="Steps" tabIndex={0}>
        <div className="rows" style={{ height: virtualizer.getTotalSize() }}>
          {virtualizer.getVirtualItems().map((item) => {
            const line = lines[item.index]!;
            const { row, ms } = line;
            const { kind, command } = line.does;
            const failure = failureOf(line);
            const found = hits.get(row.seq) ?? 0;
            const isCurrent = item.index === current;
            return (
              <button
                key={row.seq}
                type="button"
                className={`step${isCurrent ? ' current' : ''}${failure ? ' failed' : ''}`}
                aria-current={isCurrent ? 'step' : undefined}
                style={{ transform: `translateY(${item.start}px)`, height: HEIGHT }}
                onClick={() => show(line.index)}
                title={plain(command)}
              >
                <span className="stepline">
                  <span className="number">{row.step}</span>
                  <code>{command === '' ? 'says' : plain(command.split('\n', 1)[0]!.slice(0, 120))}</code>
                </span>
                <span className="stepfacts">
                  <span className={`kind ${kind}`}>{kind}</span>
                  {failure ? <span className="bad">{failure}</span> : null}
                  {ms === null ? null : <span>{duration(ms)}</span>}
                  {row.call?.cost_nano ? <span>{nano(row.call.cost_nano)}</span> : null}
                  {found > 0 ? <span className="hit">{found} found</span> : null}
                </span>
              </button>
            );
          })}
        </div>
      </nav>
    </div>
  );
}
