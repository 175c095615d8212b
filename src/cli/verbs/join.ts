/** `swebatch join`: shards of a run, from several machines or CI jobs, as one run in one record. */
import { z } from 'zod';
import { plural } from '../../base/text/numbers.ts';
import { toJson } from '../../report/render/document.ts';
import { joinShards } from '../../results/joinShards.ts';
import { resultsRoot } from '../../run/resultsRoot.ts';
import { runName } from '../flags/checks.ts';
import { defineVerb, flags, json, output, string } from '../flags/verb.ts';
import { commandOn, EXIT, printJson, say, sayNotice } from '../terminal/context.ts';

const joinFlags = flags({
  dirs: {
    ...string('results roots of the shards, or folders that hold them'),
    place: 'required',
    list: true,
    check: z.array(z.string().min(1)).min(1),
  },
  output: { ...output, describe: 'results root that the joined run goes to' },
  runId: {
    ...string('the run, where the folders hold shards of several'),
    check: runName('must be 1 to 100 of A-Z a-z 0-9 _ . -'),
  },
  json,
});

export const joinVerb = defineVerb({
  name: 'join',
  describe: 'make one run of the shards of "run --shard K/N"',
  flags: joinFlags,
  examples: [
    ['$0 join shards -o results', 'all results roots below a folder'],
    ['$0 join a/results b/results --run-id night -o results', 'the shards of one run of two machines'],
  ],
  async run(args) {
    const root = resultsRoot(args.output);
    const joined = await joinShards(
      { dirs: args.dirs, results: root, name: args.runId },
      { tell: sayNotice },
    );
    if (args.json) printJson(toJson(joined));
    for (const { shard, root: from, createdAt, status, trials } of joined.shards)
      say(
        `shard ${shard} of ${createdAt.slice(0, 16).replace('T', ' ')}: ${plural(trials, 'trial')}, ${status} (${from})`,
      );
    say(
      `${joined.already ? 'was joined before' : 'joined'} as run ${joined.run}: ${plural(joined.trials, 'trial')} of ${plural(joined.instances, 'instance')}, ${joined.status}; look at it with ${commandOn(root, `report ${joined.run}`)}`,
    );
    return EXIT.done;
  },
});
