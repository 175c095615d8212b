/** Sides that are files or folders of other runners. What holds more than verdicts is read as a run: epochs, rewards, cost and tokens are compared too. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { PREDICTIONS, SOURCE_WORDS, type SourceKind } from '../../formats/sourceKind.ts';
import { type Side, sideOfArm } from '../../report/compare/side.ts';
import { percent } from '../../report/render/format.ts';
import type { Caller } from '../../run/caller.ts';
import { openForReading, requireRun } from '../../run/resultsRoot.ts';
import type { Store } from '../../store/open.ts';
import { loadRunData } from '../../store/records/reportQueries.ts';
import { kindOfSource } from '../import/lookAtSource.ts';
import { type OpenedSource, openSource } from '../import/openSource.ts';
import { type NamedSide, readFileSide, runNamed, sidesOfRun } from './sides.ts';

/** Files of verdicts alone: they are compared as they stand, with what they leave open. */
const VERDICTS_ALONE: ReadonlySet<SourceKind | null> = new Set([
  null,
  'results_root',
  'run_report',
  'leaderboard',
  'leaderboard_results',
  'predictions',
  'graded_predictions',
]);

/** By selector; runs are not among them. Tells of each what it was read as. */
export async function foreignSides(
  selectors: readonly string[],
  { root, store, caller }: { root: string; store: () => Store; caller: Pick<Caller, 'env' | 'tell'> },
): Promise<ReadonlyMap<string, readonly NamedSide[]>> {
  const found = new Map<string, readonly NamedSide[]>();
  for (const selector of new Set(selectors)) {
    if (!existsSync(selector) || runNamed(selector, root, store)) continue;
    const kind = kindOfSource(selector);
    const opened = isVerdictsAlone(selector, kind) ? null : await openSource(selector, caller);
    if (opened) found.set(selector, sidesOf(opened));
    else {
      const side = readFileSide(selector);
      caller.tell({ level: 'info', text: `${selector}: ${lineOf(side, kind)}` });
      found.set(selector, [{ side, from: null }]);
    }
  }
  return found;
}

/** What another runner left, read as a run of a results root of its own. */
export interface ForeignRun {
  readonly store: Store;
  readonly sides: readonly NamedSide[];
}

/** Null for the name of a run, and for what holds verdicts alone. The caller closes the store. */
export async function openForeignRun(
  selector: string,
  { root, store, caller }: { root: string; store: () => Store; caller: Pick<Caller, 'env' | 'tell'> },
): Promise<ForeignRun | null> {
  if (!existsSync(selector) || runNamed(selector, root, store)) return null;
  const kind = kindOfSource(selector);
  const opened = isVerdictsAlone(selector, kind) ? null : await openSource(selector, caller);
  if (!opened) return null;
  const own = openForReading(opened.root);
  return { store: own, sides: sidesOfRun(own, requireRun(own, opened.run)) };
}

const isVerdictsAlone = (selector: string, kind: SourceKind | null): boolean =>
  VERDICTS_ALONE.has(kind) && !namesItsInstances(selector, kind);

/** Without totals of the dataset, the predictions of an entry say which instances were not resolved. */
const namesItsInstances = (entry: string, kind: SourceKind | null): boolean =>
  kind === 'leaderboard' &&
  PREDICTIONS.some((name) => existsSync(join(entry, name))) &&
  !['results/resolved_by_repo.json', 'resolved_by_repo.json'].some((name) => existsSync(join(entry, name)));

function sidesOf({ root, run }: OpenedSource): NamedSide[] {
  using store = openForReading(root);
  const data = loadRunData(store, requireRun(store, run).id)!;
  // Nothing of it is a run of the results root: a verdict about it is not recorded.
  return data.arms.map(({ name }) => ({ side: sideOfArm(data, name), from: null }));
}

/** An entry of the leaderboard says nothing of other instances: its number is over the whole dataset. */
function lineOf(side: Side, kind: SourceKind | null): string {
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
  const what = kind === null ? 'a file of another tool' : SOURCE_WORDS[kind];
  return `read as ${what}: ${[`${results.length} instances`, rate, ...missing, ...printed].join('; ')}`;
}
