/** `swebatch resume RUN`: go on with a run from its record alone; nothing sealed runs again unless it is asked for by class or id. */
import { z } from 'zod';
import { EXIT_CLASSES, type ExitClass } from '../../outcome.ts';
import { goOnWithRun } from '../../run/begin.ts';
import { armCrash } from '../../run/control/crash.ts';
import { openForWriting, requireRun, resultsRoot } from '../../run/resultsRoot.ts';
import { runAwaitsVerdict } from '../../store/records/baselines.ts';
import { conclude } from '../conclude.ts';
import { integer } from '../flags/checks.ts';
import { json, namedRun, output } from '../flags/commonFlags.ts';
import { costLimit, evaluateFlag, progress } from '../flags/runFlags.ts';
import { defineVerb, flags } from '../flags/verb.ts';
import { EXIT, env, say } from '../terminal/context.ts';
import { commandOn } from '../terminal/nextStep.ts';
import { thisProcess } from '../terminal/thisProcess.ts';

const resumeFlags = flags({
  run: namedRun,
  output,
  retry: {
    type: 'string',
    bare: true,
    check: z
      .string()
      .refine(
        (c) => c === '' || (EXIT_CLASSES as readonly string[]).includes(c),
        `must be one of ${EXIT_CLASSES.join(', ')}`,
      )
      .optional(),
    describe: `also run sealed trials of this class again (${EXIT_CLASSES.join(', ')}), or those named by --id`,
  },
  id: { type: 'string', list: true, bare: true, describe: 'run these instances once more' },
  workers: { alias: 'w', type: 'number', check: integer(1), describe: 'number of slots from now on' },
  costLimit: {
    ...costLimit,
    describe: 'budget of the whole run from now on, in dollars; none: no limit',
  },
  allowConfigChange: {
    type: 'boolean',
    default: false,
    describe: 'continue even if an image has changed; recorded as a boundary',
  },
  evaluate: evaluateFlag,
  progress,
  json,
});
export const resumeVerb = defineVerb({
  name: 'resume',
  describe: 'continue a run; finished trials run again only if requested',
  flags: resumeFlags,
  examples: [
    ['$0 resume last', 'what was interrupted or never started'],
    ['$0 resume last --retry infra', 'also trials that failed because of infrastructure'],
    ['$0 resume last --retry --id django__django-11099', 'one instance once more; all attempts are kept'],
  ],
  async run(args) {
    armCrash(env('SWEBATCH_CRASH_AT'));
    const root = resultsRoot(args.output);
    using store = openForWriting(root);
    const outcome = await goOnWithRun(
      store,
      {
        ...{ results: root, run: args.run, workers: args.workers, costLimit: args.costLimit },
        ...{ evaluate: args.evaluate, allowConfigChange: args.allowConfigChange },
        retry: (args.retry || undefined) as ExitClass | undefined,
        instances: args.id?.flatMap((i) => i.split(',')),
      },
      thisProcess(args.progress),
    );
    const code = conclude(outcome, args.json);
    const { id, name } = requireRun(store, outcome.run);
    if (code === EXIT.done && runAwaitsVerdict(store, id))
      say(
        `this night stopped before its verdict, and is no baseline without one: ${commandOn(root, `compare BASELINE ${name} --gate`)} judges it, or "swebatch run" with the flags it began with`,
      );
    return code;
  },
});
