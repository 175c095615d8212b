/** `compare`: two or more runs, arms, reports or predictions on the same instances. */

import { existsSync, statSync } from 'node:fs';
import { nearest } from '../base/text/closest.ts';
import { percent, plural } from '../base/text/numbers.ts';
import { recogniseSource } from '../formats/formats.ts';
import { SourceError } from '../formats/sourceError.ts';
import { type Comparisons, compareAll } from '../report/compare/compareSides.ts';
import { readSide, type Side, sideOfArm } from '../report/compare/side.ts';
import { RESAMPLING_SEED } from '../report/measure/summary.ts';
import type { McNemarTest } from '../report/statistics/paired.ts';
import type { Caller } from '../run/caller.ts';
import { databasePath, lazyStore, openForReading, requireRun, resultsRoot } from '../run/resultsRoot.ts';
import { reportData } from '../run/standing.ts';
import { UserError } from '../run/userError.ts';
import type { Store } from '../store/open.ts';
import { baselineRun } from '../store/records/baselines.ts';
import type { RunData } from '../store/records/runData.ts';
import { armsOf, findRun, listRuns, type RunRow } from '../store/records/runs.ts';
import { openSource, unknownSource } from './import/openSource.ts';

export interface CompareOptions {
  /** RUN, RUN/ARM, `baseline[:NAME]`, or a file or folder; the first is the reference. */
  readonly sides: readonly string[];
  /** Results root of the runs; default `results`. Files need none. */
  readonly results?: string | undefined;
  /** Default: the McNemar test fixed in the manifest before the run, else exact. */
  readonly test?: McNemarTest | undefined;
  /** Seed of permutations and bootstraps. */
  readonly seed?: number | undefined;
}

/** Runs, and files of verdicts alone. */
export const compare = (options: CompareOptions): Comparisons => compared(options);

/**
 * Also logs and folders of other runners, as the verb reads them: `tell` gets what each was read as and what is missing in it, and what was
 * read is kept in the cache of `env`.
 */
export async function compareSources(
  options: CompareOptions,
  caller: Pick<Caller, 'env' | 'tell'>,
): Promise<Comparisons> {
  const root = resultsRoot(options.results);
  using store = lazyStore(root);
  return compared(options, await foreignSides(options.sides, { root, store: store.get, caller }));
}

function compared(
  { sides: selectors, results, test, seed }: CompareOptions,
  read?: ReadonlyMap<string, readonly NamedSide[]>,
): Comparisons {
  const root = resultsRoot(results);
  using store = lazyStore(root);
  const sides = namedSides(selectors, root, store.get, read);
  return compareAll(
    sides.map((s) => s.side),
    { test: test ?? testOf(sides), seed: seed ?? RESAMPLING_SEED },
  );
}

/** `read`: sides of other runners that were read before, by selector. */
export function namedSides(
  selectors: readonly string[],
  root: string,
  store: () => Store,
  read: ReadonlyMap<string, readonly NamedSide[]> = new Map(),
): NamedSide[] {
  const sides = labelled(
    selectors.flatMap((selector) =>
      (read.get(selector) ?? sidesOf(selector, root, store)).map((found) => ({ selector, found })),
    ),
  );
  if (sides.length < 2)
    throw new UserError('compare needs two sides', { hint: 'name a second run, arm or file' });
  return sides;
}

const testOf = (sides: readonly NamedSide[]): McNemarTest =>
  sides.flatMap((s) => fixedTest(s) ?? []).at(-1) ?? 'exact';

export interface NamedSide {
  readonly side: Side;
  /** Present when the side is an arm of a run. */
  readonly from: { readonly run: RunRow; readonly data: RunData; readonly arm: string } | null;
}

/** A run with several arms gives one side for each. */
export function sidesOf(selector: string, root: string, store: () => Store): NamedSide[] {
  if (selector === 'baseline' || selector.startsWith('baseline:')) {
    const name = selector.split(':')[1] ?? 'default';
    const run = baselineRun(store(), name);
    if (!run) throw new UserError(`no baseline "${name}" is set`, { next: { do: 'set_baseline' } });
    return sidesOfRun(store(), run);
  }
  const isRun = runNamed(selector, root, store);
  if (isRun) return isRun;
  if (existsSync(selector)) return [{ side: readFileSide(selector), from: null }];
  const near = existsSync(databasePath(root)) ? nearestSide(selector, store()) : '';
  throw new UserError(`"${selector}" is neither a run in ${root} nor a file${near}`, {
    hint: 'RUN/ARM names one arm of a run',
    next: { do: 'list_runs', results: root },
  });
}

function nearestSide(selector: string, store: Store): string {
  const names = listRuns(store).flatMap(({ id, name }) => [
    name,
    ...armsOf(store, id).map((arm) => `${name}/${arm.name}`),
  ]);
  return nearest(selector, ['last', ...names]);
}

