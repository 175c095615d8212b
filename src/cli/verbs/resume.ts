/** `swebatch resume RUN`: go on with a run from its record alone; nothing sealed runs again unless it is asked for by class or id. */
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
import { trialLines } from '../../store/records/trialResults.ts';
import { reopenTrials } from '../../store/records/trials.ts';
import { executeRun, withRunLock } from '../execute.ts';
import { integer } from '../flags/checks.ts';
import { json, namedRun, output } from '../flags/commonFlags.ts';
import { type Args, flags } from '../flags/flags.ts';
import { costLimit, evaluate, progress } from '../flags/runFlags.ts';
import { defineVerb } from '../flags/verb.ts';
import { thisProcess } from '../terminal/caller.ts';
import { env, say } from '../terminal/context.ts';

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
  workers: { alias: 'w', type: 'number', check: integer(1), describe: 'slots from now on' },
  costLimit: {
    ...costLimit,
    describe: 'budget of the whole run from now on, in dollars; none: no limit',
  },
  allowConfigChange: {
    type: 'boolean',
    default: false,
    describe: 'go on though an image is another one now; recorded as a boundary',
  },
  evaluate,
  progress,
  json,
});
type ResumeArgs = Args<typeof resumeFlags>;

export const resumeVerb = defineVerb({
  name: 'resume',
  describe: 'go on with a run after whatever happened; nothing sealed runs again unless asked for',
  flags: resumeFlags,
  examples: [
    ['$0 resume last', 'what was interrupted or never started'],
    ['$0 resume last --retry infra', 'and what failed for reasons that are not the model’s'],
    ['$0 resume last --retry --id django__django-11099', 'one instance once more; all attempts are kept'],
  ],
  async run(args) {
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
});

/** What this sitting does otherwise than the one before stands in the record, and in run.json. */
function recordChanges(store: Store, run: RunRow, planned: PlannedConfig, args: ResumeArgs): void {
  const changed = [
    { key: 'run.workers', was: planned.run.workers, is: args.workers },
    { key: 'run.cost_limit', was: (run.budget_nano ?? 0) / 1e9, is: args.costLimit },
    { key: 'grading.enabled', was: planned.grading.enabled, is: args.evaluate },
  ].filter(({ was: before, is }) => is !== undefined && is !== before);
  if (changed.length > 0) insertEvent(store, run.id, new Date().toISOString(), 'limit_changed', { changed });
}

function reopen(store: Store, run: RunRow, args: ResumeArgs): void {
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
