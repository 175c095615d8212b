/** `swebatch run`: an agent over a selection of a dataset; the same run id again goes on where it stopped. `swebatch resume` does so by name. */

import { z } from 'zod';
import { MOST } from '../../base/plausible.ts';
import { nearest } from '../../base/text/closest.ts';
import { errorText } from '../../base/text/errorText.ts';
import { inert } from '../../base/text/inert.ts';
import { plural } from '../../base/text/numbers.ts';
import { PACKAGE_CONFIGS } from '../../config/readConfig.ts';
import { headOf } from '../../dataset/dataset.ts';
import { imageOf } from '../../dataset/instance.ts';
import { canBuild, DEMO_IMAGES } from '../../demo/baseImage.ts';
import { engineClient } from '../../environment/places/chosenEngine.ts';

import { EXIT_CLASSES } from '../../outcome.ts';
import { beginRun, goOnWithRun, JUDGED, type Retried } from '../../run/begin.ts';

import type { Caller } from '../../run/caller.ts';

import { armCrash } from '../../run/control/crash.ts';
import { preflight, wouldRefuse } from '../../run/plan/preflight.ts';
import type { ResolvedConfig } from '../../run/plan/resolveConfig.ts';
import { plan } from '../../run/plan.ts';
import {
  hasBegun,
  makeAndOpen,
  openForReading,
  openForWriting,
  requireRun,
  resultsRoot,
} from '../../run/resultsRoot.ts';
import { UserError } from '../../run/userError.ts';
import { runAwaitsVerdict } from '../../store/records/baselines.ts';
import { conclude, showNight } from '../conclude.ts';
import { integer } from '../flags/checks.ts';
import {
  checkNight,
  costLimit,
  evaluateFlag,
  policyOf,
  progress,
  runFlags,
  runOptionsOf,
} from '../flags/runFlags.ts';
import { defineVerb, flags, json, namedRun, output, string, toggle } from '../flags/verb.ts';
import { commandOn, EXIT, env, say } from '../terminal/context.ts';
import { thisProcess } from '../terminal/thisProcess.ts';

export const runVerb = defineVerb({
  name: 'run',
  describe: 'run an agent over a dataset; the same --run-id continues where it stopped',
  flags: runFlags,
  examples: [
    ['$0 run --subset verified --slice 0:5 -m gpt-5.4 -w 4 --evaluate', 'five instances, graded'],
    ['$0 run --subset lite -c swebench.yaml -c agent.step_limit=100 -m gpt-5.4', 'with a configuration'],
    ['$0 run --subset data.jsonl -m a -m b --epochs 3 --dry-run', 'the plan of two arms and three epochs'],
  ],
  async run(args) {
    armCrash(env('SWEBATCH_CRASH_AT'));
    checkNight(args);
    const caller = thisProcess(args.progress);
    const planned = await plan(runOptionsOf(args), caller);
    const { request, resolved } = planned;
    // Checks of everything that ends or judges a run as a whole belong here.
    if (request.shard && args.baseline !== undefined)
      throw new UserError('--baseline judges a whole run, and a shard is a part of one', {
        hint: 'run the shards without it, "swebatch join" them, and judge with "swebatch compare BASELINE RUN --gate"',
      });
    if (args.dryRun) {
      if (args.baseline !== undefined) await checkBaseline(planned.options.results, args.baseline, request);
      const checked = { ...resolved, selected: request.selected };
      for (const problem of await wouldRefuse(checked, caller, args.online))
        say(inert(`warning: a run would be refused: ${problem}`));
      const [{ dryRun }, { printPlan }] = await Promise.all([
        import('../../run/plan/dryRun.ts'),
        import('../terminal/printPlan.ts'),
      ]);
      return printPlan(await dryRun(planned, caller), request, args.json);
    }
    const root = planned.options.results;
    if (resolved.replacedBy !== null && !resolved.replacedBy.startsWith(PACKAGE_CONFIGS))
      await tellReplaced(resolved, resolved.replacedBy, caller);
    await preflight({ ...resolved, selected: request.selected }, caller, !hasBegun(root, request.name));
    await buildBundledImages(request.selected.map((row) => imageOf(headOf(row))));
    using store = makeAndOpen(root);
    if (args.baseline) {
      const { mustPassWarning, REMEASURE_DEFAULT, requireBaseline } = await nights();
      requireBaseline(store, args.baseline, request);
      const asked = { ...policyOf(args), again: args.remeasure ?? REMEASURE_DEFAULT };
      const text = mustPassWarning(asked, request.selected.length);
      if (text !== false) caller.tell({ level: 'warning', text });
    }
    const code = conclude(
      await beginRun(store, planned, caller, { judged: args.baseline !== undefined }),
      args.json,
    );
    // A night whose budget ended is judged on what it has, without spending more; it keeps the exit code of the budget.
    const ended = code === EXIT.budget;
    if (!args.baseline) return code;
    if (!(code === EXIT.done || code === EXIT.incomplete || ended)) return code;
    const of = { results: root, run: request.name };
    const verdict = await showNight(store, of, ended ? { ...args, remeasure: 0 } : args);
    return ended || verdict === EXIT.done ? code : verdict;
  },
});

