/** `swebatch baseline`: the run that nightly runs are compared with. */
import { z } from 'zod';
import { inert } from '../../base/text/inert.ts';
import {
  openForReading,
  openForWriting,
  refuseShard,
  requireRun,
  resultsRoot,
} from '../../run/resultsRoot.ts';
import { UserError } from '../../run/userError.ts';
import { listBaselines, removeBaseline, setBaseline } from '../../store/records/baselines.ts';
import { defineVerb, flags, json, output, string } from '../flags/verb.ts';
import { EXIT, printJson, printResult, say } from '../terminal/context.ts';

const baselineFlags = flags({
  action: { choices: ['set', 'show', 'remove'], place: 'required' },
  run: { ...string('for set: name, unique prefix, or "last"'), place: 'optional' },
  name: { ...string('several baselines can be kept'), default: 'default', check: z.string().min(1) },
  output,
  json,
});

export const baselineVerb = defineVerb({
  name: 'baseline',
  describe: 'set, show or remove the run that nightly runs are compared with',
  flags: baselineFlags,
  examples: [
    ['$0 baseline set nightly-0821', 'compare later with "baseline"'],
    ['$0 baseline show', 'all that are set'],
  ],
  async run(args) {
    const root = resultsRoot(args.output);
    if (args.action === 'show') {
      using store = openForReading(root);
      const rows = listBaselines(store);
      const lines = rows.map((r) => `${inert(r.name)}\t${inert(r.run)}\t${r.set_at}`);
      const listed = rows.map(({ name, run, set_at }) => ({ name, run, set_at }));
      printResult(args.json, listed, () => lines.join('\n') || 'no baseline is set');
      return EXIT.done;
    }
    using store = openForWriting(root);
    if (args.action === 'remove') {
      if (!removeBaseline(store, args.name)) throw new UserError(`no baseline "${args.name}" is set`);
      say(`baseline ${args.name} removed`);
      return EXIT.done;
    }
    if (args.name === 'last')
      throw new UserError(
        '"last" cannot be the name of a baseline: --baseline last means the newest comparable run',
      );
    if (!args.run) throw new UserError('baseline set needs a run', { hint: 'swebatch baseline set RUN' });
    const run = requireRun(store, args.run);
    refuseShard(run, 'a baseline is a whole run');
    if (run.status !== 'complete')
      say(`warning: ${run.name} is ${run.status}; its missing trials cannot be compared`);
    setBaseline(store, args.name, run.id, new Date().toISOString());
    if (args.json) printJson({ name: args.name, run: run.name });
    else say(`baseline ${args.name}: ${run.name}`);
    return EXIT.done;
  },
});
