/** Work that a program has started: its events, its result, and how it is stopped. */
import { withEngine } from '../environment/places/chosenEngine.ts';
import type { Caller, Notice, Variables } from './caller.ts';
import type { StopLadder } from './control/stop.ts';
import type { RunEvent, RunEvents } from './events.ts';
import { engineOptions } from './places/engines.ts';

/** Options of every call. */
export interface Surroundings {
  /** Keys of providers, DOCKER_HOST, proxies, the hub's settings. Nothing is read from the process; pass your own environment to use all of it. */
  readonly env?: Variables | undefined;
  /** Relative paths start here; default: the working directory. */
  readonly cwd?: string | undefined;
  /** Ends the work: what runs is cut short, its patches are captured, containers are removed, and it can be resumed. */
  readonly signal?: AbortSignal | undefined;
}

export interface Running<T> {
  /** Events as they happen, for one reader; notices come as notes. The newest 10 000 unread events are kept. */
  readonly events: AsyncIterable<RunEvent>;
  /** Resolves also for work that was stopped, and says so; rejects with a UserError or a fault. */
  readonly result: Promise<T>;
  /** The first call lets running instances finish; the second does what the signal does. Returns a sentence that says what happens. */
  stop(): string;
}

type Begin<T> = (caller: Caller, begun: () => void) => Promise<T>;

/** Resolves when the work has begun; rejects with what kept it from beginning. */
export async function startWork<T>(
  { env = {}, cwd = process.cwd(), signal }: Surroundings,
  begin: Begin<T>,
): Promise<Running<T>> {
  const feed = createFeed<RunEvent>();
  const note = (text: string) => feed.push({ type: 'note', text });
  const tell = ({ level, text }: Notice) => note(level === 'info' ? text : `${level}: ${text}`);
  const begun = Promise.withResolvers<void>();
  let climb: () => string = () => 'nothing runs';
  const attend: Caller['attend'] = ({ events, stop }) => {
    events.on(feed.push);
    climb = () => interrupt(stop, events);
    const abort = () => {
      while (stop.stage < 2) interrupt(stop, events);
    };
    if (signal?.aborted) abort();
    signal?.addEventListener('abort', abort);
    begun.resolve();
    return { say: note, over: () => signal?.removeEventListener('abort', abort) };
  };
  const work = () => begin({ env, cwd, tell, attend }, begun.resolve);
  const result = withEngine(() => engineOptions(env), work).finally(feed.end);
  // A caller that only reads events must not crash; awaiting the result still gives the error.
  result.catch(() => {});
  await Promise.race([begun.promise, result]);
  return { events: feed, result, stop: () => climb() };
}

const CALLER = 'the caller';

function interrupt(stop: StopLadder, events: RunEvents): string {
  if (stop.stage >= 2) return 'stopping already';
  const next = stop.interrupt(CALLER);
  events.emit({ type: 'stopping', stage: stop.stage, reason: `${CALLER}: ${next}`, next });
  return next;
}

/** A queue that one side pushes to and the other reads as an async iterable. */
interface Feed<T> extends AsyncIterable<T> {
  push(value: T): void;
  end(): void;
}

/** Unread values must not fill the memory during a long run. */
const KEPT = 10_000;

/** The oldest values that nobody reads are dropped. */
function createFeed<T>(): Feed<T> {
  const waiting: T[] = [];
  let ended = false;
  let wake = () => {};
  return {
    push(value) {
      waiting.push(value);
      if (waiting.length > KEPT) waiting.shift();
      wake();
    },
    end() {
      ended = true;
      wake();
    },
    async *[Symbol.asyncIterator]() {
      for (;;) {
        while (waiting.length > 0) yield waiting.shift()!;
        if (ended) return;
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    },
  };
}
