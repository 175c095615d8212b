/** `swebatch clean`: removes containers whose owner is provably dead, and never another live run's. */
import { inert } from '../../base/text/inert.ts';
import { reap } from '../../environment/docker/reaper.ts';
import { json } from '../flags/commonFlags.ts';
import { flags } from '../flags/flags.ts';
import { defineVerb } from '../flags/verb.ts';
import { EXIT, printData, printJson, say } from '../terminal/context.ts';
import { table } from '../terminal/table.ts';

export const cleanVerb = defineVerb({
  name: 'clean',
  describe: 'remove containers that dead runs left; containers of a live run stay',
  flags: flags({
    dryRun: { type: 'boolean', default: false, describe: 'show what would be removed' },
    json,
  }),
  examples: [['$0 clean --dry-run', 'what is left over']],
  async run({ dryRun, json: asJson }) {
    const result = await reap({ dryRun });
    if (asJson) printJson(result);
    else if (result.orphans.length === 0) say('nothing to remove');
    else
      printData(
        table(
          ['container', 'run', 'instance', 'host', 'pid', dryRun ? 'would be removed' : 'removed'],
          result.orphans.map((o) => [
            inert(o.name),
            inert(o.run),
            inert(o.instance),
            inert(o.host),
            String(o.pid),
            dryRun || result.removed.some((r) => r.id === o.id) ? 'yes' : 'no',
          ]),
        ),
      );
    if (result.kept.length > 0)
      say(`${result.kept.length} container(s) of live or foreign owners were left alone`);
    return result.failed.length > 0 ? EXIT.storage : EXIT.done;
  },
});
