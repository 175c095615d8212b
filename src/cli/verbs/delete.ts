/** `swebatch delete`: removes a run, its rows and its folder. */
import { createInterface } from 'node:readline/promises';
import { inert } from '../../base/text/inert.ts';
import { deleteRun, requireDeletable } from '../../run/askRun.ts';
import { openForWriting, requireRun, resultsRoot } from '../../run/resultsRoot.ts';
import { UserError } from '../../run/userError.ts';
import { spentNano } from '../../store/records/runs.ts';
import { classCounts } from '../../store/records/trials.ts';
import { defineVerb, flags, json, namedRun, output, toggle } from '../flags/verb.ts';
import { EXIT, printJson, say } from '../terminal/context.ts';
import { countsText, spentText } from '../terminal/table.ts';

export const deleteVerb = defineVerb({
  name: 'delete',
  describe: 'delete a run: its rows in the database and its folder; asks first',
  flags: flags({
    run: namedRun,
    yes: { alias: 'y', ...toggle('do not ask') },
    output,
    json,
  }),
  examples: [['$0 delete run-20261122-1a2b', 'shows what would be lost, and asks']],
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
    const left = await deleteRun(store, root, run);
    if (left.length > 0)
      say(
        `an engine does not answer and still has ${left.length} end state(s) of it: ${left.slice(0, 5).join(', ')}; remove them there with "docker rmi"`,
      );
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
