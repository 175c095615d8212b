/**
 * Back-pressure for floods: a command that prints faster than anybody can read (`yes`) must not take the event loop from the other
 * slots. Past the first megabytes the stream is read in short turns with pauses between them; what nobody waits for any more, the
 * output of a background process after the end of its command, in shorter turns with longer pauses.
 */

import { startTimer } from '../../base/async/timer.ts';

interface Pausable {
  pause(): unknown;
  resume(): unknown;
}

export interface Pace {
  readonly freeBytes: number;
  readonly turnBytes: number;
  readonly pauseMs: number;
}

const MB = 1024 * 1024;
const AWAITED: Pace = { freeBytes: 8 * MB, turnBytes: 2 * MB, pauseMs: 10 };
/** 5 MB a second: more than a server logs. */
export const UNWANTED: Pace = { freeBytes: 0, turnBytes: MB / 4, pauseMs: 50 };

/** Call after each chunk with its size and the total of the command so far. */
export function createPace(stream: Pausable, pace: Pace = AWAITED): (bytes: number, total: number) => void {
  let turn = 0;
  return (bytes, total) => {
    if (total < pace.freeBytes) return;
    turn += bytes;
    if (turn < pace.turnBytes) return;
    turn = 0;
    stream.pause();
    startTimer(Math.max(1, pace.pauseMs), () => stream.resume());
  };
}
