/** `datasets add` and `datasets check` in the terminal: what was found, and a table of what will not run. */
import { inert } from '../../base/text/inert.ts';
import type { CheckedDataset, Unfit } from '../../run/datasets/checkDataset.ts';
import { table } from './table.ts';

const SHOWN = 20;

/** One line for each reason, however many instances have it. */
function reasons(unfit: readonly Unfit[]): string[] {
  const groups = [...Map.groupBy(unfit, ({ what, why }) => `${what}\n${why}`).values()];
  const rows = groups
    .sort((a, b) => b.length - a.length)
    .map((group) => [
      String(group.length),
      group[0]!.what,
      inert(group[0]!.why),
      inert(group[0]!.instance_id),
    ]);
  const more = rows.length - SHOWN;
  return [
    '',
    table(['instances', 'what', 'why', 'such as'], rows.slice(0, SHOWN)),
    ...(more > 0 ? [`and ${more} more reasons; --json has all of them`] : []),
  ];
}

export const checkText = (found: CheckedDataset): string =>
  [
    `${inert(found.path)}`,
    `${found.instances} instances: ${Object.entries(found.kinds)
      .map(([kind, count]) => `${count} ${inert(kind)}`)
      .join(', ')}`,
    `${found.gradable} can be graded; ${found.images} images`,
    `licence ${found.licence === null ? 'not stated' : inert(found.licence)}; revision ${found.revision ?? 'not known'}; sha256 ${found.sha256}`,
    ...(found.unfit.length > 0 ? reasons(found.unfit) : []),
  ].join('\n');
