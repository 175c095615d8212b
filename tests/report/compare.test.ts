// Comparisons count only what both sides finished validly, say who fell out, and shout when the conditions differ.

import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { lineDiff } from '../../src/base/text/lineDiff.ts';
import { SourceError } from '../../src/formats/sourceError.ts';
import { compareDocument } from '../../src/report/compare/compareDocument.ts';
import { compareAll, compareSides } from '../../src/report/compare/compareSides.ts';
import { readSide, type Side, sideOfArm } from '../../src/report/compare/side.ts';
import { summarize } from '../../src/report/measure/summary.ts';
import { renderMarkdown, renderTerminal } from '../../src/report/render/renderers.ts';
import { summaryDocument } from '../../src/report/render/summaryDocument.ts';
import { newcombe10 } from '../../src/report/statistics/paired.ts';
import { loadRunData } from '../../src/store/records/runData.ts';
import { type Happened, openMemory, type PlannedRun, recordRun } from './recordedRun.ts';

const options = { test: 'exact', seed: 1, draws: 200 } as const;
const home = mkdtempSync(join(tmpdir(), 'swebatch-compare-'));
afterAll(() => rmSync(home, { recursive: true }));

const good: Happened = { outcome: 'resolved' };
const bad: Happened = { outcome: 'unresolved' };

function sideOf(planned: Partial<PlannedRun> & Pick<PlannedRun, 'happened'>): Side {
  const db = openMemory();
  const data = loadRunData(db, recordRun(db, { ids: range(10), ...planned }))!;
  db.close();
  return sideOfArm(data, data.arms[0]!.name);
}

const range = (n: number) => Array.from({ length: n }, (_, i) => `a__a-${i + 1}`);
const report = (resolved: string[], unresolved: string[], more: object = {}) => {
  const path = join(mkdtempSync(join(home, 'report-')), 'r.json');
  const lists = { resolved_ids: resolved, unresolved_ids: unresolved, schema_version: 2, ...more };
  writeFileSync(path, JSON.stringify(lists));
  return readSide(path);
};

test('what a first request holds beside its task is told of both sides, and of none where it is not known', () => {
  const sideWith = (tokens: number, bytes: number) => {
    const db = openMemory();
    const id = recordRun(db, { ids: range(4), happened: () => [good] });
    // The task is 100 of its bytes, with the quotes around it.
    db.prepare('UPDATE instances SET row = ?').run(JSON.stringify({ problem_statement: 'x'.repeat(98) }));
    db.prepare('UPDATE model_calls SET input_tokens = ?, cache_read_tokens = 0, request_bytes = ?').run(
      tokens,
      bytes,
    );
    const data = loadRunData(db, id)!;
    db.close();
    return sideOfArm(data, data.arms[0]!.name);
  };
  const c = compareSides(sideWith(50, 200), sideWith(10_000, 40_000), options);
  expect(c.overheadTokens).toEqual({ a: 25, b: 9975 });
  const all = compareAll([sideWith(50, 200), sideWith(10_000, 40_000)], options);
  expect(renderTerminal(compareDocument(all))).toMatch(
    /tokens beside the task +A 25, B 9975 in a first request/,
  );
  expect(compareSides(sideWith(50, 200), sideWith(50, 90), options).overheadTokens).toEqual({
    a: 25,
    b: null,
  });
});

