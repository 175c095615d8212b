/** `swebatch report RUN`: what a run says, for a terminal, a mail, a pull request or a program. */
import { join } from 'node:path';
import type { Argv } from 'yargs';
import { z } from 'zod';
import { writeAtomically } from '../../base/files/atomicWrite.ts';
import { historyOf, type InstanceHistory, nightOf } from '../../report/measure/history.ts';
import { DEFAULT_SEED, summarize } from '../../report/measure/summary.ts';
import type { Document } from '../../report/render/document.ts';
import { rate } from '../../report/render/format.ts';
import { jsonText } from '../../report/render/json.ts';
import { renderHtml } from '../../report/render/renderHtml.ts';
import { renderMarkdown } from '../../report/render/renderMarkdown.ts';
import { renderTerminal } from '../../report/render/renderTerminal.ts';
import { summaryDocument } from '../../report/render/summaryDocument.ts';
import { pricesOfRun } from '../../runner/record/tokenPrices.ts';
import { openForReading, requireRun, resultsRoot } from '../../service/resultsRoot.ts';
import type { Store } from '../../store/open.ts';
import { nightsOf } from '../../store/records/baselines.ts';
import { loadRunData } from '../../store/records/reportQueries.ts';
import type { RunRow } from '../../store/records/runs.ts';
import { checkArgs } from '../flags/runArgs.ts';
import { jsonOption, outputOption, type Verb } from '../flags/verb.ts';
import { EXIT, printData, say } from '../terminal/context.ts';

export const FORMATS = ['terminal', 'markdown', 'json', 'html'] as const;

const argsSchema = z.object({
  run: z.string(),
  output: z.string(),
  format: z.enum(FORMATS).optional(),
  to: z.string().optional(),
  history: z.boolean(),
  seed: z.number().int().min(0).optional(),
  json: z.boolean(),
});

export const reportVerb: Verb = {
  command: 'report [run]',
  describe: 'what a run says: resolved of valid with its interval, who is missing, money, tokens, time',
  builder: (parser: Argv) =>
    parser
      .positional('run', { type: 'string', default: 'last', describe: 'name, unique prefix, or "last"' })
      .option('output', outputOption)
      .option('format', { choices: FORMATS, describe: 'default: terminal', requiresArg: true })
      .option('to', { type: 'string', describe: 'write to this file instead of stdout', requiresArg: true })
      .option('history', {
        type: 'boolean',
        default: false,
        describe: 'every instance across all runs with the same model, with a flake label',
      })
      .option('seed', { type: 'number', describe: 'of the bootstrap intervals', requiresArg: true })
      .option('json', jsonOption)
      .example('$0 report last', 'the newest run')
      .example('$0 report nightly-0822 --format html --to report.html', 'one file that reads in a mail')
      .example('$0 report last --json | jq .arms[0].resolved', 'numbers for a program'),
  async run(argv) {
    const args = checkArgs(argsSchema, argv);
    const store = openForReading(resultsRoot(args.output));
    try {
      const run = requireRun(store, args.run);
      const format = args.json ? 'json' : (args.format ?? 'terminal');
      const text = args.history
        ? historyText(store, run, format)
        : summaryText(store, run, format, args.seed);
      if (args.to) {
        await writeAtomically(args.to, text);
        say(`written: ${args.to}`);
      } else printData(text);
      return EXIT.done;
    } finally {
      store.close();
    }
  },
};

export const render = (
  document: Document,
  format: Exclude<(typeof FORMATS)[number], 'json'>,
  title: string,
): string =>
  format === 'html'
    ? renderHtml(document, title)
    : format === 'markdown'
      ? renderMarkdown(document)
      : renderTerminal(document);

function summaryText(store: Store, run: RunRow, format: (typeof FORMATS)[number], seed?: number): string {
  const data = loadRunData(store, run.id)!;
  const summary = summarize(data, {
    pricesOf: pricesOfRun(data),
    seed: seed ?? DEFAULT_SEED,
  });
  return format === 'json' ? jsonText(summary) : render(summaryDocument(summary), format, `Run ${run.name}`);
}

function historyText(store: Store, run: RunRow, format: (typeof FORMATS)[number]): string {
  const histories = historyOf(nightsOf(store, run.id).map(nightOf));
  return format === 'json'
    ? jsonText({ run: run.name, instances: histories })
    : render(historyDocument(run.name, histories), format, `History of ${run.name}`);
}

function historyDocument(run: string, histories: readonly InstanceHistory[]): Document {
  const flaky = histories.filter((h) => h.label === 'flaky').length;
  return [
    { kind: 'heading', level: 1, text: `History of the instances of ${run}` },
    {
      kind: 'text',
      text: `${histories.length} instances, ${flaky} flaky (changed at least twice). The label excludes nothing from any score.`,
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

/** Where a run's files lie. */
export const runFolder = (root: string, run: RunRow): string => join(root, run.name);
