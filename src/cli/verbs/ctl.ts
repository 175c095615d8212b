/** `swebatch ctl`: follows, changes or stops a run from another terminal. */

import { hostname, userInfo } from 'node:os';
import { inert } from '../../base/text/inert.ts';
import { askRun, howItIs, stopRun } from '../../run/askRun.ts';
import { openForReading, requireRun, resultsRoot } from '../../run/resultsRoot.ts';
import { UserError } from '../../run/userError.ts';
import { readLiveState } from '../../store/live/controls.ts';
import { type Args, defineVerb, flags, json, namedRun, output, string, toggle } from '../flags/verb.ts';
import { commandOn, EXIT, printJson, printResult, say } from '../terminal/context.ts';
import { follow, stateLines } from '../terminal/watchRun.ts';

const COMMANDS = ['pause', 'resume', 'workers', 'budget', 'cancel', 'stop', 'engines'] as const;

const ctlFlags = flags({
  run: { ...namedRun, place: 'optional', default: 'last' },
  command: {
    choices: COMMANDS,
    type: 'string',
    place: 'optional',
    describe: 'what to change; without one the run is followed until it ends',
  },
  value: {
    ...string('workers N · budget DOLLARS or none · cancel INSTANCE or number of a trial'),
    place: 'optional',
  },
  now: toggle('with stop: cut running instances short and capture their patches; without it they finish'),
  output,
  json,
});

export const ctlVerb = defineVerb({
  name: 'ctl',
  describe: 'a run as it works: follow it, pause, resume, slots, budget, cancel a trial, stop',
  flags: ctlFlags,
  examples: [
    ['$0 ctl', 'follow the newest run: slots, rate limits, spend'],
    ['$0 ctl last pause', 'nothing new starts, running trials finish'],
    ['$0 ctl last workers 16', 'more or fewer slots; running trials keep theirs'],
    ['$0 ctl nightly-0821 budget 80', 'dollars for the whole run, also less than before'],
    ['$0 ctl last cancel astropy__astropy-12907', 'ends one trial; "resume" runs it again'],
    ['$0 ctl last stop', 'running instances finish, nothing new starts; --now: as Ctrl-C twice'],
  ],
  async run(args) {
    const { run, command, value } = args;
    const root = resultsRoot(args.output);
    if (args.now && command !== 'stop') throw new UserError('--now belongs to "stop"');
    if (command === undefined && (COMMANDS as readonly string[]).includes(run))
      throw new UserError(`name the run before "${run}"`, { hint: `swebatch ctl last ${run}` });
    if (command === undefined) return await watch(root, args);
    if (command === 'engines') return showEngines(root, args);
    if (command === 'stop') return stop(root, args);
    const answered = await askRun({ root, run, command, argument: value ?? null, by: asker() });
    if (!answered.done) throw new UserError(`${answered.run}: ${inert(answered.answer)}`);
    if (args.json) printJson(answered);
    else say(`${answered.run}: ${inert(answered.answer)}`);
    return EXIT.done;
  },
});

type CtlArgs = Args<typeof ctlFlags>;

async function watch(root: string, args: CtlArgs): Promise<number> {
  if (args.json) return showEngines(root, args);
  using store = openForReading(root);
  await follow(store, root, requireRun(store, args.run));
  return EXIT.done;
}

/** Engines and limiters, as the run wrote them down a moment ago. */
function showEngines(root: string, { run: name, json: asJson }: CtlArgs): number {
  using store = openForReading(root);
  const run = requireRun(store, name);
  const state = readLiveState(store, run.id);
  if (!state) throw new UserError(`${run.name} wrote down no engines; ${howItIs(run.status)}`);
  printResult(asJson, { run: run.name, status: run.status, ...state }, () => stateLines(state).join('\n'));
  return EXIT.done;
}

/** A user without a name, as in some containers, has a number. */
function asker(): string {
  try {
    return `${userInfo().username}@${hostname()} (terminal)`;
  } catch {
    return `uid ${process.getuid?.() ?? '?'}@${hostname()} (terminal)`;
  }
}

function stop(root: string, { run, now, json: asJson }: CtlArgs): number {
  const stopped = stopRun(root, run, now);
  if (asJson) printJson(stopped);
  else if (stopped.pid === null) say(`no process works on ${stopped.run}; ${howItIs(stopped.status)}`);
  else
    say(
      `told pid ${stopped.pid} to stop ${stopped.run}; ${now ? 'it cuts short what runs and captures it' : 'what runs finishes'}. Go on later with ${commandOn(root, `resume ${stopped.run}`)}`,
    );
  return EXIT.done;
}
