/** `report --paper`: the sentence and the row, with the comparison of the arms of the run. */
import { writeAtomically } from '../../base/files/atomicWrite.ts';
import { compareAll } from '../../report/compare/compareSides.ts';
import { RESAMPLING_SEED, summarize } from '../../report/measure/summary.ts';
import { paperDocument, paperOf, renderLatex } from '../../report/render/paper.ts';
import { fixedTest, sidesOfRun } from '../../results/compareSources.ts';
import { pricesOfRun } from '../../run/record/tokenPrices.ts';
import { refuseShard } from '../../run/resultsRoot.ts';
import { reportData } from '../../run/standing.ts';
import type { Store } from '../../store/open.ts';
import type { RunRow } from '../../store/records/runs.ts';
import { printData, say } from './context.ts';
import { putDocument } from './putDocument.ts';

type Where = Parameters<typeof putDocument>[0];

export async function putPaper(
  store: Store,
  run: RunRow,
  {
    latex,
    seed = RESAMPLING_SEED,
    ...where
  }: Where & { readonly latex: boolean; readonly seed: number | undefined },
): Promise<void> {
  refuseShard(run, 'a paper tells of whole runs');
  const data = reportData(store, run.id)!;
  const sides = sidesOfRun(store, run);
  const all =
    sides.length < 2
      ? null
      : compareAll(
          sides.map(({ side }) => side),
          { test: fixedTest(sides[0]!) ?? 'exact', seed },
        );
  const paper = paperOf(data, summarize(data, { pricesOf: pricesOfRun(data), seed }), all);
  if (!latex || where.json) return putDocument(where, `Run ${run.name}`, paper, () => paperDocument(paper));
  if (!where.to) return printData(renderLatex(paper));
  await writeAtomically(where.to, renderLatex(paper));
  say(`written: ${where.to}`);
}