describe('two runs', () => {
  const a = sideOf({ name: 'a', happened: (id) => [Number(id.slice(5)) <= 6 ? good : bad] });
  const b = sideOf({
    name: 'b',
    happened: (id) => {
      const n = Number(id.slice(5));
      if (n === 1) return [{ reason: 'model_unavailable' }];
      return [{ ...(n <= 3 || n >= 9 ? good : bad), cost: 2e9, steps: 10 }];
    },
  });
  const c = compareSides(a, b, options);

  test('are aligned on instances that both finished validly', () => {
    expect(c.matched).toBe(9);
    expect(c.both).toEqual(['a__a-2', 'a__a-3']);
    expect(c.broken).toEqual(['a__a-4', 'a__a-5', 'a__a-6']);
    expect(c.fixed).toEqual(['a__a-10', 'a__a-9']);
    expect(c.neither).toEqual(['a__a-7', 'a__a-8']);
    expect(c.notComparable).toEqual([{ instanceId: 'a__a-1', why: 'infra', missingIn: 'b' }]);
  });
  test('the difference is B minus A, with the interval of the paired table', () => {
    expect(c.difference!.points).toBeCloseTo(-1 / 9, 12);
    const direct = newcombe10({ both: 2, aOnly: 2, bOnly: 3, neither: 2 });
    expect(c.difference!.interval).toEqual(direct);
    expect(c.test).toEqual({ name: 'exact McNemar', p: 1 });
  });
  test('the sensitivity counts who fell out as failed', () => {
    expect(c.sensitivity).toMatchObject({ n: 10, points: -2 / 10 });
  });
  test('cost and steps are ratios over the matched instances', () => {
    expect(c.ratios.cost!.estimate).toBeCloseTo(2, 12);
    expect(c.ratios.steps!.estimate).toBeCloseTo(2, 12);
    expect(c.ratios.tokens!.estimate).toBeCloseTo(1, 12);
    expect(c.costPerResolved.a!.estimate).toBeCloseTo(9e9 / 5, 3);
  });
  test('cost per resolved is that of the report, also while predictions wait for their verdict', () => {
    const planned: PlannedRun = {
      ids: range(6),
      happened: (id) => {
        const n = Number(id.slice(5));
        if (n > 4) return [{ cost: 1e9 }];
        return [...(n === 1 ? [{ reason: 'env_died' as const, cost: 0.5e9 }] : []), n < 3 ? good : bad];
      },
    };
    const db = openMemory();
    const data = loadRunData(db, recordRun(db, planned))!;
    db.close();
    const summary = summarize(data);
    const { costPerResolved, awaitingVerdict, cost } = summary.arms[0]!.accounting;
    const side = sideOfArm(data, data.arms[0]!.name);
    const compared = compareSides(side, side, options).costPerResolved;
    expect(costPerResolved!.nano).toBe((cost.nano! - 2e9) / 2);
    expect(compared.a!.estimate).toBe(costPerResolved!.nano);
    expect(awaitingVerdict).toEqual({ trials: 2, cost: { nano: 2e9, atLeast: false } });
    expect(renderTerminal(summaryDocument(summary))).toContain(
      'without 2 trials that have no verdict yet ($2.00)',
    );
  });
  test('no result changes with the order of reading, only its sign', () => {
    const back = compareSides(b, a, options);
    expect(back.difference!.points).toBeCloseTo(1 / 9, 12);
    expect(back.fixed).toEqual(c.broken);
    expect(back.test!.p).toBe(c.test!.p);
  });
});

test('which McNemar test decides is named, because it can flip the verdict', () => {
  const ids = range(300);
  const a = report(ids.slice(0, 60), ids.slice(60));
  const b = report(ids.slice(60, 100), [...ids.slice(0, 60), ...ids.slice(100)]);
  expect(compareSides(a, b, options).test!.p).toBeCloseTo(0.0568879, 7);
  const mid = compareSides(a, b, { ...options, test: 'mid-p' });
  expect(mid.test).toMatchObject({ name: 'mid-p McNemar' });
  expect(mid.test!.p).toBeCloseTo(0.0460441, 7);
  expect(mid.reference.exact).toBeCloseTo(0.0568879, 7);
});

test('nothing in common is said, not divided by', () => {
  const c = compareSides(report(['x-1'], []), report(['y-1'], []), options);
  expect(c).toMatchObject({ matched: 0, difference: null, test: null, detectable: null });
  expect(c.warnings.join()).toContain('no instance was validly finished on both');
  expect(c.fellOut).toEqual([
    { why: 'removed', n: 1 },
    { why: 'added', n: 1 },
  ]);
});

