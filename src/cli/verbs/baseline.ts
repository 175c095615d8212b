/** `swebatch baseline`: which run nights are held against. */
import type { Argv } from 'yargs';
import { z } from 'zod';
import { inert } from '../../base/text/terminal.ts';
import { databasePath, openForReading, requireRun, resultsRoot } from '../../service/resultsRoot.ts';
import { UserError } from '../../service/userError.ts';
import { openStore } from '../../store/open.ts';
import { listBaselines, removeBaseline, setBaseline } from '../../store/records/baselines.ts';
import { checkArgs } from '../flags/runArgs.ts';
import { jsonOption, outputOption, type Verb } from '../flags/verb.ts';
import { EXIT, printData, printJson, say } from '../terminal/context.ts';

const argsSchema = z.object({
  action: z.enum(['set', 'show', 'remove']),
  run: z.string().optional(),
  name: z.string().min(1),
  output: z.string(),
  json: z.boolean(),
});

export const baselineVerb: Verb = {
  command: 'baseline <action> [run]',
  describe: 'set, show or remove the run that nights are held against',
  builder: (parser: Argv) =>
    parser
      .positional('action', { choices: ['set', 'show', 'remove'] as const, demandOption: true })
      .positional('run', { type: 'string', describe: 'for set: name, unique prefix, or "last"' })
      .option('name', {
        type: 'string',
        default: 'default',
        describe: 'several baselines can be kept',
        requiresArg: true,
      })
      .option('output', outputOption)
      .option('json', jsonOption)
      .example('$0 baseline set nightly-0821', 'compare later with "baseline"')
      .example('$0 baseline show', 'all that are set'),
  async run(argv) {
    const args = checkArgs(argsSchema, argv);
    const root = resultsRoot(args.output);
    if (args.action === 'show') {
      const store = openForReading(root);
      try {
        const rows = listBaselines(store);
        if (args.json) printJson(rows.map(({ name, run, set_at }) => ({ name, run, set_at })));
        else
          printData(
            rows.map((r) => `${inert(r.name)}\t${inert(r.run)}\t${r.set_at}`).join('\n') ||
              'no baseline is set',
          );
        return EXIT.done;
      } finally {
        store.close();
      }
    }
    const store = openStore(databasePath(root));
    try {
      if (args.action === 'remove') {
        if (!removeBaseline(store, args.name)) throw new UserError(`no baseline "${args.name}" is set`);
        say(`baseline ${args.name} removed`);
        return EXIT.done;
      }
      if (args.name === 'last')
        throw new UserError(
          '"last" is no name for a baseline: --baseline last means the newest comparable run',
        );
      if (!args.run) throw new UserError('baseline set needs a run', { hint: 'swebatch baseline set RUN' });
      const run = requireRun(store, args.run);
      if (run.status !== 'complete')
        say(`warning: ${run.name} is ${run.status}; what it misses cannot be compared`);
      setBaseline(store, args.name, run.id, new Date().toISOString());
      if (args.json) printJson({ name: args.name, run: run.name });
      else say(`baseline ${args.name}: ${run.name}`);
      return EXIT.done;
    } finally {
      store.close();
    }
  },
};
