/** Signals of a running batch: SIGINT and SIGTERM climb the stop ladder, SIGHUP and a closed stdin change nothing. */

import type { StopLadder } from '../../run/control/stop.ts';
import type { RunEvents } from '../../run/events.ts';

export function listenForSignals(stop: StopLadder, events: RunEvents): () => void {
  const climb = (name: 'SIGINT' | 'SIGTERM') => () => {
    const next = stop.interrupt(name);
    events.emit({ type: 'stopping', stage: stop.stage, reason: `${name}: ${next}`, next });
  };
  const onInt = climb('SIGINT');
  const onTerm = climb('SIGTERM');
  const onHup = () => {};
  process.on('SIGINT', onInt);
  process.on('SIGTERM', onTerm);
  process.on('SIGHUP', onHup);
  return () => {
    process.off('SIGINT', onInt);
    process.off('SIGTERM', onTerm);
    process.off('SIGHUP', onHup);
  };
}

/** The exit code that shells expect after a signal. */
export const signalExitCode = (name: string): number => (name === 'SIGTERM' ? 143 : 130);