describe('epochs', () => {
  const run = (name: string, resolvedIn: (n: number, epoch: number) => boolean) =>
    sideOf({
      name,
      epochs: 3,
      happened: (id, _arm, epoch) => [resolvedIn(Number(id.slice(5)), epoch) ? good : bad],
    });
  const a = run('a', (n) => n <= 5);
  const b = run('b', (n, epoch) => n <= 5 || (n <= 8 && epoch <= 2));

  test('use item means and a permutation over instances; where few differ, t would be too short', () => {
    const c = compareSides(a, b, options);
    expect(c.matched).toBe(10);
    expect(c.difference).toMatchObject({ method: 'Newcombe 10' });
    const t = c.reference.t!.interval;
    expect(c.difference!.interval!.high - c.difference!.interval!.low).toBeGreaterThan(t.high - t.low);
    expect(c.difference!.points).toBeCloseTo(2 / 10, 12);
    expect(c.test!.name).toBe('sign-flip permutation (exact)');
    expect(c.test!.p).toBeCloseTo(2 / 8, 12);
    expect(c.reference.exact).toBeNull();
    expect(c.b).toMatchObject({ meanInterval: { low: expect.any(Number), high: expect.any(Number) } });
    expect(c.b.meanInterval!.high).toBeLessThanOrEqual(1);
    expect(c.difference!.interval!.high).toBeLessThanOrEqual(1);
    expect(c.mixed).toEqual(['a__a-6', 'a__a-7', 'a__a-8']);
    expect(c.fixed).toEqual([]);
  });
  test('where no instance differs, or all by the same, the interval is no point', () => {
    const same = compareSides(a, a, options);
    expect(same.difference).toMatchObject({ points: 0, method: 'Newcombe 10' });
    expect(same.difference!.interval!.low).toBeLessThan(-0.05);
    expect(same.difference!.interval!.high).toBeGreaterThan(0.05);
    const none = run('none', () => false);
    const all = run('all', () => true);
    const c = compareSides(none, all, options);
    expect(c.difference).toEqual({
      points: 1,
      interval: newcombe10({ both: 0, aOnly: 10, bOnly: 0, neither: 0 }),
      method: 'Newcombe 10',
    });
    const text = renderTerminal(compareDocument(compareAll([none, all], options)));
    expect(text).not.toContain('Infinity');
  });
  test('missing epochs are said, and count as failures in the sensitivity', () => {
    const holes = sideOf({
      name: 'holes',
      epochs: 3,
      happened: (id, _arm, epoch) => {
        const n = Number(id.slice(5));
        if (n === 10) return [{ reason: 'env_died' }];
        if (n === 1 && epoch > 1) return [{ reason: 'env_died' }];
        return [n <= 5 ? good : bad];
      },
    });
    const c = compareSides(a, holes, options);
    expect([c.matched, c.partly]).toEqual([9, ['a__a-1']]);
    expect(c.difference!.points).toBe(0);
    expect(c.sensitivity).toMatchObject({ n: 10 });
    expect(c.sensitivity!.points).toBeCloseTo(-2 / 3 / 10, 12);
    const text = renderTerminal(compareDocument(compareAll([a, holes], options)));
    expect(text).toContain('9 (1 with fewer valid epochs than planned)');
    expect(text).toContain('missing as failures: -6.7 pp');
  });
});

