/** `swebatch run stop`: Ctrl-C for a run that works in another terminal, in a service or in the background. */

import { howItIs, stopRun } from '../../run/askRun.ts';
import { resultsRoot } from '../../run/resultsRoot.ts';
import { json, namedRun, output } from '../flags/commonFlags.ts';
import { defineVerb, flags } from '../flags/verb.ts';
import { EXIT, printJson, say } from '../terminal/context.ts';
import { commandOn } from '../terminal/nextStep.ts';

export const runStopVerb = defineVerb({
  name: 'run stop',
  describe: 'stop a run that works in another process, as Ctrl-C does there',
  flags: flags({
    run: namedRun,
    now: {
      type: 'boolean',
      default: false,
      describe: 'cut running instances short and capture their patches; without it they finish',
    },
    output,
    json,
  }),
  examples: [
    ['$0 run stop last', 'running instances finish, nothing new starts'],
    ['$0 run stop nightly-0821 --now', 'as Ctrl-C twice'],
  ],
  async run(args) {
    const root = resultsRoot(args.output);
    const stopped = stopRun(root, args.run, args.now);
    if (args.json) printJson(stopped);
    else if (stopped.pid === null) say(`no process works on ${stopped.run}; ${howItIs(stopped.status)}`);
    else
      say(
        `told pid ${stopped.pid} to stop ${stopped.run}; ${args.now ? 'it cuts short what runs and captures it' : 'what runs finishes'}. Go on later with ${commandOn(root, `resume ${stopped.run}`)}`,
      );
    return EXIT.done;
  },
});
