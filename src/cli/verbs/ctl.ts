/** `swebatch ctl`: changes a run while it works, from another terminal. */
import { hostname, userInfo } from 'node:os';
import { inert } from '../../base/text/inert.ts';
import { askRun } from '../../run/askRun.ts';
import { resultsRoot } from '../../run/resultsRoot.ts';
import { UserError } from '../../run/userError.ts';
import { json, namedRun, output } from '../flags/commonFlags.ts';
import { defineVerb, flags } from '../flags/verb.ts';
import { EXIT, printJson, say } from '../terminal/context.ts';

const COMMANDS = ['pause', 'resume', 'workers', 'budget', 'cancel'] as const;

export const ctlVerb = defineVerb({
  name: 'ctl',
  describe: 'change a run while it works: pause, resume, slots, budget, cancel a trial',
  flags: flags({
    run: namedRun,
    command: { choices: COMMANDS, type: 'string', place: 'required', describe: 'what to change' },
    value: {
      type: 'string',
      place: 'optional',
      describe: 'workers N · budget DOLLARS or none · cancel INSTANCE or number of a trial',
    },
    output,
    json,
  }),
  examples: [
    ['$0 ctl last pause', 'nothing new starts, running trials finish'],
    ['$0 ctl last workers 16', 'more or fewer slots; running trials keep theirs'],
    ['$0 ctl nightly-0821 budget 80', 'dollars for the whole run, also less than before'],
    ['$0 ctl last cancel astropy__astropy-12907', 'ends one trial; "resume" runs it again'],
  ],
  async run({ output: folder, run, command, value, json: asJson }) {
    const root = resultsRoot(folder);
    const answered = await askRun({
      ...{ root, run, command, argument: value ?? null },
      by: asker(),
    });
    if (!answered.done) throw new UserError(`${answered.run}: ${inert(answered.answer)}`);
    if (asJson) printJson(answered);
    else say(`${answered.run}: ${inert(answered.answer)}`);
    return EXIT.done;
  },
});

/** A user without a name, as in some containers, has a number. */
function asker(): string {
  try {
    return `${userInfo().username}@${hostname()} (terminal)`;
  } catch {
    return `uid ${process.getuid?.() ?? '?'}@${hostname()} (terminal)`;
  }
}