describe('conditions', () => {
  const config = (agent: object) => ({ agent, environment: { memory: '4g' } });
  const a = sideOf({
    armConfig: config({ step_limit: 250, instance_template: 'one\ntwo\nthree' }),
    happened: () => [good],
  });

  test('limits, prompts, resources and revision are said loudly, with the difference', () => {
    const b = sideOf({
      datasetRevision: 'abc',
      armConfig: {
        ...config({ step_limit: 100, instance_template: 'one\n2\nthree' }),
        environment: { memory: '8g' },
        model: { model_name: 'other' },
      },
      happened: () => [good],
    });
    const c = compareSides(a, b, options);
    const loud = c.differences.filter((d) => d.loud).map((d) => d.key);
    expect(loud).toEqual([
      'dataset.revision',
      'agent.step_limit',
      'agent.instance_template',
      'environment.memory',
    ]);
    expect(c.differences.find((d) => d.key === 'agent.instance_template')!.diff).toEqual([
      '  one',
      '- two',
      '+ 2',
      '  three',
    ]);
    expect(c.differences.find((d) => d.key === 'model.model_name')!.loud).toBe(false);
    const text = renderTerminal(compareDocument(compareAll([a, b], options)));
    expect(text).toContain('NOT THE SAME CONDITIONS (dataset, limits, prompts, resources)');
    expect(text).toContain('250');
    expect(text).toContain('+ 2');
  });
  test('an arm that differs in nothing but its agent is the same conditions, and its label says the agent', () => {
    const builtIn = sideOf({
      armConfig: config({
        ...{ agent_class: 'default', step_limit: 250, instance_template: 'one', protocol: 'bash-block' },
      }),
      happened: () => [{ ...good, steps: 4 }],
    });
    const with_ = (agent: object) =>
      sideOf({
        armConfig: config({
          agent_class: 'command',
          program: 'qwen@0.24.4',
          prompt_template: 'two',
          ...agent,
        }),
        happened: () => [{ ...good, steps: 8 }],
      });
    const c = compareSides(builtIn, with_({ step_limit: 250, command: 'qwen' }), options);
    expect(c.differences.filter((d) => d.loud)).toEqual([]);
    expect(c.differences.map((d) => d.group)).toEqual(c.differences.map(() => 'agent'));
    expect([c.a.agent, c.b.agent]).toEqual([null, 'qwen@0.24.4']);
    const text = renderTerminal(compareDocument(compareAll([builtIn, with_({ step_limit: 250 })], options)));
    expect(text).toContain('qwen@0.24.4)');
    expect(text).not.toContain('NOT THE SAME CONDITIONS');
    // Limits are the conditions of both; and two arms of one agent are asked as before.
    const loud = (x: Side, y: Side) =>
      compareSides(x, y, options).differences.flatMap((d) => (d.loud ? [d.key] : []));
    expect(loud(builtIn, with_({ step_limit: 100 }))).toEqual(['agent.step_limit']);
    expect(loud(with_({ step_limit: 250 }), with_({ step_limit: 250, prompt_template: 'three' }))).toEqual([
      'agent.prompt_template',
    ]);
  });
  test('rows that changed are said by id, even in a file of the same name', () => {
    const b = sideOf({
      armConfig: config({ step_limit: 250, instance_template: 'one\ntwo\nthree' }),
      rowHashOf: (id) => (id === 'a__a-3' ? 'changed' : 'h'),
      happened: () => [good],
    });
    const [only, ...others] = compareSides(a, b, options).differences;
    expect(others).toEqual([]);
    expect(only).toMatchObject({ key: 'dataset.rows', group: 'dataset', loud: true });
    const text = renderTerminal(compareDocument(compareAll([a, b], options)));
    expect(text).toContain('NOT THE SAME CONDITIONS (dataset)');
    expect(text).toMatch(/not the same for 1 of 10 matched instances:\n +a__a-3/);
  });
  test('images that changed are said by id', () => {
    const digests = (digest: string): Side => ({
      ...a,
      results: new Map(
        [...a.results].map(([id, r]) => [id, { ...r, imageDigest: id === 'a__a-2' ? digest : 'sha256:0' }]),
      ),
    });
    const c = compareSides(digests('sha256:1'), digests('sha256:2'), options);
    expect(c.differences).toMatchObject([{ key: 'images', group: 'resources', loud: true }]);
    expect(c.differences[0]!.diff).toContain('a__a-2');
  });
  test('the same rows under another path are the same dataset; other rows are not', () => {
    const moved = (more: Partial<PlannedRun>) =>
      compareSides(
        a,
        sideOf({
          armConfig: config({ step_limit: 250, instance_template: 'one\ntwo\nthree' }),
          source: '/elsewhere/demo.jsonl',
          happened: () => [good],
          ...more,
        }),
        options,
      ).differences.filter((d) => d.loud);
    expect(moved({})).toEqual([]);
    expect(moved({ rowHashOf: () => 'other' }).map((d) => d.key)).toEqual(['dataset.rows', 'dataset.source']);
  });
  test('the machine is a resource; some megabytes are not another machine', () => {
    const on = (cpus: number, memory_bytes: number) =>
      sideOf({ manifest: { machine: { cpus, memory_bytes, arch: 'x64' } }, happened: () => [good] });
    const loud = (b: Side) =>
      compareSides(on(8, 32 * 2 ** 30), b, options)
        .differences.filter((d) => d.loud)
        .map((d) => d.key);
    expect(loud(on(8, 32 * 2 ** 30 - 5e6))).toEqual([]);
    expect(loud(on(4, 16 * 2 ** 30))).toEqual(['machine.cpus', 'machine.memory_gib']);
  });
  test('run reports tell their harness and the size of their dataset, and what they do not tell is said', () => {
    const old = report(['a-1'], ['a-2'], { total_instances: 500 });
    const new5 = report(['a-1'], ['a-2'], { total_instances: 300, infra_failure_ids: [] });
    const c = compareSides(old, new5, options);
    expect(c.differences.map((d) => [d.key, d.a, d.b, d.loud])).toEqual([
      ['dataset.instances', '500', '300', true],
      ['grading.harnesses_seen', 'v4.1', 'v5', true],
    ]);
    expect(c.conditionsUnknown).toEqual(['r', 'r']);
    expect(compareSides(old, old, options).differences).toEqual([]);
    // A run knows much that a report does not: only what both know is held against each other.
    expect(compareSides(a, old, options).differences.map((d) => d.key)).toEqual(['grading.harnesses_seen']);
  });
  test('equal conditions say nothing', () => {
    const again = sideOf({
      armConfig: config({ step_limit: 250, instance_template: 'one\ntwo\nthree' }),
      happened: () => [bad],
    });
    expect(compareSides(a, again, options).differences).toEqual([]);
  });
});

