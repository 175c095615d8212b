/** Arms compared on the same instances: what `compare` computes, and how it words it. */

import { compareDocument } from '../../report/compare/compareDocument.ts';
import { compareAll } from '../../report/compare/compareSides.ts';
import { sideOfArm } from '../../report/compare/side.ts';
import { RESAMPLING_SEED, summarize } from '../../report/measure/summary.ts';
import { fixedTest } from '../../results/compareSources.ts';
import { pricesOfRun } from '../../run/record/tokenPrices.ts';
import { armsOf, shownRun } from '../../store/records/runs.ts';
import { fewNamed } from './documents.ts';
import type { ViewedRecord } from './trialDocuments.ts';

interface ArmOfRun {
  readonly run: number;
  readonly arm: number;
}

/** Sides as paths name them: `3.0/4.1` is the first arm of run 3 and the second one of run 4. Undefined where one is not there. */
export function sidesIn(record: ViewedRecord, names: readonly string[]): ArmOfRun[] | undefined {
  const sides = names.map((name) => {
    const [, run, arm] = /^(\d{1,12})\.(\d{1,4})$/.exec(name) ?? [];
    return { run: Number(run), arm: Number(arm) };
  });
  const isThere = ({ run, arm }: ArmOfRun) =>
    shownRun(record.db, run) !== undefined && armsOf(record.db, run)[arm] !== undefined;
  return sides.length >= 1 && sides.every(isThere) ? sides : undefined;
}

export type ComparedDocument = ReturnType<typeof comparedDocument>;

export function comparedDocument(record: ViewedRecord, sides: readonly ArmOfRun[]) {
  const runs = new Map(sides.map(({ run }) => [run, record.reportData(run)!]));
  const arms = sides.map(({ run, arm }) => {
    const data = runs.get(run)!;
    return { data, arm: data.arms[arm]! };
  });
  const reports = new Map(
    [...runs].map(([run, data]) => [run, summarize(data, { pricesOf: pricesOfRun(data) })]),
  );
  const compared = arms.map(({ data, arm }) => sideOfArm(data, arm.name));
  const test = arms.flatMap(({ data }) => fixedTest({ from: { data } }) ?? []).at(-1) ?? 'exact';
  const all = sides.length < 2 ? null : compareAll(compared, { test, seed: RESAMPLING_SEED });
  return fewNamed({
    sides: sides.map(({ run, arm }, i) => ({
      label: compared[i]!.label,
      report: reports.get(run)!.arms[arm]!,
    })),
    /** The document of `compare --json` with fewer names, and the words of `compare`. */
    compared: all,
    words: all && compareDocument(all),
  });
}
