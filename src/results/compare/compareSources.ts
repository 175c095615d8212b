/** `compare`: two or more runs, arms, reports or predictions on the same instances. */
import { type Comparisons, compareAll } from '../../report/compare/compareAll.ts';
import { DEFAULT_SEED } from '../../report/measure/armSummary.ts';
import type { McNemarTest } from '../../report/statistics/paired.ts';
import type { Caller } from '../../run/caller.ts';
import { lazyStore, resultsRoot } from '../../run/resultsRoot.ts';
import { UserError } from '../../run/userError.ts';
import type { Store } from '../../store/open.ts';
import { foreignSides } from './foreignSides.ts';
import { fixedTest, labelled, type NamedSide, sidesOf } from './sides.ts';

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
    { test: test ?? testOf(sides), seed: seed ?? DEFAULT_SEED },
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
