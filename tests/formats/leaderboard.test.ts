// Entries of the leaderboard as they are published: whose totals they are, what is missing, what contradicts itself.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { readRunReport } from '../../src/formats/harness/runReport.ts';
import { readPredictions } from '../../src/formats/predictions.ts';
import { readVerdictMap } from '../../src/formats/pro/pro.ts';
import { importResults, openResults } from '../../src/index.ts';
import { readSide } from '../../src/report/compare/side.ts';
import { readSource } from '../../src/results/import/importResults.ts';

function folder(files: Readonly<Record<string, unknown>>): string {
  const dir = mkdtempSync(join(tmpdir(), 'entry-'));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(dir, name)), { recursive: true });
    writeFileSync(join(dir, name), typeof content === 'string' ? content : JSON.stringify(content));
  }
  return dir;
}
const ids = (repo: string, count: number) => Array.from({ length: count }, (_, n) => `${repo}-${n + 1}`);
const PATCH = 'diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n';
const predictions = (all: readonly string[]) =>
  all
    .map((id) => JSON.stringify({ instance_id: id, model_name_or_path: 'm', model_patch: PATCH }))
    .join('\n');

/** Without Seaborn and Flask, as the ten published ones were. */
const TEST_TOTALS = {
  ...{ 'astropy/astropy': 95, 'django/django': 850, 'matplotlib/matplotlib': 184, 'psf/requests': 44 },
  ...{ 'pydata/xarray': 110, 'pylint-dev/pylint': 57, 'pytest-dev/pytest': 119, 'sympy/sympy': 386 },
  ...{ 'scikit-learn/scikit-learn': 229, 'sphinx-doc/sphinx': 187 },
};
const totals = Object.fromEntries(
  Object.entries(TEST_TOTALS).map(([repo, total]) => [repo, { resolved: 0, total }]),
);
const RESOLVED = ids('django__django', 112);
const results = {
  'results/results.json': { no_generation: [], no_logs: [], resolved: RESOLVED },
  'results/resolved_by_repo.json': totals,
};
const under = (prefix: string, files: Readonly<Record<string, unknown>>) =>
  Object.fromEntries(Object.entries(files).map(([name, content]) => [`${prefix}/${name}`, content]));

describe('totals of another split are told and not used: 112 of 2261 is 112 of 300', () => {
  const lite = [...RESOLVED, ...ids('sympy__sympy', 188)];
  test.each<[string, Readonly<Record<string, unknown>>, string, number | null]>([
    [
      'by the folder of its split',
      under('evaluation/lite/20240601_a', results),
      'evaluation/lite/20240601_a',
      300,
    ],
    [
      'by the addresses of its logs',
      {
        ...results,
        'metadata.yaml': 'assets:\n  logs: s3://swe-bench-experiments/verified/20240601_a/logs\n',
      },
      '',
      500,
    ],
    ['by its predictions', { ...results, 'all_preds.jsonl': predictions(lite) }, '', 300],
    [
      'by predictions that lack some',
      { ...results, 'all_preds.jsonl': predictions(lite.slice(0, 290)) },
      '',
      290,
    ],
    [
      'by ids that they have no place for',
      { ...results, 'results/results.json': { resolved: [...RESOLVED, 'pallets__flask-1'] } },
      '',
      null,
    ],
  ])('%s', (_, files, at, total) => {
    const side = readSide(join(folder(files), at));
    expect(side.open?.total).toBe(total);
    expect(side.warnings.join('\n')).toMatch(/has totals of 2261 instances, .*: they are of another split/);
  });

  test('and an import states the rate over its own instances', async () => {
    const dir = folder({ ...results, 'all_preds.jsonl': predictions(lite) });
    const { warnings, verdicts } = await readSource(dir);
    expect(warnings.join('\n')).toMatch(/totals of 2261 .* the entry predicts 300/);
    expect(warnings.join('\n')).not.toMatch(/its own number/);
    expect([...verdicts.values()].filter(({ verdict }) => verdict === 'unresolved')).toHaveLength(188);
  });

  test('totals of its own split are used, also where predictions are missing', () => {
    const verified = { 'results/results.json': { resolved: ids('django__django', 5) } };
    const sizes = {
      'results/resolved_by_repo.json': { 'django/django': { total: 400 }, 'a/a': { total: 100 } },
    };
    const whole = folder(under('evaluation/verified/20250101_a', { ...verified, ...sizes }));
    const side = readSide(join(whole, 'evaluation/verified/20250101_a'));
    expect([side.open?.total, side.warnings.join()]).toEqual([500, expect.not.stringContaining('split')]);
    const some = folder({
      ...verified,
      ...sizes,
      'all_preds.jsonl': predictions(ids('django__django', 390)),
    });
    expect(readSide(some).open?.total).toBe(500);
  });
});

