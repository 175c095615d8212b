/** `swebatch clean`: removes containers whose owner is provably dead, and end states that no record needs; never another live run's. */
import { existsSync } from 'node:fs';
import { inert } from '../../base/text/inert.ts';
import { engineClient } from '../../environment/places/chosenEngine.ts';
import { engineInfo } from '../../environment/places/engineInfo.ts';
import { reap } from '../../environment/places/leftovers.ts';
import { engineSilent } from '../../run/places/engines.ts';
import { cleanWork } from '../../run/places/sittingEngines.ts';
import { databasePath, openForReading, resultsRoot } from '../../run/resultsRoot.ts';
import { defineVerb, flags, json, output, toggle } from '../flags/verb.ts';
import { EXIT, printResult, say } from '../terminal/context.ts';
import { table } from '../terminal/table.ts';

export const cleanVerb = defineVerb({
  name: 'clean',
  describe: 'remove containers and end states that dead runs left; those of a live run stay',
  flags: flags({
    output,
    dryRun: toggle('show what would be removed'),
    json,
  }),
  examples: [['$0 clean --dry-run', 'what is left over']],
  async run({ dryRun, json: asJson, output: given }) {
    const engine = await engineInfo();
    if (!engine.ok) throw engineSilent([engine.message], process.env);
    const containers = await reap({ dryRun });
    const root = resultsRoot(given);
    using store = existsSync(databasePath(root)) ? openForReading(root) : undefined;
    const images = await cleanWork(engineClient(), store, { dryRun });
    const cells = [...rowsOf(containers, dryRun), ...rowsOf(images, dryRun)];
    const head = [
      ...['container or image', 'run', 'instance', 'host', 'pid'],
      dryRun ? 'would be removed' : 'removed',
    ];
    if (!asJson && cells.length === 0) say('nothing to remove');
    else printResult(asJson, { ...containers, images }, () => table(head, cells));
    if (containers.kept.length > 0)
      say(`${containers.kept.length} container(s) of live or foreign owners were left alone`);
    if (images.kept.length > 0)
      say(
        `${images.kept.length} end state(s) of live or foreign owners, of trials that can still be graded, or of no attempt in ${root} were left alone`,
      );
    return containers.failed.length + images.failed.length > 0 ? EXIT.storage : EXIT.done;
  },
});

interface Found {
  readonly name: string;
  readonly run: string;
  readonly instance: string;
  readonly host: string;
  readonly pid: number;
}

const rowsOf = (
  { orphans, removed }: { readonly orphans: readonly Found[]; readonly removed: readonly Found[] },
  dryRun: boolean,
): string[][] =>
  orphans.map((one) => [
    ...[one.name, one.run, one.instance, one.host].map(inert),
    String(one.pid),
    dryRun || removed.includes(one) ? 'yes' : 'no',
  ]);
