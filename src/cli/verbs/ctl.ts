/** `swebatch ctl`, `run stop`, `run delete`: changes, stops or removes a run from another terminal. */

import { hostname, userInfo } from 'node:os';
import { createInterface } from 'node:readline/promises';
import { inert } from '../../base/text/inert.ts';
import { askRun, deleteRun, howItIs, requireDeletable, stopRun } from '../../run/askRun.ts';
import { openForWriting, requireRun, resultsRoot } from '../../run/resultsRoot.ts';
import { UserError } from '../../run/userError.ts';
import { spentNano } from '../../store/records/runs.ts';
import { classCounts } from '../../store/records/trials.ts';
import { defineVerb, flags, json, namedRun, output, string, toggle } from '../flags/verb.ts';
import { commandOn, EXIT, printJson, say } from '../terminal/context.ts';
import { countsText, spentText } from '../terminal/table.ts';

const COMMANDS = ['pause', 'resume', 'workers', 'budget', 'cancel'] as const;

export const ctlVerb = defineVerb({
  name: 'ctl',
  describe: 'change a run while it works: pause, resume, slots, budget, cancel a trial',
  flags: flags({
    run: namedRun,
    command: { choices: COMMANDS, type: 'string', place: 'required', describe: 'what to change' },
    value: {
      ...string('workers N · budget DOLLARS or none · cancel INSTANCE or number of a trial'),
      place: 'optional',
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

export const runStopVerb = defineVerb({
  name: 'run stop',
  describe: 'stop a run that works in another process, as Ctrl-C does there',
  flags: flags({
    run: namedRun,
    now: toggle('cut running instances short and capture their patches; without it they finish'),
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

export const runDeleteVerb = defineVerb({
  name: 'run delete',
  describe: 'delete a run: its rows in the database and its folder; asks first',
  flags: flags({
    run: namedRun,
    yes: { alias: 'y', ...toggle('do not ask') },
    output,
    json,
  }),
  examples: [['$0 run delete run-20261122-1a2b', 'shows what would be lost, and asks']],
  async run(args) {
    const root = resultsRoot(args.output);
    using store = openForWriting(root);
    const run = requireRun(store, args.run);
    requireDeletable(store, root, run);
    const counts = Object.fromEntries(classCounts(store, run.id));
    const lost = `${run.name} of ${run.created_at.slice(0, 16).replace('T', ' ')}: ${countsText(counts, ', ')}; spent ${spentText(spentNano(store, run.id))}`;
    if (!args.yes && !(await agreed(inert(lost)))) {
      say('nothing was deleted');
      return EXIT.done;
    }
    await deleteRun(store, root, run);
    if (args.json) printJson({ deleted: run.name });
    else say(`deleted ${inert(lost)}`);
    return EXIT.done;
  },
});

async function agreed(lost: string): Promise<boolean> {
  if (!process.stdin.isTTY)
    throw new UserError(`this would delete ${lost}`, { hint: 'no terminal to ask at: add --yes' });
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    const answer = await terminal.question(`Delete ${lost}? It cannot be brought back. [y/N] `);
    return /^y(es)?$/i.test(answer.trim());
  } finally {
    terminal.close();
  }
}
