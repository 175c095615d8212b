/**
 * What differed between two sides beside the model: configuration facts, the rows of the dataset and the images that the matched instances
 * ran on. A file of another tool says little about how it was made. A fact that only one side states does not count as a difference; the
 * comparison names sides that state none.
 */
import { type FactDifference, factDifferences } from '../measure/runFacts.ts';
import type { Pair } from './matching.ts';
import type { Side, SideResult } from './side.ts';

const SHOWN = 10;

export function conditionDifferences(a: Side, b: Side, pairs: readonly Pair[]): FactDifference[] {
  const rows = changed(pairs, (r) => r.rowHash);
  const images = changed(pairs, (r) => r.imageDigest);
  const sameRows = pairs.length > 0 && rows.known === pairs.length && rows.ids.length === 0;
  const sharedOnly = a.partial || b.partial;
  return [
    ...difference('dataset.rows', 'dataset', rows),
    ...difference('images', 'resources', images),
    ...factDifferences(a.facts, b.facts, { sharedOnly }).map((d) =>
      // The same rows under another path are the same dataset.
      d.key === 'dataset.source' && sameRows ? { ...d, loud: false } : d,
    ),
  ].sort((x, y) => Number(y.loud) - Number(x.loud));
}

interface Changed {
  readonly known: number;
  readonly ids: readonly string[];
}

function changed(pairs: readonly Pair[], of: (r: SideResult) => string | null): Changed {
  const known = pairs.filter((p) => of(p.a) !== null && of(p.b) !== null);
  return {
    known: known.length,
    ids: known.filter((p) => of(p.a) !== of(p.b)).map((p) => p.instanceId),
  };
}

function difference(key: string, group: FactDifference['group'], { known, ids }: Changed): FactDifference[] {
  if (ids.length === 0) return [];
  const more = ids.length - SHOWN;
  return [
    {
      key,
      group,
      loud: true,
      a: `${known} known`,
      b: `${ids.length} not the same`,
      diff: [
        `not the same for ${ids.length} of ${known} matched instances:`,
        ...ids.slice(0, SHOWN),
        ...(more > 0 ? [`and ${more} more`] : []),
      ],
    },
  ];
}

/** Labels of sides that do not say how they were run. */
export const sidesWithoutConditions = (sides: readonly Side[]): string[] =>
  sides.filter((s) => s.partial && !saysHow(s)).map((s) => s.label);

/** A published trajectory holds its configuration, a report holds none. */
const saysHow = ({ facts }: Side): boolean => [...facts.keys()].some((key) => key.startsWith('agent.'));
