/** `swebatch import`: results of others as runs of ours: folders and logs of other runners, and what the harness or sb-cli reported. */

import { z } from 'zod';
import { plural } from '../../base/text/numbers.ts';
import { READ_FORMATS } from '../../formats/formats.ts';
import { importResults } from '../../results/import/importResults.ts';
import { resultsRoot } from '../../run/resultsRoot.ts';
import { filledText, runName } from '../flags/checks.ts';
import { defineVerb, flags, json, output, string } from '../flags/verb.ts';
import { commandOn, EXIT, printJson, say, sayNotice } from '../terminal/context.ts';

const importFlags = flags({
  source: {
    ...string(`${READ_FORMATS.slice(0, -1).join(', ')}, or ${READ_FORMATS.at(-1)}`),
    place: 'required',
    check: z.string().min(1),
  },
  output,
  runId: {
    ...string("name of the run; default: the source's"),
    check: runName('must be 1 to 100 of A-Z a-z 0-9 _ . -'),
  },
  subset: filledText('its dataset, so that it can be graded and reported by repository'),
  split: filledText('split of the dataset'),
  dataDir: filledText('folder with local copies of the named datasets'),
  report: filledText(
    "run report of the harness or of sb-cli, a leaderboard entry's results.json, or a folder of instance reports: the verdicts",
  ),
  json,
});
export const importVerb = defineVerb({
  name: 'import',
  describe: 'take what another tool ran or graded as a run',
  flags: importFlags,
  examples: [
    ['$0 import gpt.run.json --subset verified', 'verdicts of the harness or of sb-cli'],
    ['$0 import ../mini-out --subset verified --report gpt.run.json', 'with dataset and verdicts'],
  ],
  async run(args) {
    const root = resultsRoot(args.output);
    const { run, instances, trials, verdicts } = await importResults(
      {
        source: args.source,
        results: root,
        name: args.runId,
        ...(args.subset && { dataset: { subset: args.subset, split: args.split } }),
        dataDir: args.dataDir,
        report: args.report,
      },
      { env: process.env, tell: sayNotice },
    );
    if (args.json) printJson({ run, instances, trials, verdicts: verdicts.judged });
    say(
      `imported ${trials === undefined ? '' : `${plural(trials, 'trial')} of `}${plural(instances, 'instance')}${verdicts.found > 0 ? ` and ${plural(verdicts.judged, 'verdict')}` : ''} as run ${run}; look at it with ${commandOn(root, `report ${run}`)}`,
    );
    return EXIT.done;
  },
});
