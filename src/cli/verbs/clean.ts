/**
 * `swebatch clean`: removes what dead processes left in every place that the record names, and end states that no record needs; never another live
 * run's.
 */
import { existsSync } from 'node:fs';
import { inert } from '../../base/text/inert.ts';
import type { Reaped } from '../../environment/environmentKind.ts';
import { engineSilent } from '../../run/places/engines.ts';
import { cleanPlaces, DEFAULT_PLACE } from '../../run/places/sittingEngines.ts';
import { databasePath, openForReading, resultsRoot } from '../../run/resultsRoot.ts';
import { defineVerb, flags, json, output, toggle } from '../flags/verb.ts';
import { EXIT, printResult, say } from '../terminal/context.ts';
import { table } from '../terminal/table.ts';

export const cleanVerb = defineVerb({
  name: 'clean',
  describe: 'remove containers, pods and end states that dead runs left; those of a live run stay',
  flags: flags({
    output,
    dryRun: toggle('show what would be removed'),
    json,
  }),
  examples: [
    ['$0 clean --dry-run', 'what is left over, on the engine and every cluster that a run here used'],
  ],
  async run({ dryRun, json: asJson, output: given }) {
    const root = resultsRoot(given);
    using store = existsSync(databasePath(root)) ? openForReading(root) : undefined;
    const { places, needsDefault } = await cleanPlaces(process.env, store, { dryRun });
    const silent = places.filter((one) => one.silent !== undefined);
    const here = silent.find(({ place }) => place === DEFAULT_PLACE);
    if (here && needsDefault) throw engineSilent(here.silent!, process.env);
    const cells = places.flatMap((one) => rowsOf(one, dryRun));
    const head = [
      ...['container, pod or image', 'where', 'run', 'instance', 'host', 'pid'],
      dryRun ? 'would be removed' : 'removed',
    ];
    if (!asJson && cells.length === 0) say('nothing to remove');
    else printResult(asJson, documentOf(places), () => table(head, cells));
    for (const { what, place, kept } of places)
      if (kept.length > 0)
        say(
          what === 'end state'
            ? `${kept.length} end state(s) of live or foreign owners, of trials that can still be graded, or of no attempt in ${root} were left alone${onOther(place)}`
            : `${kept.length} ${what}(s) of live or foreign owners were left alone${onOther(place)}`,
        );
    const unknown = silent.filter(({ place }) => place !== DEFAULT_PLACE);
    for (const { place, silent: why } of unknown)
      say(`${inert(place)} does not answer, so what is left there is not known: ${inert(why!)}`);
    if (places.some(({ failed }) => failed.length > 0)) return EXIT.storage;
    return unknown.length > 0 ? EXIT.incomplete : EXIT.done;
  },
});

const onOther = (place: string): string => (place === DEFAULT_PLACE ? '' : ` (${inert(place)})`);

const rowsOf = ({ place, orphans, removed }: Reaped, dryRun: boolean): string[][] =>
  orphans.map((one) => [
    ...[one.name, place, one.run, one.instance, one.host].map(inert),
    String(one.pid),
    dryRun || removed.includes(one) ? 'yes' : 'no',
  ]);

/** Containers, end states, and what is left in other places. */
function documentOf(places: readonly Reaped[]) {
  const all = (what: string) => {
    const own = places.filter((one) => one.what === what);
    const each = (key: 'orphans' | 'removed' | 'failed' | 'kept') =>
      own.flatMap((one) => one[key].map((left) => ({ ...left, place: one.place })));
    return {
      orphans: each('orphans'),
      removed: each('removed'),
      failed: each('failed'),
      kept: each('kept'),
    };
  };
  return {
    ...all('container'),
    images: all('end state'),
    elsewhere: places.filter(({ what }) => what !== 'container' && what !== 'end state'),
    silent: places.flatMap(({ place, silent }) => (silent === undefined ? [] : [{ place, reason: silent }])),
  };
}
