/** Sides that are files or folders of other runners. What holds more than verdicts is read as a run: epochs, rewards, cost and tokens are compared too. */
import { existsSync } from 'node:fs';
import { percent } from '../../base/text/numbers.ts';
import { recogniseSource } from '../../formats/formats.ts';
import { type Side, sideOfArm } from '../../report/compare/side.ts';
import type { Caller } from '../../run/caller.ts';
import { openForReading, requireRun } from '../../run/resultsRoot.ts';
import type { Store } from '../../store/open.ts';
import { loadRunData } from '../../store/records/reportQueries.ts';
import { type OpenedSource, openSource } from '../import/openSource.ts';
import { type NamedSide, readFileSide, runNamed, sidesOfRun } from './sides.ts';

/** By selector; runs are not among them. Tells of each what it was read as. */
export async function foreignSides(
  selectors: readonly string[],
  { root, store, caller }: { root: string; store: () => Store; caller: Pick<Caller, 'env' | 'tell'> },
): Promise<ReadonlyMap<string, readonly NamedSide[]>> {
  const found = new Map<string, readonly NamedSide[]>();
  for (const selector of new Set(selectors)) {
    if (!existsSync(selector) || runNamed(selector, root, store)) continue;
    const kind = await recogniseSource(selector);
    const opened = kind && !kind.verdictsAlone ? await openSource(selector, caller) : null;
    if (opened) found.set(selector, sidesOf(opened));
    else {
      const side = readFileSide(selector);
      caller.tell({ level: 'info', text: `${selector}: ${lineOf(side, kind?.words)}` });
      found.set(selector, [{ side, from: null }]);
    }
  }
  return found;
}

/** What another runner left, read as a run of a results root of its own. Null for the name of a run, and for what holds verdicts alone. The caller closes the store. */
export async function openForeignRun(
  selector: string,
  { root, store, caller }: { root: string; store: () => Store; caller: Pick<Caller, 'env' | 'tell'> },
): Promise<{ readonly store: Store; readonly sides: readonly NamedSide[] } | null> {
  if (!existsSync(selector) || runNamed(selector, root, store)) return null;
  const kind = await recogniseSource(selector);
  // Files of verdicts alone are compared as they stand, with what they leave open.
  const opened = kind && !kind.verdictsAlone ? await openSource(selector, caller) : null;
  if (!opened) return null;
  const own = openForReading(opened.root);
  return { store: own, sides: sidesOfRun(own, requireRun(own, opened.run)) };
}

function sidesOf({ root, run }: OpenedSource): NamedSide[] {
  using store = openForReading(root);
  const data = loadRunData(store, requireRun(store, run).id)!;
  // Nothing of it is a run of the results root: a verdict about it is not recorded.
  return data.arms.map(({ name }) => ({ side: sideOfArm(data, name), from: null }));
}

/** An entry of the leaderboard says nothing of other instances: its number is over the whole dataset. */
function lineOf(side: Side, words = 'a file of another tool'): string {
  const results = [...side.results.values()];
  const valid = results.filter(({ scores }) => scores.length > 0);
  const resolved = valid.filter(({ scores }) => scores[0]).length;
  const of = side.open ? side.open.total : valid.length;
  const rate = of
    ? `${resolved} of ${of} resolved = ${percent(resolved / of)}`
    : side.open
      ? `${resolved} resolved, of how many is not said`
      : 'no verdicts';
  const missing = [...Map.groupBy(results, ({ why }) => why)].flatMap(([why, group]) =>
    why === null ? [] : [`missing ${group.length} (${why.replaceAll('_', ' ')})`],
  );
  const total = side.facts.get('dataset.instances');
  const printed =
    typeof total === 'number' && total > 0 && total !== valid.length
      ? [
          `its own number is ${resolved} of ${total} = ${percent(resolved / total)}, with what has no verdict as a failure`,
        ]
      : [];
  return `read as ${words}: ${[`${results.length} instances`, rate, ...missing, ...printed].join('; ')}`;
}
