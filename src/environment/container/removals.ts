/** Removal of containers of any engine. One that is not removed when it is asked for is tried until it is gone, and named where it stays. */
import { orAborted, pause, startTimer } from '../../base/async/timer.ts';
import type { EngineWatch } from '../places/engineWatch.ts';

export interface Removal {
  /** As sentences name it: "pod x". */
  readonly name: string;
  /** Whether it is gone. Never rejects. */
  remove(): Promise<boolean>;
  /** The command by which a person removes it. */
  readonly byHand: string;
}

interface RemovalOptions {
  /** Of the engine: while it is away, nothing is asked of it. */
  readonly watch: Pick<EngineWatch, 'back'>;
  readonly warn?: ((text: string) => void) | undefined;
  /** How long the end of the run waits for what is not gone then. */
  readonly graceMs?: number | undefined;
  readonly waits?: readonly number[];
}

/** The last is kept to. */
const WAITS_MS: readonly number[] = [500, 2000, 5000, 20_000];
const AT_THE_END_MS = 1000;
const GRACE_MS = 30_000;

export function createRemovals({
  watch,
  warn = () => {},
  graceMs = GRACE_MS,
  waits = WAITS_MS,
}: RemovalOptions) {
  const going = new Set<Promise<unknown>>();
  const closing = new AbortController();
  const over = new AbortController();
  const track = (work: Promise<unknown>): void => {
    going.add(work);
    void work.finally(() => going.delete(work));
  };

  async function untilGone({ name, remove, byHand }: Removal): Promise<void> {
    warn(`${name} could not be removed; it is tried again`);
    for (let tried = 0; !over.signal.aborted; tried += 1) {
      const ms = waits[Math.min(tried, waits.length - 1)]!;
      await pause(ms, closing.signal);
      if (closing.signal.aborted) await pause(Math.min(ms, AT_THE_END_MS), over.signal);
      else await watch.back(closing.signal).catch(() => undefined);
      if (await orAborted(remove(), over.signal).catch(() => false)) return warn(`${name} is removed now`);
    }
    warn(`${name} is still there: ${byHand} removes it, or "swebatch clean" once this run has ended`);
  }

  return {
    /** Resolves when it is gone, or when that will take longer. Never rejects. */
    async discard(removal: Removal): Promise<void> {
      const first = removal.remove();
      track(first);
      if (!(await first)) track(untilGone(removal));
    },
    /** Nothing else will be removed: resolves when all is gone, or the grace is over. */
    async close(): Promise<void> {
      closing.abort();
      const timer = startTimer(Math.max(1, graceMs), () => over.abort());
      while (going.size > 0) await Promise.allSettled([...going]);
      timer.cancel();
    },
  };
}
