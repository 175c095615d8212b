/**
 * Which engines a trial may go to: with a free slot, then with memory for one more, then where its image is, then where it is on its way.
 * A free slot comes first: an image is pulled once, and a trial that waits for an engine may wait for an hour. Disk is asked before.
 */

export interface EngineFacts {
  readonly host: string;
  /** Trials placed there, entered or not. */
  readonly placed: number;
  /** 0: no limit. */
  readonly slots: number;
  /** Undefined where the engine does not tell. */
  readonly memoryBytes: number | undefined;
  readonly image: ImagePlace;
}

export type ImagePlace = 'here' | 'coming' | 'absent';

const IMAGE_ORDER: readonly ImagePlace[] = ['here', 'coming', 'absent'];

/** The best of them, alike in all this; the emptiest of those is to be taken. `memoryBytes`: what a trial may use, 0 for no limit. */
export function bestEngines(engines: readonly EngineFacts[], memoryBytes: number): readonly string[] {
  const least = Math.min(...engines.map(({ placed }) => placed));
  const ranked = engines.map((engine) => ({
    host: engine.host,
    rank: [
      waitFor(engine, least, memoryBytes),
      lackOf(engine, memoryBytes),
      IMAGE_ORDER.indexOf(engine.image),
    ],
  }));
  const best = ranked.map(({ rank }) => rank).reduce((a, b) => (before(b, a) ? b : a), []);
  return ranked.filter(({ rank }) => !before(best, rank)).map(({ host }) => host);
}

/** How long the trial would wait for a slot, in rounds of all slots of the engine. */
function waitFor({ placed, slots, memoryBytes }: EngineFacts, least: number, perTrial: number): number {
  if (slots > 0) return Math.max(0, (placed + 1 - slots) / slots);
  // Nothing says when such an engine is full, so they are filled evenly.
  return memoryBytes === undefined || perTrial === 0 ? placed - least : 0;
}

/** By how much its memory would be promised away, as a share of it. */
const lackOf = ({ placed, memoryBytes }: EngineFacts, perTrial: number): number =>
  memoryBytes ? Math.max(0, ((placed + 1) * perTrial) / memoryBytes - 1) : 0;

/** An empty rank is after all others. */
function before(a: readonly number[], b: readonly number[]): boolean {
  const at = a.findIndex((value, i) => value !== b[i]);
  return at >= 0 && (b[at] === undefined || a[at]! < b[at]);
}
