/** Finds the sides of a comparison by name: runs, arms of runs, baselines, files and folders. */
import { existsSync, statSync } from 'node:fs';
import { SourceError } from '../../formats/foreignFile.ts';
import { readSide, type Side, sideOfArm } from '../../report/compare/side.ts';
import type { McNemarTest } from '../../report/statistics/paired.ts';
import { databasePath } from '../../run/resultsRoot.ts';
import { UserError } from '../../run/userError.ts';
import type { Store } from '../../store/open.ts';
import { baselineRun } from '../../store/records/baselines.ts';
import { loadRunData, type RunData } from '../../store/records/reportQueries.ts';
import { findRun, type RunRow } from '../../store/records/runs.ts';

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
  throw new UserError(`"${selector}" is neither a run in ${root} nor a file`, {
    hint: 'RUN/ARM names one arm of a run',
    next: { do: 'list_runs', results: root },
  });
}

/** A file can be compared even when the database cannot be opened. */
export function runNamed(selector: string, root: string, store: () => Store): NamedSide[] | null {
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
  const data = loadRunData(store, run.id)!;
  return data.arms.map((a) => ({ side: sideOfArm(data, a.name), from: { run, data, arm: a.name } }));
}

/** Files in different folders often share a name; then the given path is the label. */
export function labelled(
  named: readonly { readonly selector: string; readonly found: NamedSide }[],
): NamedSide[] {
  const labels = named.map(({ found }) => found.side.label);
  return named.map(({ selector, found }) =>
    found.from === null && labels.filter((label) => label === found.side.label).length > 1
      ? { ...found, side: { ...found.side, label: selector } }
      : found,
  );
}

export function readFileSide(path: string): Side {
  try {
    return readSide(path);
  } catch (error) {
    if (error instanceof SourceError || error instanceof SyntaxError) throw new UserError(error.message);
    throw error;
  }
}

/** The test is fixed before the run, because the choice can change a verdict. */
export function fixedTest({ from }: NamedSide): McNemarTest | null {
  const statistics = from?.data.run.manifest.statistics;
  if (typeof statistics?.paired_test !== 'string') return null;
  return statistics.paired_test === 'mcnemar-mid-p' ? 'mid-p' : 'exact';
}
