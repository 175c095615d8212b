/** The process as the service's caller: its variables, folder and terminal. A person attends: progress on stderr, signals climb the stop ladder. */

import type { Attendant, Caller, Work } from '../../run/caller.ts';
import type { StopLadder } from '../../run/control/stop.ts';
import type { RunEvents } from '../../run/events.ts';
import { commandOn, keepFromTerminal, say, sayNotice } from './context.ts';
import { createProgress, type ProgressMode } from './progress.ts';
import { keepHeapSmall } from './smallHeap.ts';

export const thisProcess = (progress: ProgressMode = 'auto'): Caller => ({
  env: process.env,
  cwd: process.cwd(),
  command: process.argv.slice(2),
  // The result alone: what a run does and means to do is progress too.
  tell: (notice) => {
    if (progress !== 'none' || notice.level === 'warning') sayNotice(notice);
  },
  keepSecret: keepFromTerminal,
  attend: attendWith(progress),
});

const attendWith =
  (mode: ProgressMode) =>
  ({ run, root, workers, events, stop }: Work): Attendant => {
    const growAgain = workers >= MANY_SLOTS ? keepHeapSmall() : undefined;
    const progress = createProgress(workers, mode);
    events.on(progress.listener);
    const silence = listenForSignals(stop, events);
    return {
      exitNow() {
        progress.stop();
        say(`exiting at once; continue with ${commandOn(root, `resume ${run}`)}`);
        process.exit(signalExitCode(stop.interruptedBy ?? 'SIGINT'));
      },
      say: progress.say,
      over: silence,
      end() {
        growAgain?.();
        progress.stop();
      },
    };
  };

/** The fewest slots: with fewer, garbage never piles up to what matters, and to collect it early costs a tenth of a run's processor time. */
const MANY_SLOTS = 32;

/** SIGINT and SIGTERM climb the stop ladder, SIGHUP and a closed stdin change nothing. */
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
