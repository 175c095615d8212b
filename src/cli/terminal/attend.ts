/** A person at a terminal attends the work: progress on stderr, and signals that climb the stop ladder. */
import type { Attendant, Work } from '../../service/caller.ts';
import { commandOn } from '../../service/resultsRoot.ts';
import { say } from './context.ts';
import { createProgress, type ProgressMode } from './progress.ts';
import { listenForSignals, signalExitCode } from './signals.ts';

export const attendWith =
  (mode: ProgressMode) =>
  ({ run, root, workers, events, stop }: Work): Attendant => {
    const progress = createProgress(workers, mode);
    events.on(progress.listener);
    const silence = listenForSignals(stop, events);
    return {
      exitNow() {
        progress.stop();
        say(`exiting at once; what ran is resumable with ${commandOn(root, `resume ${run}`)}`);
        process.exit(signalExitCode(stop.interruptedBy ?? 'SIGINT'));
      },
      say: progress.say,
      over: silence,
      end: progress.stop,
    };
  };
