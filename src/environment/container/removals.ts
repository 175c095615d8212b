/**
 * Removal of containers of any engine. A removal that fails is tried until the container is gone, and told where it stays
 * (observed: tests/environment/docker/removalRefused.test.ts).
 */
import { orAborted, pause, startTimer, within } from '../../base/async/timer.ts';
import type { EngineWatch } from '../places/engineWatch.ts';
import type { Removed } from '../places/leftovers.ts';

export interface Removal {
  /** As sentences name it: "pod x". */
  readonly name: string;
  /** Never rejects. */
  remove(): Promise<Removed>;
  /** The command by which a person removes it. */
  readonly byHand: string;
  /** The remedy where the engine does not answer for it. */
  readonly freedBy?: string;
}

interface RemovalOptions {
  /** The watch of the engine: while that is away, nothing is asked of it. */
  readonly watch: Pick<EngineWatch, 'back'>;
  readonly warn?: ((text: string) => void) | undefined;
  /** How long the end of the run waits for containers that are not gone. */
  readonly graceMs?: number | undefined;
}

/** Waits between tries; the last one repeats. */
const WAITS_MS: readonly number[] = [500, 2000, 5000, 20_000];
const AT_THE_END_MS = 1000;
const GRACE_MS = 30_000;
/** A slot waits so long for the first try, which goes on: much for a removal, also on a machine that is drowning. */
const PATIENCE_MS = 20_000;

export function createRemovals({ watch, warn = () => {}, graceMs = GRACE_MS }: RemovalOptions) {
  const going = new Set<Promise<unknown>>();
  const closing = new AbortController();
  const over = new AbortController();
  const track = (work: Promise<unknown>): void => {
    going.add(work);
    void work.finally(() => going.delete(work));
  };

  /** `early`: how the first try went, where that is known yet. */
  async function untilGone(
    { name, remove, byHand, freedBy }: Removal,
    first: Promise<Removed | undefined>,
    early: Removed | undefined,
  ): Promise<void> {
    let told = false;
    /** Once: what it is that a person can do. */
    const unanswered = () => {
      if (told) return '';
      told = true;
      return `: its engine does not answer for it${freedBy === undefined ? '' : `; ${freedBy}`}`;
    };
    warn(`${name} could not be removed${early === 'refused' ? '' : unanswered()}; it is tried again`);
    if ((await first) === 'gone') return warn(`${name} is removed now`);
    for (let tried = 0; !over.signal.aborted; tried += 1) {
      const ms = WAITS_MS[Math.min(tried, WAITS_MS.length - 1)]!;
      await pause(ms, closing.signal);
      if (closing.signal.aborted) await pause(Math.min(ms, AT_THE_END_MS), over.signal);
      else await watch.back(closing.signal).catch(() => undefined);
      const how = await orAborted(remove(), over.signal).catch(() => 'refused');
      if (how === 'gone') return warn(`${name} is removed now`);
      if (how === 'unanswered' && !told)
        warn(`${name} could not be removed${unanswered()}; it is tried again`);
    }
    warn(`${name} is still there: ${byHand} removes it, or "swebatch clean" once this run has ended`);
  }

  return {
    /** Resolves when it is gone, or when that will take longer. Never rejects. */
    async discard(removal: Removal): Promise<void> {
      const first = orAborted(removal.remove(), over.signal).catch(() => undefined);
      track(first);
      const early = await within(first, PATIENCE_MS);
      if (early !== 'gone') track(untilGone(removal, first, early));
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