/** A file can be compared even when the database cannot be opened (observed: tests/report/verbs.test.ts). */
function runNamed(selector: string, root: string, store: () => Store): NamedSide[] | null {
  if (!existsSync(databasePath(root))) return null;
  try {
    return runOf(selector, store());
  } catch (error) {
    if (statSync(selector, { throwIfNoEntry: false })?.isFile()) return null;
    throw error;
  }
}

function runOf(selector: string, store: Store): NamedSide[] | null {
  const whole = findRun(store, selector);
  if ('id' in whole) return sidesOfRun(store, whole);
  if (whole.candidates.length > 1 && !existsSync(selector))
    throw new UserError(`"${selector}" names several runs: ${whole.candidates.join(', ')}`);
  // RUN/ARM, where the arm is often a model name with slashes of its own.
  const slash = selector.indexOf('/');
  const run = slash > 0 ? findRun(store, selector.slice(0, slash)) : null;
  if (!run || !('id' in run)) return null;
  const arm = selector.slice(slash + 1);
  const found = sidesOfRun(store, run).filter((s) => s.from!.arm === arm);
  return found.length > 0 ? found : null;
}

export function sidesOfRun(store: Store, run: RunRow): NamedSide[] {
  const data = reportData(store, run.id)!;
  return data.arms.map((a) => ({ side: sideOfArm(data, a.name), from: { run, data, arm: a.name } }));
}

/** Files in different folders often share a name; then the given path is the label. */
function labelled(named: readonly { readonly selector: string; readonly found: NamedSide }[]): NamedSide[] {
  const labels = named.map(({ found }) => found.side.label);
  return named.map(({ selector, found }) =>
    found.from === null && labels.filter((label) => label === found.side.label).length > 1
      ? { ...found, side: { ...found.side, label: selector } }
      : found,
  );
}

function readFileSide(path: string): Side {
  try {
    return readSide(path);
  } catch (error) {
    if (error instanceof SourceError || error instanceof SyntaxError) throw new UserError(error.message);
    throw error;
  }
}

/** The test is fixed before the run, because the choice can change a verdict. */
export function fixedTest({
  from,
}: {
  readonly from: { readonly data: RunData } | null;
}): McNemarTest | null {
  const statistics = from?.data.run.manifest.statistics;
  if (typeof statistics?.paired_test !== 'string') return null;
  return statistics.paired_test === 'mcnemar-mid-p' ? 'mid-p' : 'exact';
}

/** The sides by selector; runs are not among them. Tells of each what it was read as. */
export async function foreignSides(
  selectors: readonly string[],
  { root, store, caller }: { root: string; store: () => Store; caller: Pick<Caller, 'env' | 'tell'> },
): Promise<ReadonlyMap<string, readonly NamedSide[]>> {
  const found = new Map<string, readonly NamedSide[]>();
  for (const selector of new Set(selectors)) {
    if (!existsSync(selector) || runNamed(selector, root, store)) continue;
    const opened = await openWhole(selector, caller);
    if (opened) {
      using own = openForReading(opened.root);
      // Nothing of it is a run of the results root: a verdict about it is not recorded.
      const sides = sidesOfRun(own, requireRun(own, opened.run));
      found.set(
        selector,
        sides.map(({ side }) => ({ side, from: null })),
      );
      continue;
    }
    const kind = await recogniseSource(selector);
    const side = kind ? readFileSide(selector) : readUnknown(selector);
    caller.tell({ level: 'info', text: `${selector}: ${lineOf(side, kind?.words)}` });
    found.set(selector, [{ side, from: null }]);
  }
  return found;
}

/** A file may say what it is further on than its kind is looked for. */
function readUnknown(path: string): Side {
  try {
    return readFileSide(path);
  } catch (error) {
    throw error instanceof UserError ? unknownSource(path) : error;
  }
}

/**
 * Results of another runner, read as a run of a results root of their own. Null for the name of a run, and for files of verdicts alone. The caller
 * closes the store.
 */
export async function openForeignRun(
  selector: string,
  { root, store, caller }: { root: string; store: () => Store; caller: Pick<Caller, 'env' | 'tell'> },
): Promise<{ readonly store: Store; readonly sides: readonly NamedSide[] } | null> {
  if (!existsSync(selector) || runNamed(selector, root, store)) return null;
  const opened = await openWhole(selector, caller);
  if (!opened) return null;
  const own = openForReading(opened.root);
  return { store: own, sides: sidesOfRun(own, requireRun(own, opened.run)) };
}

/** Null for files of verdicts alone: they are compared as they stand, with what they leave open. */
async function openWhole(selector: string, caller: Pick<Caller, 'env' | 'tell'>) {
  const kind = await recogniseSource(selector);
  return kind && !kind.verdictsAlone ? await openSource(selector, caller) : null;
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
  return `read as ${words}: ${[plural(results.length, 'instance'), rate, ...missing, ...printed].join('; ')}`;
}
