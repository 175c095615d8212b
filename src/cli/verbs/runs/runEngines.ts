/** `swebatch engines ls | add | drain | remove RUN`: the engines of a run while it works. */
import { z } from 'zod';
import { inert } from '../../../base/text/inert.ts';
import { engineLine, readEngineLine } from '../../../environment/places/engines/engineSpec.ts';
import { askRun } from '../../../run/askRun.ts';
import { openForReading, requireRun, resultsRoot } from '../../../run/resultsRoot.ts';
import { UserError } from '../../../run/userError.ts';
import { type EngineLine, enginesOfRun } from '../../../store/live/engineLeases.ts';
import { integer } from '../../flags/checks.ts';
import { json, namedRun, output } from '../../flags/commonFlags.ts';
import { type Args, flags } from '../../flags/flags.ts';
import { defineVerb } from '../../flags/verb.ts';
import { asker } from '../../terminal/asker.ts';
import { EXIT, printJson, printResult, say } from '../../terminal/context.ts';
import { table } from '../../terminal/table.ts';

const enginesFlags = flags({
  action: {
    type: 'string',
    choices: ['ls', 'add', 'drain', 'remove'],
    place: 'required',
    describe:
      'ls: engines with state, slots and trials; add: one more takes trials; drain: no new trials there; remove: its trials end at once and run again elsewhere',
  },
  run: namedRun,
  engine: {
    type: 'string',
    place: 'optional',
    describe: 'a Docker context or an address, as in environment.hosts: lab2, ssh://me@lab2, unix:///PATH',
  },
  slots: { type: 'number', check: integer(0), describe: 'add: trials at one time; default 0, no limit' },
  label: {
    type: 'string',
    list: true,
    check: z.array(z.string().regex(/^[^=\s]+=\S*$/, 'must be NAME=VALUE')).optional(),
    describe: 'add: NAME=VALUE, shown by ls; repeats',
  },
  output,
  json,
});
type EnginesArgs = Args<typeof enginesFlags>;

/** What each action is called where it is asked. */
const REQUESTS = { add: 'join', drain: 'drain', remove: 'remove' } as const;

export const enginesVerb = defineVerb({
  name: 'engines',
  describe: 'engines of a run: list them, add, drain or remove one while it works',
  flags: enginesFlags,
  examples: [
    ['$0 engines ls last', 'state, slots, trials of each engine of the newest run'],
    ['$0 engines add last ssh://me@lab2 --slots 8', 'one more machine for this night'],
    ['$0 engines drain last lab1', 'no new trials there; what runs on it goes on'],
    ['$0 engines remove last lab1', 'now: its trials run again elsewhere, without using up an attempt'],
  ],
  async run(args) {
    const root = resultsRoot(args.output);
    return args.action === 'ls' ? list(root, args) : ask(root, args, args.action as keyof typeof REQUESTS);
  },
});

function list(root: string, { run, json: asJson }: EnginesArgs): number {
  using store = openForReading(root);
  const { id, name } = requireRun(store, run);
  const engines = enginesOfRun(store, id);
  if (engines.length === 0 && !asJson)
    say(`${name} has had one engine, or none: its record has no list of them`);
  else printResult(asJson, engines.map(described), () => table(HEAD, engines.map(cells)));
  return EXIT.done;
}

const HEAD = [
  'engine',
  'state',
  'slots',
  'active',
  'done',
  'lost',
  'memory',
  'free',
  'platform',
  'labels',
  'by',
];

const gb = (bytes: number | null): string => (bytes === null ? '' : `${(bytes / 1e9).toFixed(1)} GB`);

function cells(engine: EngineLine): string[] {
  const { name, state, slots, active, done, cut, origin, reason } = engine;
  return [
    ...[inert(name), inert(reason === null ? state : `${state}: ${reason}`)],
    ...[slots === 0 ? 'no limit' : String(slots), String(active), String(done), String(cut)],
    ...[gb(engine.memory_bytes), gb(engine.free_bytes), inert(engine.platform ?? '')],
    inert(
      labelsOf(engine)
        .map(([label, value]) => `${label}=${value}`)
        .join(' '),
    ),
    inert(origin),
  ];
}

function labelsOf({ labels }: EngineLine): [string, string][] {
  try {
    return Object.entries(z.record(z.string(), z.string()).parse(JSON.parse(labels)));
  } catch {
    return []; // another program wrote it
  }
}

const described = (engine: EngineLine) => ({
  name: engine.name,
  state: engine.state,
  since: engine.state_at,
  reason: engine.reason,
  slots: engine.slots,
  active: engine.active,
  done: engine.done,
  lost: engine.cut,
  platform: engine.platform,
  memory_bytes: engine.memory_bytes,
  free_bytes: engine.free_bytes,
  labels: Object.fromEntries(labelsOf(engine)),
  origin: engine.origin,
  joined_at: engine.joined_at,
});

async function ask(root: string, args: EnginesArgs, action: keyof typeof REQUESTS): Promise<number> {
  const { run, json: asJson } = args;
  const argument = argumentOf(args, action);
  const answered = await askRun({ root, run, command: REQUESTS[action], argument, by: asker() });
  if (!answered.done) throw new UserError(`${answered.run}: ${inert(answered.answer)}`);
  if (asJson) printJson(answered);
  else say(`${answered.run}: ${inert(answered.answer)}`);
  return EXIT.done;
}

function argumentOf({ engine, slots, label }: EnginesArgs, action: keyof typeof REQUESTS): string {
  if (engine === undefined)
    throw new UserError(`engines ${action} needs an engine`, {
      hint: `for example: swebatch engines ${action} last ssh://me@lab2`,
    });
  if (action !== 'add') {
    if (slots !== undefined || label) throw new UserError(`--slots and --label belong to "engines add"`);
    return engine;
  }
  const read = readEngineLine(
    [engine, ...(slots === undefined ? [] : [`slots=${slots}`]), ...(label ?? [])].join(' '),
  );
  if (!read.ok) throw new UserError(`engines add: ${read.problem}`);
  return engineLine(read.engine);
}
