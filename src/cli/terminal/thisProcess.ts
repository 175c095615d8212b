/** This process as the service's caller: its variables, its folder, its terminal. A person attends: progress on stderr, signals climb the stop ladder. */
import type { Attendant, Caller, Work } from '../../run/caller.ts';
import { keepFromTerminal, say, sayNotice } from './context.ts';
import { commandOn } from './nextStep.ts';
import { createProgress, type ProgressMode } from './progress.ts';
import { listenForSignals, signalExitCode } from './signals.ts';

export const thisProcess = (progress: ProgressMode = 'auto'): Caller => ({
  env: process.env,
  cwd: process.cwd(),
  command: process.argv.slice(2),
  tell: sayNotice,
  keepSecret: keepFromTerminal,
  attend: attendWith(progress),
});

const attendWith =
  (mode: ProgressMode) =>
  ({ run, root, workers, events, stop }: Work): Attendant => {
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
      end: progress.stop,
    };
  };
