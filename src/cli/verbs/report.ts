/** `swebatch report RUN`: what a run says, for a terminal, a mail, a pull request or a program. */

import { plural } from '../../base/text/numbers.ts';
import { historyOf, type InstanceHistory, nightOf } from '../../report/measure/history.ts';
import { RESAMPLING_SEED, summarize } from '../../report/measure/summary.ts';
import type { Document } from '../../report/render/document.ts';
import { rate } from '../../report/render/document.ts';
import { summaryDocument } from '../../report/render/summaryDocument.ts';
import { foreignRun } from '../../results/import/openSource.ts';
import { pricesOfRun } from '../../run/record/tokenPrices.ts';
import { openForReading, requireRun, resultsRoot } from '../../run/resultsRoot.ts';
import { reportData } from '../../run/standing.ts';
import { UserError } from '../../run/userError.ts';
import { nightsOf } from '../../store/records/baselines.ts';
import { integer } from '../flags/checks.ts';
import {
  type Args,
  defineVerb,
  FORMATS,
  flags,
  format,
  json,
  namedRun,
  output,
  to,
  toggle,
} from '../flags/verb.ts';
import { EXIT } from '../terminal/context.ts';
import { putDocument } from '../terminal/putDocument.ts';
import { thisProcess } from '../terminal/thisProcess.ts';

const reportFlags = flags({
  run: {
    ...namedRun,
    place: 'optional',
    default: 'last',
    describe: 'name, unique prefix, "last", or a file or folder of another runner',
  },
  output,
  format: { ...format, choices: [...FORMATS, 'latex'] },
  to,
  paper: toggle(
    'the sentence and the row of a table that a paper needs; --format terminal, markdown, latex or json',
  ),
  history: toggle('every instance across all runs with the same model, with a flake label'),
  seed: integer(0, 'seed for the bootstrap intervals', Number.MAX_SAFE_INTEGER),
  json,
});

export const reportVerb = defineVerb({
  name: 'report',
  describe: 'report a run: resolved of valid with its interval, missing trials, cost, tokens, time',
  flags: reportFlags,
  examples: [
    ['$0 report last', 'the newest run'],
    ['$0 report nightly-0822 --format html --to report.html', 'one file that reads in a mail'],
    ['$0 report logs/2026-01-31_swe-bench.eval', 'what Inspect ran, by the same rules'],
    ['$0 report last --paper --format latex', 'a sentence and a row of a table for a paper'],
    ['$0 report last --json | jq .arms[0].resolved', 'numbers for a program'],
  ],
  async run(args) {
    const root = resultsRoot(args.output);
    const foreign = await foreignRun(args.run, root, thisProcess());
    using store = openForReading(foreign?.root ?? root);
    const run = requireRun(store, foreign?.run ?? args.run);
    const latex = args.format === 'latex' || (args.format === undefined && /\.tex$/i.test(args.to ?? ''));
    if (latex && !args.paper) throw new UserError('LaTeX is written with --paper alone');
    if (args.paper) {
      // Comparisons of arms are loaded where somebody asks for them.
      const { putPaper } = await import('../terminal/putPaper.ts');
      await putPaper(store, run, { ...where(args), seed: args.seed, latex });
    } else if (args.history) {
      const instances = historyOf(nightsOf(store, run.id).map(nightOf));
      const document = () => historyDocument(run.name, instances);
      await putDocument(where(args), `History of ${run.name}`, { run: run.name, instances }, document);
    } else {
      const data = reportData(store, run.id)!;
      const summary = summarize(data, { pricesOf: pricesOfRun(data), seed: args.seed ?? RESAMPLING_SEED });
      await putDocument(where(args), `Run ${run.name}`, summary, () => summaryDocument(summary));
    }
    return EXIT.done;
  },
});

type ReportArgs = Args<typeof reportFlags>;

const where = ({ format: named, ...args }: ReportArgs) => ({
  ...args,
  format: named === 'latex' ? undefined : named,
});

function historyDocument(run: string, histories: readonly InstanceHistory[]): Document {
  const flaky = histories.filter((h) => h.label === 'flaky').length;
  return [
    { kind: 'heading', level: 1, text: `History of the instances of ${run}` },
    {
      kind: 'text',
      text: `${plural(histories.length, 'instance')}, ${flaky} flaky (changed at least twice). The label excludes nothing from any score.`,
    },
    {
      kind: 'table',
      head: ['instance', 'label', 'resolved', 'oldest to newest'],
      align: ['left', 'left', 'right', 'left'],
      rows: histories.map((h) => [
        h.instanceId,
        h.label,
        rate(h.resolved),
        h.nights
          .slice(-16)
          .map((n) => (n.resolved === null ? '·' : n.resolved ? '+' : '-'))
          .join(''),
      ]),
    },
  ];
}