test('what is listed as incomplete is missing, in a results.json as in a run report', async () => {
  const board = { resolved: ['a__a-1'], incomplete_ids: ['a__a-2', 'a__a-3'] };
  const listed = predictions(['a__a-1', 'a__a-2', 'a__a-4']);
  const dir = folder({ 'all_preds.jsonl': listed, 'results/results.json': board });
  const run = await readSource(dir);
  expect(Object.fromEntries([...run.verdicts].map(([id, { verdict }]) => [id, verdict]))).toEqual({
    'a__a-1': 'resolved',
    'a__a-2': 'incomplete',
    'a__a-4': 'unresolved',
  });
  expect(run.neverRun).toEqual([{ instanceId: 'a__a-3' }]);
  expect(readSide(join(dir, 'results/results.json')).results.get('a__a-2')?.why).toBe('incomplete');

  // Entries of Multi-SWE-bench for Java: a run report that calls its list "resolved".
  const java = {
    ...{ total_instances: 4, submitted_ids: ['a__a-1', 'a__a-2'], completed_ids: ['a__a-1', 'a__a-2'] },
    ...{ incomplete_ids: ['a__a-3', 'a__a-4'], resolved: ['a__a-1'], unresolved_ids: ['a__a-2'] },
  };
  const entry = folder({
    'all_preds.jsonl': predictions(['a__a-1', 'a__a-2']),
    'results/results.json': java,
  });
  for (const source of [entry, join(entry, 'results/results.json')]) {
    const out = folder({});
    await importResults({ source, results: out, name: 'theirs' }, { env: {}, tell: () => {} });
    const opened = openResults(out);
    onTestFinished(() => opened.close());
    const [arm] = opened.report('theirs').arms;
    expect([arm!.planned, arm!.resolved.x, arm!.resolved.n], source).toEqual([4, 1, 2]);
  }
});

describe('an instance that is resolved and unresolved is an error that names it', () => {
  test.each<[string, string, string]>([
    ['run report', 'm.r.json', '{"resolved_ids": ["a__a-1", "a__a-2"],\n "unresolved_ids": ["a__a-2"]}'],
    ['errors', 'm.r.json', '{"resolved_ids": ["a__a-2"],\n "error_ids": ["a__a-1", "a__a-2"]}'],
    ['results.json', 'results.json', '{"resolved": ["a__a-2"],\n "unresolved": ["a__a-2"]}'],
    ['verdicts by instance', 'eval_results.json', '{"a__a-2": true,\n "a__a-2": false}'],
    ['two spellings of one id', 'eval_results.json', '{"a/a:pr-2": true,\n "a__a-2": false}'],
  ])('%s', async (_, name, text) => {
    const path = join(folder({ [name]: text, 'all_preds.jsonl': predictions(['a__a-2']) }), name);
    expect(() => readSide(path)).toThrow(/line 2: .*a__a-2 is/);
    await expect(readSource(path)).rejects.toThrow(/line 2: .*a__a-2 is/);
  });
});

test('a folder that holds a run report alone is a run, as the report is', async () => {
  const dir = folder({
    'm.r.json': { total_instances: 3, resolved_ids: ['a__a-1'], incomplete_ids: ['a__a-2'] },
  });
  for (const source of [dir, join(dir, 'm.r.json')]) {
    const { instances, neverRun } = await readSource(source);
    expect([instances.map((i) => i.instanceId), neverRun]).toEqual([['a__a-1'], [{ instanceId: 'a__a-2' }]]);
  }
});