/** A note on the agents in use: with another tool's file a person may mean its agent, or only its prices. */
async function tellReplaced(resolved: ResolvedConfig, file: string, { cwd, tell }: Caller): Promise<void> {
  const { agentLine, agentOrigins } = await import('../../run/plan/agentOrigins.ts');
  const lines = new Set((await agentOrigins(resolved, cwd)).map(agentLine));
  tell({
    level: 'note',
    text: `${file} replaces the default configuration: ${[...lines].join('; ')}`,
  });
}

/** Most runs are compared with nothing, and have no plan to show: that code is loaded when it is asked for. */
const nights = async () => ({
  ...(await import('../../results/night/gateRun.ts')),
  ...(await import('../../report/gate/rules.ts')),
});

async function checkBaseline(root: string, baseline: string, run: { readonly name: string }): Promise<void> {
  if (baseline === 'last') return;
  const { requireBaseline } = await nights();
  using store = openForReading(root);
  requireBaseline(store, baseline, run);
}

/** The bundled dataset works in an empty folder: no registry has its images, and the program builds them. */
async function buildBundledImages(images: readonly string[]): Promise<void> {
  if (!(await someMissing(images.filter((image) => image.startsWith(DEMO_IMAGES))))) return;
  if (!canBuild())
    throw new UserError('the images of the bundled dataset are not on the engine', {
      hint: 'there is no docker command here to build them: run "swebatch images build demo" where there is one',
    });
  say('the images of the bundled dataset are not here; they are built now');
  try {
    const { buildDemoImages } = await import('../../demo/demoDataset.ts');
    const { built } = await buildDemoImages(say);
    say(`${plural(built.length, 'image')} built`);
  } catch (error) {
    throw new UserError(errorText(error));
  }
}

/** Asks the engine itself. An engine that does not answer counts as missing nothing: the checks report it. */
async function someMissing(images: readonly string[]): Promise<boolean> {
  if (images.length === 0) return false;
  const docker = engineClient();
  const missing = await Promise.all(
    [...new Set(images)].map((image) =>
      docker
        .getImage(image)
        .inspect()
        .then(
          () => false,
          (error: { statusCode?: number }) => error.statusCode === 404,
        ),
    ),
  );
  return missing.includes(true);
}

const RETRIED: readonly string[] = [...EXIT_CLASSES, ...JUDGED];

const resumeFlags = flags({
  run: namedRun,
  output,
  retry: {
    ...string(
      `also run sealed trials of this class (${EXIT_CLASSES.join(', ')}) or with this verdict (${JUDGED.join(', ')}) again, or those named by --id`,
    ),
    valueOptional: true,
    check: z
      .string()
      .refine((c) => c === '' || RETRIED.includes(c), {
        error: ({ input }) => `must be one of ${RETRIED.join(', ')}${nearest(String(input), RETRIED)}`,
      })
      .transform((c) => (c || undefined) as Retried | undefined)
      .optional(),
  },
  id: { ...string('run these instances once more: ids, or unique parts of them'), list: true },
  workers: { alias: 'w', ...integer(1, 'number of slots from now on', MOST.atOnce) },
  costLimit: {
    ...costLimit,
    describe: 'budget of the whole run from now on, in dollars; none: no limit',
  },
  allowConfigChange: toggle('continue even if an image has changed; recorded as a boundary'),
  evaluate: evaluateFlag,
  progress,
  json,
});

/** Goes on with a run from its record alone; nothing sealed runs again unless it is asked for by class or id. */
export const resumeVerb = defineVerb({
  name: 'resume',
  describe: 'continue a run; finished trials run again only if requested',
  flags: resumeFlags,
  examples: [
    ['$0 resume last', 'what was interrupted or never started'],
    ['$0 resume last --retry infra', 'also trials that failed because of infrastructure'],
    ['$0 resume last --retry unresolved', 'also trials that were graded unresolved'],
    ['$0 resume last --retry --id django__django-11099', 'one instance once more; all attempts are kept'],
  ],
  async run(args) {
    armCrash(env('SWEBATCH_CRASH_AT'));
    const root = resultsRoot(args.output);
    using store = openForWriting(root);
    const outcome = await goOnWithRun(
      store,
      {
        results: root,
        run: args.run,
        workers: args.workers,
        costLimit: args.costLimit,
        evaluate: args.evaluate,
        allowConfigChange: args.allowConfigChange,
        retry: args.retry,
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
