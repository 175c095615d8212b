/** `swebatch resume RUN`: go on with a run from its record alone; nothing sealed runs again unless it is asked for by class or id. */
import type { Argv } from 'yargs';
import { z } from 'zod';
import { dollarsToNano } from '../../money.ts';
import { EXIT_CLASSES } from '../../outcome.ts';
import { armCrash } from '../../runner/control/crash.ts';
import { type PlannedConfig, plannedConfig } from '../../runner/schedule/plannedConfig.ts';
import { preflight } from '../../service/plan/preflight.ts';
import { databasePath, requireRun, resultsRoot } from '../../service/resultsRoot.ts';
import { checkSameImages, tellOtherRevision } from '../../service/start/continuity.ts';
import { UserError } from '../../service/userError.ts';
import { openStore, type Store } from '../../store/open.ts';
import { insertEvent } from '../../store/records/events.ts';
import { type RunRow, runByName, setRunBudget } from '../../store/records/runs.ts';
import { trialLines } from '../../store/records/trialLines.ts';
import { reopenTrials } from '../../store/records/trials.ts';
import { executeRun, withRunLock } from '../execute.ts';
import { checkArgs } from '../flags/runArgs.ts';
import { costLimitOption, jsonOption, outputOption, type Verb } from '../flags/verb.ts';
import { thisProcess } from '../terminal/caller.ts';
import { env, say } from '../terminal/context.ts';
import { PROGRESS_MODES } from '../terminal/progress.ts';

const argsSchema = z.object({
  run: z.string(),
  output: z.string(),
  retry: z
    .string()
    .refine(
      (c) => c === '' || (EXIT_CLASSES as readonly string[]).includes(c),
      `must be one of ${EXIT_CLASSES.join(', ')}`,
    )
    .optional(),
  id: z.array(z.string()).optional(),
  workers: z.number().int().min(1).optional(),
  costLimit: z.number({ error: 'must be a number of dollars, or none' }).min(0).optional(),
  evaluate: z.boolean().optional(),
  allowConfigChange: z.boolean(),
  progress: z.enum(PROGRESS_MODES),
  json: z.boolean(),
});

export const resumeVerb: Verb = {
  command: 'resume <run>',
  describe: 'go on with a run after whatever happened; nothing sealed runs again unless asked for',
  builder: (parser: Argv) =>
    parser
      .positional('run', { type: 'string', demandOption: true, describe: 'name, unique prefix, or "last"' })
      .option('output', outputOption)
      .option('retry', {
        type: 'string',
        describe: `also run sealed trials of this class again (${EXIT_CLASSES.join(', ')}), or those named by --id`,
      })
      .option('id', { type: 'string', array: true, describe: 'run these instances once more' })
      .option('workers', { alias: 'w', type: 'number', requiresArg: true, describe: 'slots from now on' })
      .option('cost-limit', {
        ...costLimitOption,
        describe: 'budget of the whole run from now on, in dollars; none: no limit',
      })
      .option('allow-config-change', {
        type: 'boolean',
        default: false,
        describe: 'go on though an image is another one now; recorded as a boundary',
      })
      .option('evaluate', { type: 'boolean', describe: 'grade predictions as they arrive' })
      .option('progress', {
        choices: PROGRESS_MODES,
        default: 'auto' as const,
        describe: 'bars on a terminal, else lines; json: one event a line on stdout',
      })
      .option('json', jsonOption)
      .example('$0 resume last', 'what was interrupted or never started')
      .example('$0 resume last --retry infra', 'and what failed for reasons that are not the model’s')
      .example(
        '$0 resume last --retry --id django__django-11099',
        'one instance once more; all attempts are kept',
      ),
  async run(argv) {
    const args = checkArgs(argsSchema, argv);
    const caller = thisProcess();
    armCrash(env('SWEBATCH_CRASH_AT'));
    const root = resultsRoot(args.output);
    const store = openStore(databasePath(root));
    try {
      const run = requireRun(store, args.run);
      if (run.imported === 1) throw new UserError(`${run.name} was imported; it has nothing to resume`);
      const planned = plannedConfig(run);
      const { arms, images } = planned;
      const config = {
        ...planned.run,
        ...(args.workers === undefined ? {} : { workers: args.workers }),
      };
      const grading = {
        ...planned.grading,
        ...(args.evaluate === undefined ? {} : { enabled: args.evaluate }),
      };
      await preflight({ arms, run: config, grading }, caller);
      return await withRunLock(store, root, run.name, async () => {
        if (args.costLimit !== undefined)
          setRunBudget(store, run.id, args.costLimit > 0 ? dollarsToNano(args.costLimit) : null);
        recordChanges(store, run, planned, args);
        reopen(store, run, args);
        tellOtherRevision(run, caller);
        await checkSameImages(store, run, arms, { allow: args.allowConfigChange, env: caller.env });
        return executeRun({
          store,
          root,
          run: runByName(store, run.name)!,
          config,
          grading,
          images,
          arms,
          json: args.json,
          progress: args.progress,
        });
      });
    } finally {
      store.close();
    }
  },
};

/** What this sitting does otherwise than the one before stands in the record, and in run.json. */
function recordChanges(
  store: Store,
  run: RunRow,
  planned: PlannedConfig,
  args: z.infer<typeof argsSchema>,
): void {
  const changed = [
    { key: 'run.workers', was: planned.run.workers, is: args.workers },
    { key: 'run.cost_limit', was: (run.budget_nano ?? 0) / 1e9, is: args.costLimit },
    { key: 'grading.enabled', was: planned.grading.enabled, is: args.evaluate },
  ].filter(({ was: before, is }) => is !== undefined && is !== before);
  if (changed.length > 0) insertEvent(store, run.id, new Date().toISOString(), 'limit_changed', { changed });
}

function reopen(store: Store, run: RunRow, args: z.infer<typeof argsSchema>): void {
  const lines = trialLines(store, run.id);
  const ids = new Set(args.id?.flatMap((i) => i.split(',')));
  const unknown = [...ids].filter((id) => !lines.some((l) => l.instance_id === id));
  if (unknown.length > 0) throw new UserError(`run ${run.name} has no instance ${unknown.join(', ')}`);
  const wanted = lines.filter(
    (l) =>
      l.state === 'sealed' &&
      (ids.has(l.instance_id) || (Boolean(args.retry) && ids.size === 0 && l.exit_class === args.retry)),
  );
  if (wanted.length > 0) say(`${wanted.length} sealed trial(s) run again; their earlier attempts are kept`);
  reopenTrials(
    store,
    wanted.map((l) => l.trial_id),
  );
}
