/** A run for a paper: one sentence and one row of a table for each arm, as text, Markdown or LaTeX. */
import { inert } from '../../base/text/inert.ts';
import { percent, plural } from '../../base/text/numbers.ts';
import type { RunData } from '../../store/records/runData.ts';
import type { Comparisons } from '../compare/compareSides.ts';
import { agentOf } from '../measure/runFacts.ts';
import type { ArmSummary, Summary } from '../measure/summary.ts';
import { block, type Document, dollarsWithin, money, pointDifference, pValue, range } from './document.ts';

export interface PaperRow {
  readonly arm: string;
  readonly model: string;
  readonly agent: string;
  /** Instances with at least one valid trial: the sample size, however many epochs there were. */
  readonly n: number;
  readonly epochs: number;
  readonly resolved: number | null;
  /** 95 %, Wilson. */
  readonly interval: { readonly low: number; readonly high: number } | null;
  readonly planned: number;
  readonly missing: number;
  /** The cost of all attempts; with digits that its interval needs where it has one. */
  readonly cost: string;
  readonly costPerResolved: string;
  /** Against the first arm; null for the first, and where there is one. */
  readonly test: {
    readonly name: string;
    readonly p: number;
    /** Over all pairs of arms, by Holm; null for one pair. */
    readonly pHolm: number | null;
    readonly n: number;
    readonly difference: string;
  } | null;
}

export interface Paper {
  readonly run: string;
  readonly dataset: { readonly source: string; readonly revision: string | null; readonly hash: string };
  /** The programs that ran and graded. */
  readonly versions: string;
  readonly rows: readonly PaperRow[];
}

/** `all`: the arms as sides, in the order of the run; null for one arm. */
export function paperOf(data: RunData, summary: Summary, all: Comparisons | null): Paper {
  const { manifest } = data.run;
  const version = manifest.program?.version;
  const engine = manifest.docker?.version;
  const follows = manifest.grading?.follows;
  const versions = [
    typeof version === 'string' ? `swebatch ${version}` : 'swebatch (imported)',
    ...(typeof engine === 'string' ? [`engine ${engine}`] : []),
    ...(typeof follows === 'string' ? [`graded by the rules of ${follows}`] : []),
  ];
  return {
    run: summary.run,
    dataset: summary.dataset,
    versions: versions.join(', '),
    rows: summary.arms.map((arm, k) => rowOf(arm, agentText(data, arm.arm), testOf(all, k))),
  };
}

function agentText({ arms }: RunData, name: string): string {
  const config = arms.find((arm) => arm.name === name)?.config ?? {};
  const protocol = config.agent?.protocol;
  return agentOf(config) ?? (typeof protocol === 'string' ? `built-in (${protocol})` : 'built-in');
}

function testOf(all: Comparisons | null, k: number): PaperRow['test'] {
  // The first side is compared with each of the others, in their order.
  const found = k === 0 ? undefined : all?.comparisons[k - 1];
  if (!found?.test || !found.difference) return null;
  const { points, interval } = found.difference;
  return {
    ...found.test,
    pHolm: all!.comparisons.length > 1 ? found.pHolm : null,
    n: found.matched,
    difference: pointDifference(points, interval),
  };
}

function rowOf(arm: ArmSummary, agent: string, test: PaperRow['test']): PaperRow {
  const { cost, costPerResolved: per } = arm.accounting;
  const within = per?.atLeast ? null : (per?.bootstrap?.interval ?? null);
  const show = dollarsWithin(within);
  return {
    arm: arm.arm,
    model: arm.model,
    agent,
    n: arm.estimate?.n ?? arm.resolved.n,
    epochs: arm.epochs,
    resolved: arm.graded ? (arm.estimate?.mean ?? arm.resolved.p) : null,
    interval: arm.graded ? (arm.estimate?.interval ?? arm.resolved.interval) : null,
    planned: arm.planned,
    missing: arm.planned - arm.valid,
    cost: money(cost),
    costPerResolved:
      per === null || per.nano === null
        ? '–'
        : `${per.atLeast ? '≥ ' : ''}${show(per.nano)}${within ? ` [${show(within.low)}, ${show(within.high)}]` : ''}`,
    test,
  };
}

const testText = ({ name, p, pHolm, n, difference }: NonNullable<PaperRow['test']>, first: string): string =>
  `Against ${first} it is ${difference} (${name}, ${pValue(pHolm ?? p)}${pHolm === null ? '' : ' by Holm'}, n = ${n}).`;

function sentence({ dataset, versions, rows, run }: Paper, row: PaperRow): string {
  const of = `${dataset.source}${dataset.revision ? ` at revision ${dataset.revision}` : ''}`;
  const rate =
    row.resolved === null || row.interval === null
      ? `was not graded on ${plural(row.n, 'instance')} of ${of}`
      : `resolved ${percent(row.resolved)} of ${plural(row.n, 'instance')} of ${of} (95 % interval ${range(row.interval)}, Wilson; ${plural(row.epochs, 'epoch')})`;
  const missing =
    row.missing === 0
      ? 'No trial is missing'
      : `${row.missing} of ${plural(row.planned, 'trial')} are missing and count as neither`;
  return [
    `${row.model} with the agent ${row.agent} ${rate}.`,
    ...(row.test ? [testText(row.test, rows[0]!.model)] : []),
    `${missing}; the run cost ${row.cost}, a resolved instance ${row.costPerResolved} (95 % bootstrap interval).`,
    `Run ${run}; ${versions}; rows of the dataset: hash ${dataset.hash}.`,
  ].join(' ');
}

const HEAD = ['model', 'agent', 'n', 'epochs', 'resolved', '95 %', 'p', 'missing', 'cost', 'per resolved'];

const cells = (row: PaperRow): string[] => [
  row.model,
  row.agent,
  String(row.n),
  String(row.epochs),
  row.resolved === null ? '–' : percent(row.resolved),
  row.interval === null ? '–' : range(row.interval),
  row.test === null ? '–' : pValue(row.test.pHolm ?? row.test.p).replace(/^p (= )?/, ''),
  String(row.missing),
  row.cost,
  row.costPerResolved,
];

export const paperDocument = (paper: Paper): Document => [
  ...paper.rows.map((row) => block.text(sentence(paper, row))),
  block.table(HEAD, paper.rows.map(cells), HEAD.slice(2)),
];

const LATEX: Readonly<Record<string, string>> = {
  '\\': '\\textbackslash{}',
  '~': '\\textasciitilde{}',
  '^': '\\textasciicircum{}',
  '–': '--',
  '≥': '$\\geq$',
  ...Object.fromEntries([...'&%$#_{}'].map((char) => [char, `\\${char}`])),
};

/** Names of models and datasets are anybody's text: nothing of it is a command. */
const latex = (text: string): string => inert(text).replace(/[\\~^–≥&%$#_{}]/g, (char) => LATEX[char]!);

const line = (row: readonly string[]): string => `${row.map(latex).join(' & ')} \\\\`;

export const renderLatex = (paper: Paper): string =>
  [
    ...paper.rows.map((row) => latex(sentence(paper, row))),
    '',
    '% needs \\usepackage{booktabs}',
    `\\begin{tabular}{ll${'r'.repeat(HEAD.length - 2)}}`,
    '\\toprule',
    line(HEAD),
    '\\midrule',
    ...paper.rows.map((row) => line(cells(row))),
    '\\bottomrule',
    '\\end{tabular}',
    '',
  ].join('\n');
