/** What the record says of an attempt from outside of it: how its program ended, and on which engines it was. */

/** How a program ended, as seen from outside of it. */
export interface ProgramEnd {
  /** null: it was killed. */
  exitCode: number | null;
  outputEnd: string;
}

/** A lease: runs on one engine have none. */
export interface EngineStay {
  engine: string;
  beganAt: string;
  endedAt: string | null;
  /** closed, lost, moved, process_lost; null: it is there now, or was when its record ends. */
  how: string | null;
}

const ENDS: Readonly<Record<string, string>> = {
  lost: 'the engine was lost',
  moved: 'nothing had run there yet',
  process_lost: 'swebatch was killed',
};

/** "tcp://a:2375 (the engine was lost), tcp://b:2375": in their order. */
export const staysText = (stays: readonly EngineStay[]): string =>
  stays.map(({ engine, how }) => (how && ENDS[how] ? `${engine} (${ENDS[how]})` : engine)).join(', ');
