/** `swebatch clean`: removes containers whose owner is provably dead, and never another live run's. */
import { inert } from '../../base/text/inert.ts';
import { reap } from '../../environment/docker/reaper.ts';
import { engineInfo } from '../../environment/engines/engineInfo.ts';
import { engineSilent } from '../../service/images/engines.ts';
import { json } from '../flags/commonFlags.ts';
import { flags } from '../flags/flags.ts';
import { defineVerb } from '../flags/verb.ts';
import { EXIT, printResult, say } from '../terminal/context.ts';
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
    const engine = await engineInfo();
    if (!engine.ok) throw engineSilent([engine.message], process.env);
    const result = await reap({ dryRun });
    const head = ['container', 'run', 'instance', 'host', 'pid', dryRun ? 'would be removed' : 'removed'];
    const cells = result.orphans.map((o) => [
      ...[o.name, o.run, o.instance, o.host].map(inert),
      String(o.pid),
      dryRun || result.removed.some((r) => r.id === o.id) ? 'yes' : 'no',
    ]);
    if (!asJson && cells.length === 0) say('nothing to remove');
    else printResult(asJson, result, () => table(head, cells));
    if (result.kept.length > 0)
      say(`${result.kept.length} container(s) of live or foreign owners were left alone`);
    return result.failed.length > 0 ? EXIT.storage : EXIT.done;
  },
});