test('a long list of who fell out is cut on a terminal and whole elsewhere', () => {
  const ids = range(40);
  const all = compareAll([report(ids, []), report(ids.slice(0, 10), ids.slice(10, 11))], options);
  const terminal = renderTerminal(compareDocument(all));
  expect(terminal).toMatch(/Not comparable, removed \(29\):/);
  expect(terminal.replace(/\s+/g, ' ')).toContain('a__a-23 and 17 more (--json)');
  const whole = renderMarkdown(compareDocument(all));
  for (const id of ids) expect(whole).toContain(id.replaceAll('_', '\\_'));
});

describe('several arms', () => {
  const ids = range(12);
  const sides = [ids.slice(0, 10), ids.slice(2, 6), ids.slice(0, 3)].map((r, i) => ({
    ...report(
      r,
      ids.filter((id) => !r.includes(id)),
    ),
    label: 'abc'[i]!,
  }));
  test('every pair is adjusted by Holm after an omnibus test', () => {
    const all = compareAll(sides, options);
    expect(all.comparisons.map((c) => `${c.a.label}${c.b.label}`)).toEqual(['ab', 'ac', 'bc']);
    const [ab, ac] = all.comparisons;
    expect(ac!.test!.p).toBeCloseTo(2 / 2 ** 7, 10);
    expect(ac!.pHolm).toBeCloseTo((3 * 2) / 2 ** 7, 10);
    expect(ab!.pHolm).toBeGreaterThanOrEqual(ac!.pHolm!);
    expect(all.omnibus).toMatchObject({ n: 12, df: 2 });
  });
  test('the text stays within 80 columns', () => {
    const long = sides.map((s) => ({ ...s, label: s.label.repeat(50) }));
    const text = renderTerminal(compareDocument(compareAll(long, options)));
    expect(text.split('\n').filter((l) => [...l].length > 80)).toEqual([]);
  });
});

