/** `evaluate --regrade DIR …`: verdicts from saved logs. */
import { inert } from '../base/text/inert.ts';
import type { Regraded } from '../grading/regradeFolder.ts';
import { rate } from '../report/render/format.ts';
import { proportion } from '../report/statistics/proportions.ts';
import { regradeLogs } from '../results/evaluate/regradeLogs.ts';
import { UserError } from '../run/userError.ts';
import { datasetGiven, type EvaluateArgs, gradingGiven, idsGiven } from './flags/evaluateFlags.ts';
import { EXIT, printResult, say } from './terminal/context.ts';
import { table } from './terminal/table.ts';
import { thisProcess } from './terminal/thisProcess.ts';

const shown = ({ error, folder, patch, specHash, infra, ...verdict }: Regraded) => ({
  ...verdict,
  ...(error !== null && { error }),
});

export async function regrade(args: EvaluateArgs): Promise<number> {
  if (args.subset.length === 0)
    throw new UserError('--regrade needs the dataset that says which tests are expected', {
      hint: 'add --subset verified, or --subset FILE.parquet; it may be given several times',
    });
  const {
    rows: all,
    skipped,
    dialect,
  } = await regradeLogs(
    {
      folders: args.regrade,
      datasets: args.subset.map((subset) => datasetGiven(args, subset)),
      grading: gradingGiven(args),
      instances: idsGiven(args),
      write: args.write,
    },
    thisProcess(),
  );
  for (const sentence of skipped) say(`note: ${inert(sentence)}`);
  if (all.length === 0)
    throw new UserError(`no instance folders in ${args.regrade.join(', ')}`, {
      hint: 'an instance folder holds test_output.txt; its name is the instance id',
    });

  const cells = all.map((row) => [
    row.instance_id,
    row.resolved === null ? 'no verdict' : row.resolved ? 'resolved' : 'unresolved',
    row.suspicion.map((flag) => flag.rule).join(' '),
    row.run_id,
    row.model,
  ]);
  printResult(args.json, all.map(shown), () =>
    table(['instance', 'verdict', 'flags', 'run', 'model'], cells),
  );
  for (const row of all) if (row.error !== null) say(`note: ${inert(row.error)}`);
  const resolved = all.filter((row) => row.resolved === true).length;
  const none = all.filter((row) => row.report === null).length;
  say(
    `resolved ${rate(proportion(resolved, all.length))} by dialect ${dialect}${none > 0 ? `, ${none} without a verdict` : ''}`,
  );
  return EXIT.done;
}