test('ids of Multi-SWE-bench (org/repo:pr-n) are those of its rows, wherever they stand', () => {
  const report = readRunReport(
    JSON.stringify({
      resolved_ids: ['google/gson:pr-1093'],
      unresolved_ids: ['c/d.e:pr-7'],
      incomplete_ids: [],
    }),
  );
  expect(report.ok && [...report.value.verdicts]).toEqual([
    ['c__d.e-7', 'unresolved'],
    ['google__gson-1093', 'resolved'],
  ]);
  const row = { instance_id: 'google/gson:pr-1093', model_patch: 'diff' };
  for (const text of [
    JSON.stringify([row]),
    JSON.stringify({ 'google/gson:pr-1093': { model_patch: 'diff' } }),
  ])
    expect(readPredictions(text, 'p.json')?.predictions).toMatchObject([
      { instance_id: 'google__gson-1093' },
    ]);
  expect(readRunReport('{"resolved_ids": ["a/b/../c:pr-1"]}').ok).toBe(false);
});

test('a map of verdicts keeps every id that can be one, and names what cannot', () => {
  const read = readVerdictMap('\uFEFF{"__proto__": true,\r\n "constructor": false}');
  expect(read.ok && [...read.value]).toEqual([
    ['__proto__', true],
    ['constructor', false],
  ]);
  expect(readVerdictMap('{"a": true,\n "b\\u0000": false}')).toMatchObject({
    ok: false,
    message: expect.stringMatching(/^line 2: "b\\u0000" must be/),
  });
});

test('entries of before the containers name all that they predicted, so their results are a run', async () => {
  const old = {
    generated: ['a__a-1', 'a__a-2'],
    no_generation: ['a__a-3'],
    no_logs: [],
    resolved: ['a__a-1'],
  };
  const dir = folder({ 'results/results.json': old });
  for (const source of [dir, join(dir, 'results/results.json')]) {
    const { verdicts, instances } = await readSource(source);
    expect(instances).toHaveLength(3);
    expect([...verdicts].map(([id, { verdict }]) => [id, verdict])).toEqual([
      ['a__a-1', 'resolved'],
      ['a__a-2', 'unresolved'],
      ['a__a-3', 'empty_patch'],
    ]);
  }
});

test('a report.json that lists ids is no report of an instance, and hides none below it', async () => {
  const lists = { resolved: ['a__a-1'], unresolved: ['a__a-2'] };
  const file = await readSource(join(folder({ 'report.json': lists }), 'report.json'));
  expect([...file.verdicts].map(([id, { verdict }]) => [id, verdict])).toEqual([
    ['a__a-2', 'unresolved'],
    ['a__a-1', 'resolved'],
  ]);
  expect(file.instances.map(({ instanceId }) => instanceId)).toEqual(['a__a-1', 'a__a-2']);
  const whole = { completed_ids: ['a__a-1', 'a__a-2'], resolved_ids: ['a__a-1'], unresolved_ids: ['a__a-2'] };
  expect((await readSource(folder({ 'report.json': whole }))).instances).toHaveLength(2);
  const below = { 'logs/a__a-3/report.json': { 'a__a-3': { resolved: true } } };
  expect([...(await readSource(folder({ 'report.json': whole, ...below }))).verdicts.keys()]).toEqual([
    'a__a-3',
  ]);
});

test('what contradicts itself is told: counts that are not of the lists, ids in two lists', async () => {
  const report = {
    ...{ resolved_ids: ['a__a-1'], unresolved_ids: ['a__a-2'], incomplete_ids: ['a__a-1', 'a__a-3'] },
    ...{ resolved_instances: 7, unresolved_instances: 1, submitted_instances: 2 },
  };
  const read = await readSource(join(folder({ 'm.run.json': report }), 'm.run.json'));
  expect(read.warnings).toEqual(
    expect.arrayContaining([
      expect.stringContaining('lists a__a-1 in incomplete_ids and in resolved_ids; each counts as resolved'),
      expect.stringContaining('says 7 in resolved_instances and lists 1 in resolved_ids; the list counts'),
    ]),
  );
  expect(read.warnings.join()).not.toContain('submitted_instances');
  const entry = folder({
    'results/results.json': { resolved: ['a__a-1'], no_logs: ['a__a-1'], no_generation: ['a__a-2'] },
    'all_preds.jsonl': predictions(['a__a-1', 'a__a-2']),
  });
  expect((await readSource(entry)).warnings).toEqual([
    expect.stringContaining('lists a__a-1 in no_logs and in resolved; each counts as resolved'),
  ]);
});