describe('files of other tools', () => {
  const write = (path: string, value: unknown) => {
    const full = join(home, path);
    mkdirSync(join(full, '..'), { recursive: true });
    writeFileSync(full, typeof value === 'string' ? value : JSON.stringify(value));
    return full;
  };
  test('a run report: errors are no verdict, an empty patch is one', () => {
    const path = write('model.run.json', {
      schema_version: 2,
      total_instances: 500,
      submitted_ids: ['a-1', 'a-2', 'a-3', 'a-4'],
      completed_ids: ['a-1', 'a-2'],
      resolved_ids: ['a-1', 'a-1'],
      unresolved_ids: ['a-2'],
      empty_patch_ids: ['a-3'],
      error_ids: ['a-4'],
      incomplete_ids: ['a-5'],
    });
    const side = readSide(path);
    expect(side.kind).toBe('run-report');
    expect(
      Object.fromEntries([...side.results.values()].map((r) => [r.instanceId, r.why ?? r.scores[0]])),
    ).toEqual({
      'a-1': true,
      'a-2': false,
      'a-3': false,
      'a-4': 'error',
      'a-5': 'incomplete',
    });
    expect(side.warnings.join()).toContain('twice');
  });
  test('leaderboard entries: what neither names neither resolves, when the totals say how many', () => {
    const entry = (name: string, resolved: string[]) => {
      write(`${name}/results/resolved_by_repo.json`, { 'a/a': { resolved: resolved.length, total: 20 } });
      return readSide(
        join(
          write(`${name}/results/results.json`, { resolved, no_generation: ['a-9'], no_logs: ['a-8'] }),
          '..',
          '..',
        ),
      );
    };
    const a = entry('20250101_a', ['a-1', 'a-2']);
    const b = entry('20250102_b', ['a-2', 'a-3', 'a-4']);
    expect(a.label).toBe('20250101_a');
    const c = compareSides(a, b, options);
    expect([c.fixed, c.broken, c.both]).toEqual([['a-3', 'a-4'], ['a-1'], ['a-2']]);
    // 20 in all: 4 resolved somewhere, one empty on both, one without logs on both, 14 that nobody names.
    expect(c.unnamedNeither).toBe(14);
    expect(c.matched).toBe(19);
    expect(c.difference!.points).toBeCloseTo(1 / 19, 12);
  });
  test('leaderboard entries are clustered over all their instances, as far as the totals say them', () => {
    const entry = (name: string, resolved: string[], totals: object) => {
      write(`${name}/results/resolved_by_repo.json`, totals);
      return readSide(join(write(`${name}/results/results.json`, { resolved }), '..', '..'));
    };
    const totals = { 'a/a': { resolved: 0, total: 12 }, 'b/b': { resolved: 0, total: 8 } };
    const a = entry('20250103_a', ['a__a-1', 'b__b-2'], totals);
    const b = entry('20250104_b', ['a__a-1', 'a__a-2', 'a__a-3'], totals);
    const c = compareSides(a, b, options);
    expect(c.matched).toBe(20);
    expect(c.clusters).toMatchObject({ clusters: 2, test: { n: 20, mean: 1 / 20 } });
    // Shares 12 and 8 of 20, not those of the few that are named.
    expect(c.clusters!.effective).toBeCloseTo(1 / (0.6 ** 2 + 0.4 ** 2), 12);
    const other = entry('20250105_c', ['a__a-2'], { 'a/a': { total: 10 }, 'b/b': { total: 10 } });
    expect(compareSides(a, other, options).clusters).toBeNull();
    const three = compareAll([a, b, entry('20250106_d', ['a__a-2'], totals)], options);
    expect(three.omnibus!.n).toBe(20);
  });
  test('a leaderboard entry against a run report takes its instances from the report', () => {
    const board = readSide(write('x/results.json', { resolved: ['a-1'] }));
    const c = compareSides(board, report(['a-1', 'a-2'], ['a-3']), options);
    expect([c.matched, c.fixed, c.neither]).toEqual([3, ['a-2'], ['a-3']]);
  });
  test('predictions with the reports beside them, keyed or not', () => {
    const preds = ['a-1', 'a-2', 'a-3', 'a-4'].map((id) => ({
      instance_id: id,
      model_name_or_path: 'm',
      model_patch: id === 'a-3' ? '' : 'diff',
    }));
    const path = write('p/all_preds.jsonl', `${preds.map((p) => JSON.stringify(p)).join('\n\n')}\n`);
    write('p/logs/run_evaluation/r/m/a-1/report.json', { 'a-1': { resolved: true } });
    write('p/logs/run_evaluation/r/m/a-2/report.json', { resolved: false });
    const side = readSide(path);
    expect([...side.results.values()].map((r) => r.why ?? r.scores[0])).toEqual([
      true,
      false,
      false,
      'not_graded',
    ]);
    expect(readSide(join(path, '..')).label).toBe('p');
  });
  test('predictions that nobody graded are no failures, empty or not; rows without a patch are no predictions', () => {
    const rows = [
      { instance_id: 'a-1', model_patch: '' },
      { instance_id: 'a-2', model_patch: 'diff' },
      { instance_id: 'a-3', patch: 'diff' },
    ];
    const side = readSide(write('u/preds.json', rows));
    expect([...side.results.values()].map((r) => r.why)).toEqual(Array(3).fill('not_graded'));
    expect(side.warnings.join()).toContain('no reports were found');
    expect(() => readSide(write('u/summary.json', { 'a-1': { resolved: true, cost: 1 } }))).toThrow(
      SourceError,
    );
  });
  test('what is none of these is refused with what was expected', () => {
    expect(() => readSide(write('odd.json', { hello: 1 }))).toThrow(SourceError);
    expect(() => readSide(write('broken.json', '{'))).toThrow(/is not JSON/);
    mkdirSync(join(home, 'empty'));
    expect(() => readSide(join(home, 'empty'))).toThrow(/neither results.json/);
  });

  const real = join(import.meta.dirname, '..', '..', '..', 'shared', 'data', 'grading-logs', 'verified-98');
  test.skipIf(!existsSync(real))(
    'a real run report agrees with its own counts (needs the shared data folder)',
    () => {
      const side = readSide(join(real, 'run-report.json'));
      const raw = JSON.parse(readFileSync(join(real, 'run-report.json'), 'utf8'));
      const valid = [...side.results.values()].filter((r) => r.scores.length > 0);
      expect(valid.length).toBe(raw.completed_instances + raw.empty_patch_instances - raw.error_instances);
      expect(valid.filter((r) => r.scores[0]).length).toBe(raw.resolved_instances);
      const same = compareSides(side, side, options);
      expect([same.fixed, same.broken, same.test!.p, same.notComparable]).toEqual([[], [], 1, []]);
      const preds = readSide(join(real, 'predictions.jsonl'));
      const c = compareSides(side, preds, options);
      expect([c.fixed, c.broken]).toEqual([[], []]);
      expect(c.matched).toBeGreaterThan(90);
    },
  );
});

test('a line diff keeps one line of context and survives large texts', () => {
  expect(lineDiff('a\nb\nc\nd', 'a\nb\nx\nd\ne')).toEqual(['  b', '- c', '+ x', '  d', '+ e']);
  expect(lineDiff('same', 'same')).toEqual([]);
  const large = Array.from({ length: 3000 }, (_, i) => `l${i}`).join('\n');
  expect(lineDiff(large, large.replaceAll('l', 'm')).length).toBe(6000);
});
