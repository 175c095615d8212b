// What a paper quotes: the same numbers as the report and the comparison, in three forms, and nothing of anybody's text as a command of LaTeX.
import { expect, test } from 'vitest';
import { compareAll } from '../../src/report/compare/compareSides.ts';
import { RESAMPLING_SEED, summarize } from '../../src/report/measure/summary.ts';
import { dollarsWithin } from '../../src/report/render/document.ts';
import { paperDocument, paperOf, renderLatex } from '../../src/report/render/paper.ts';
import { renderMarkdown, renderTerminal } from '../../src/report/render/renderers.ts';
import { sidesOfRun } from '../../src/results/compareSources.ts';
import { requireRun } from '../../src/run/resultsRoot.ts';
import { loadRunData } from '../../src/store/records/runData.ts';
import { openMemory, recordRun } from './recordedRun.ts';

const IDS = Array.from({ length: 14 }, (_, n) => `a__a-${n}`);

function paper(arms: readonly string[]) {
  const store = openMemory();
  const id = recordRun(store, {
    ids: IDS,
    arms,
    manifest: {
      program: { version: '9.9.9' },
      docker: { version: '29' },
      grading: { follows: 'SWE-bench harness 5.0' },
    },
    happened: (instance, arm) => {
      const k = Number(instance.slice(5));
      const resolved = k < (arm === arms[0] ? 9 : 4);
      return [
        {
          reason: 'submitted',
          patch: 'x',
          outcome: resolved ? 'resolved' : 'unresolved',
          resolved,
          cost: 1_000_000 + k * 20_000,
          steps: 3,
        },
      ];
    },
  });
  const data = loadRunData(store, id)!;
  const summary = summarize(data);
  const sides = sidesOfRun(store, requireRun(store, 'r1')).map(({ side }) => side);
  const all = sides.length > 1 ? compareAll(sides, { test: 'exact', seed: RESAMPLING_SEED }) : null;
  return { paper: paperOf(data, summary, all), summary, all };
}

test('the sentence and the row have the numbers of the report', () => {
  const { paper: one, summary } = paper(['alone']);
  const [arm] = summary.arms;
  expect(one.rows).toEqual([
    expect.objectContaining({
      n: 14,
      epochs: 1,
      missing: 0,
      resolved: arm!.resolved.p,
      interval: arm!.resolved.interval,
      test: null,
    }),
  ]);
  const text = renderTerminal(paperDocument(one)).replace(/\s+/g, ' ');
  expect(text).toContain(
    'vendor/alone with the agent built-in resolved 64.3 % of 14 instances of datasets/demo/demo.jsonl',
  );
  expect(text).toContain('(95 % interval [38.8, 83.7], Wilson; 1 epoch)');
  expect(text).toContain('swebatch 9.9.9, engine 29, graded by the rules of SWE-bench harness 5.0');
  expect(text).toContain('hash abcdef0123456789');
  expect(renderMarkdown(paperDocument(one))).toMatch(/\| vendor\/alone \| built-in \| 14 \| 1 \| 64\.3 % \|/);
});

test('arms are tested against the first, as compare tests them', () => {
  const { paper: two, all } = paper(['a', 'b']);
  const [pair] = all!.comparisons;
  expect(two.rows[1]!.test).toMatchObject({ name: 'exact McNemar', p: pair!.test!.p, n: 14, pHolm: null });
  const { paper: three, all: pairs } = paper(['a', 'b', 'c']);
  expect(three.rows.map(({ test: found }) => found?.pHolm ?? null)).toEqual([
    null,
    pairs!.comparisons[0]!.pHolm,
    pairs!.comparisons[1]!.pHolm,
  ]);
  expect(pairs!.comparisons[1]!.b.label).toContain('c');
});

test('LaTeX has its own characters as text', () => {
  const { paper: one } = paper(['50%_{x}\\input~^#&$']);
  const text = renderLatex(one);
  expect(text).toContain(
    'vendor/50\\%\\_\\{x\\}\\textbackslash{}input\\textasciitilde{}\\textasciicircum{}\\#\\&\\$',
  );
  expect(text).toContain('\\begin{tabular}{llrrrrrrrr}');
  expect(text).toContain(' & 14 & 1 & 64.3 \\% & [38.8, 83.7] & ');
});

test.each([
  [13_200_000, { low: 12_100_000, high: 14_500_000 }, ['$0.0132', '$0.0121', '$0.0145']],
  [12.5e9, { low: 10e9, high: 15e9 }, ['$12.50', '$10.00', '$15.00']],
  [4_200, { low: 4_000, high: 4_500 }, ['$0.00000420', '$0.00000400', '$0.00000450']],
  [1e9, { low: 1e9, high: 1.64e9 }, ['$1.00', '$1.00', '$1.64']],
  [13_200_000, null, ['$0.01', '$0.01', '$0.01']],
])('money has the digits of its interval: %d', (nano, interval, texts) => {
  const show = dollarsWithin(interval);
  expect([nano, interval?.low ?? nano, interval?.high ?? nano].map(show)).toEqual(texts);
});
