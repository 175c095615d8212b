// A summary counts what is known, names what is missing, and never mixes the two.
import { describe, expect, test } from 'vitest';
import { summarize } from '../../src/report/measure/summary.ts';
import { renderTerminal } from '../../src/report/render/renderers.ts';
import { summaryDocument } from '../../src/report/render/summaryDocument.ts';
import { loadRunData } from '../../src/store/records/runData.ts';
import { type Happened, openMemory, type PlannedRun, recordRun } from './recordedRun.ts';

const good: Happened = { outcome: 'resolved' };
const bad: Happened = { outcome: 'unresolved' };

function summaryOf(planned: PlannedRun) {
  const db = openMemory();
  const data = loadRunData(db, recordRun(db, planned))!;
  db.close();
  return { data, summary: summarize(data) };
}

const text = (planned: PlannedRun) => renderTerminal(summaryDocument(summaryOf(planned).summary));

test('a part of a run that began with the longest is called a biased sample, all of it is not', () => {
  const partial = (order: string, done: string[]): PlannedRun => ({
    ids: ['a__a-1', 'a__a-2'],
    config: { run: { order } },
    happened: (id) => (done.includes(id) ? [good] : []),
  });
  expect(text(partial('longest', ['a__a-1']))).toContain('biased sample');
  expect(text(partial('longest', ['a__a-1', 'a__a-2']))).not.toContain('biased sample');
  expect(text(partial('shuffle', ['a__a-1']))).not.toContain('biased sample');
});

test('tasks that were left out because they cannot run here are counted, and only where there are some', () => {
  const run = (unsupported?: object[]): PlannedRun => ({
    ids: ['a__a-1'],
    manifest: { dataset: { source: 'tasks', ...(unsupported && { unsupported }) } },
    happened: () => [good],
  });
  const left = [{ instance_id: 'gpu', reason: 'it asks for a GPU' }];
  expect(text(run(left))).toContain('left out  1 task that cannot run here (--skip-unsupported)');
  expect(summaryOf(run(left)).summary.arms[0]!.leftOut).toBe(1);
  expect(text(run())).not.toContain('left out');
  expect(summaryOf(run()).summary.arms[0]).not.toHaveProperty('leftOut');
});

test('errors of providers that nobody knows are named, and count against nobody', () => {
  const run: PlannedRun = {
    ids: ['a__a-1', 'a__a-2', 'a__a-3'],
    happened: (id) =>
      id === 'a__a-1'
        ? [good]
        : [{ reason: 'model_rejected', detail: id === 'a__a-2' ? 'UNKNOWN' : 'RATE_LIMITED' }],
  };
  const { summary } = summaryOf(run);
  expect(summary.arms[0]).toMatchObject({ unknownErrors: ['a__a-2'], valid: 1 });
  expect(text(run).replaceAll(/\s+/g, ' ')).toContain(
    'an error of the provider that is not known here: it counts against nobody',
  );
  expect(summaryOf({ ...run, happened: () => [good] }).summary.arms[0]).not.toHaveProperty('unknownErrors');
});

describe('what counts', () => {
  const planned: PlannedRun = {
    ids: ['a__a-1', 'a__a-2', 'b__b-1', 'b__b-2', 'b__b-3', 'b__b-4'],
    happened: (id) =>
      ({
        'a__a-1': [good],
        'a__a-2': [{ reason: 'model_unavailable' as const }, bad],
        'b__b-1': [{ reason: 'env_died' as const }],
        'b__b-2': [{ reason: 'limit_steps' as const }],
        'b__b-3': [{ outcome: 'infra' as const, resolved: false }],
      })[id] ?? [],
  };
  const { summary } = summaryOf(planned);
  const arm = summary.arms[0]!;

  test('an outage is missing, not failed; an empty patch of a graded run is failed', () => {
    expect(arm.planned).toBe(6);
    expect(arm.resolved).toMatchObject({ x: 1, n: 3 });
    expect(arm.coverage).toMatchObject({ x: 3, n: 6 });
    expect(Object.fromEntries(arm.missing.map((m) => [m.why, m.ids]))).toEqual({
      infra: ['b__b-1'],
      grading_infra: ['b__b-3'],
      not_run: ['b__b-4'],
    });
  });
  test('bounds run from all missing failed to all missing resolved', () => {
    expect(arm.bounds).toEqual({ worst: 1 / 6, best: 4 / 6 });
    expect(summary.complete).toBe(false);
  });
  test('exit reasons and repositories add up to what was planned', () => {
    expect(arm.byExitReason.reduce((s, r) => s + r.n, 0)).toBe(6);
    expect(arm.byRepo.reduce((s, r) => s + r.planned, 0)).toBe(6);
    expect(arm.byRepo.map((r) => [r.key, r.resolved.x, r.resolved.n])).toEqual([
      ['b/b', 0, 1],
      ['a/a', 1, 2],
    ]);
  });
  test('money counts every attempt, also the one that was tried again', () => {
    expect(arm.accounting.cost).toEqual({ nano: 6e9, atLeast: false });
    expect(arm.accounting.lostCost.nano).toBe(1e9);
    expect(arm.accounting.costPerResolved!.nano).toBe(6e9);
    expect(arm.accounting.cachedShare).toBeCloseTo(0.75, 12);
    expect(arm.accounting.dearest[0]).toMatchObject({ instanceId: 'a__a-2', cost: { nano: 2e9 } });
    expect(arm.retried.ids).toEqual(['a__a-2']);
  });
});

test('an unknown cost makes the sum a lower bound and never 0', () => {
  const some = summaryOf({
    ids: ['a__a-1', 'a__a-2'],
    happened: (id) => [{ cost: id.endsWith('1') ? null : 5e9 }],
  });
  expect(some.summary.arms[0]!.accounting.cost).toEqual({ nano: 5e9, atLeast: true });
  const none = summaryOf({ ids: ['a__a-1'], happened: () => [{ cost: null, outcome: 'resolved' }] });
  expect(none.summary.arms[0]!.accounting.cost.nano).toBeNull();
  expect(text({ ids: ['a__a-1'], happened: () => [{ cost: null }] })).toContain('unknown in 1 model call');
});

test('token kinds are priced at list price, or admitted as unknown', () => {
  const { data } = summaryOf({ ids: ['a__a-1'], happened: () => [good] });
  const priced = summarize(data, { pricesOf: () => ({ input: 2, output: 12, cache_read: 0.125 }) });
  expect(priced.arms[0]!.accounting.byTokenKind.map((k) => [k.kind, k.nano])).toEqual([
    ['input', 200_000],
    ['cache_read', 37_500],
    ['cache_write', 0],
    ['output', 600_000],
  ]);
  expect(summarize(data).arms[0]!.accounting.byTokenKind[0]!.nano).toBeNull();
});

describe('what caching saved', () => {
  const claude = { input: 3, output: 15, cache_read: 0.3, cache_write: 3.75, cache_write_1h: 6 };
  const of = (happened: Happened, pricesOf: () => typeof claude | 'free' | null = () => claude) => {
    const { data } = summaryOf({ ids: ['a__a-1'], happened: () => [happened] });
    const summary = summarize(data, { pricesOf });
    return { saved: summary.arms[0]!.accounting.cacheSaved, shown: renderTerminal(summaryDocument(summary)) };
  };
  test('is what reading saved, less what writing cost more', () => {
    // 300 read at 0.3 instead of 3, 400 written at 3.75 instead of 3: 810,000 - 300,000 of 2,400,000 nano-dollars.
    const { saved, shown } = of({ ...good, cacheWrite: 400 });
    expect(saved).toEqual({ nano: 510_000, share: 510_000 / 2_400_000 });
    expect(shown).toMatch(
      /saved by cache +\$0\.00051 at list price, 21\.\d % of what the input costs without/,
    );
  });
  test('knows that an hour costs more than five minutes', () => {
    const usage = { cache_creation: { ephemeral_5m_input_tokens: 300, ephemeral_1h_input_tokens: 100 } };
    const { saved } = of({ ...good, cacheWrite: 400, usage });
    expect(saved!.nano).toBe(810_000 - 300 * 750 - 100 * 3000);
  });
  test('says so where writing cost more than reading saved', () => {
    expect(of({ ...good, cacheRead: 0, cacheWrite: 4000 }).shown).toMatch(
      /saved by cache +nothing: writing .* \$0\.0030 more/,
    );
  });
  test('is unknown without a price, and no subject without a cache or without money', () => {
    expect(of(good, () => null)).toMatchObject({
      saved: { nano: null },
      shown: expect.stringMatching(/saved by cache +unknown/),
    });
    for (const none of [of({ ...good, cacheRead: 0 }), of(good, () => 'free')]) {
      expect(none.saved).toBeUndefined();
      expect(none.shown).not.toContain('saved by cache');
    }
  });
  test('the list price of what was written is that of its five minutes and its hour', () => {
    const usage = { cache_creation: { ephemeral_1h_input_tokens: 100 } };
    const { data } = summaryOf({ ids: ['a__a-1'], happened: () => [{ ...good, cacheWrite: 400, usage }] });
    const kinds = summarize(data, { pricesOf: () => claude }).arms[0]!.accounting.byTokenKind;
    expect(kinds.find(({ kind }) => kind === 'cache_write')).toMatchObject({ nano: 300 * 3750 + 100 * 6000 });
  });
});

test('flagged attempts are listed, and the score is shown without them', () => {
  const { summary } = summaryOf({
    ids: ['a__a-1', 'a__a-2'],
    happened: (id) => [id.endsWith('1') ? { ...good, suspicion: [{ rule: 'future_history' }] } : bad],
  });
  expect(summary.arms[0]!.flagged).toMatchObject({
    trials: [{ instanceId: 'a__a-1', rules: ['future_history'] }],
    resolvedWithout: { x: 0, n: 1 },
  });
});

test('with epochs the instances are the sample, and both noises are printed', () => {
  const planned: PlannedRun = {
    ids: ['a__a-1', 'a__a-2', 'a__a-3'],
    epochs: 2,
    happened: (id, _arm, epoch) => [id.endsWith('1') || (id.endsWith('2') && epoch === 1) ? good : bad],
  };
  const arm = summaryOf(planned).summary.arms[0]!;
  expect(arm.estimate).toMatchObject({ n: 3, mean: 0.5 });
  expect(arm.passes.map((p) => [p.k, p.passAtK.mean, p.passHatK.mean])).toEqual([
    [1, 0.5, 0.5],
    [2, 2 / 3, 1 / 3],
  ]);
  const shown = text(planned);
  expect(shown).toContain('mean of 3 instances');
  expect(shown).toMatch(/same instances again: SE \d/);
});

test('with epochs every part of the run is over instances too: trials of one instance are no sample', () => {
  const planned: PlannedRun = {
    ids: ['a__a-1', 'a__a-2', 'b__b-1'],
    epochs: 3,
    happened: (id, _arm, epoch) => [
      {
        ...(id === 'a__a-1' || (id === 'a__a-2' && epoch === 1) ? good : bad),
        ...(id === 'b__b-1' ? { suspicion: [{ rule: 'network_attempt' }] } : {}),
      },
    ],
  };
  const arm = summaryOf(planned).summary.arms[0]!;
  const [a, b] = arm.byRepo;
  expect(a).toMatchObject({ key: 'a/a', resolved: { x: 4, n: 6 }, overInstances: { n: 2 } });
  expect(a!.overInstances!.mean).toBeCloseTo(2 / 3, 12);
  expect(b!.overInstances).toMatchObject({ n: 1, mean: 0 });
  expect(arm.flagged.estimateWithout).toMatchObject({ n: 2 });
  const shown = text(planned);
  expect(shown).toMatch(/66\.7 % \[\d+\.\d, \d+\.\d\] \(n = 2\)/);
  expect(shown).toContain('0.0 % [0.0, 79.3] (n = 1)');
  // What would be Wilson's interval over trials.
  expect(shown).not.toContain('4/6');
});

test('all resolved in every epoch is no certainty', () => {
  const shown = text({ ids: ['a__a-1', 'a__a-2'], epochs: 2, happened: () => [good] });
  expect(shown).toContain('100.0 % [34.2, 100.0] mean of 2 instances (Wilson 95 %)');
  expect(shown).toContain('new instances: unknown, all had the same result');
  expect(shown).not.toMatch(/\[100\.0, 100\.0\]/);
});

test('an empty patch was never examined and stays a failure of the strict score', () => {
  const planned: PlannedRun = {
    ids: ['a__a-1', 'a__a-2', 'a__a-3', 'a__a-4'],
    happened: (id) =>
      id === 'a__a-1'
        ? [good]
        : id === 'a__a-2'
          ? [{ ...good, strict: false }]
          : [{ reason: 'limit_steps', outcome: 'empty_patch', resolved: null }],
  };
  const arm = summaryOf(planned).summary.arms[0]!;
  expect(arm.resolved).toMatchObject({ x: 2, n: 4 });
  expect(arm.resolvedStrict).toMatchObject({ x: 1, n: 4 });
});

test('where results were tried again the score of first attempts stands beside the final one', () => {
  const planned: PlannedRun = {
    ids: ['a__a-1', 'a__a-2', 'a__a-3'],
    happened: (id) =>
      id === 'a__a-1'
        ? [bad, { ...good, patch: 'better' }]
        : id === 'a__a-2'
          ? [{ reason: 'env_died' }, good]
          : [{ reason: 'limit_steps' }, { ...good, patch: 'second' }],
  };
  const arm = summaryOf(planned).summary.arms[0]!;
  expect(arm.resolved).toMatchObject({ x: 3, n: 3 });
  // An outage that was tried again is no result; a limit is, and its empty patch fails.
  expect(arm.firstAttempt).toMatchObject({ redone: 2, resolved: { x: 1, n: 3 } });
  expect(text(planned)).toMatch(/first attempt +1\/3 = 33\.3 % .* before 2 results were tried\s+again/);
  expect(summaryOf({ ids: ['a__a-1'], happened: () => [good] }).summary.arms[0]!.firstAttempt).toBeNull();
});

test('no interval is made of a cost that is not fully known', () => {
  const planned = (cost: number | null): PlannedRun => ({
    ids: ['a__a-1', 'a__a-2', 'a__a-3', 'a__a-4', 'a__a-5', 'a__a-6'],
    happened: (id) => [{ ...good, cost: id === 'a__a-1' ? cost : 1e9 }],
  });
  expect(text(planned(1e9))).toMatch(/per resolved +\$1\.00 \[/);
  expect(text(planned(null))).toMatch(/per resolved +≥ \$0\.83$/m);
});

test('a stratified sample counts an instance once, with the mean of its epochs', () => {
  const { summary } = summaryOf({
    ids: ['a__a-1', 'b__b-2', 'b__b-3'],
    epochs: 2,
    manifest: { selection: { sample: 3, stratify: 'repo', seed: 7 } },
    weightOf: () => 10,
    happened: (id, _arm, epoch) => {
      if (id === 'a__a-1') return epoch === 1 ? [{ reason: 'env_died' }] : [good];
      return [id === 'b__b-2' && epoch === 1 ? good : bad];
    },
  });
  const { p, n, strata } = summary.arms[0]!.stratified!;
  expect(strata.map((s) => [s.key, s.size, s.n, s.resolved])).toEqual([
    ['a/a', 10, 1, 1],
    ['b/b', 20, 2, 0.5],
  ]);
  expect([p, n]).toEqual([1 / 3 + (2 / 3) * 0.25, 3]);
});

test('a stratified sample is weighted by the strata of the manifest', () => {
  const { summary } = summaryOf({
    ids: ['a__a-1', 'a__a-2', 'b__b-2', 'b__b-3'],
    manifest: { selection: { sample: 4, stratify: 'repo', seed: 7 } },
    weightOf: (id) => (id.startsWith('a') ? 5 : 45),
    happened: (id) => [id === 'b__b-3' ? bad : good],
  });
  expect(summary.arms[0]!.stratified!.p).toBeCloseTo(0.1 + 0.9 * 0.5, 12);
});

test('a stratum of which nothing was drawn is named: the estimate does not speak for it', () => {
  const strata = [
    { key: ['a/a'], size: 5, sampled: 1 },
    { key: ['c/c'], size: 3, sampled: 0 },
  ];
  const planned: PlannedRun = {
    ids: ['a__a-1'],
    manifest: { selection: { sample: 1, stratify: 'repo', seed: 7 }, dataset: { strata } },
    weightOf: () => 5,
    happened: () => [good],
  };
  expect(summaryOf(planned).summary.arms[0]!.stratified).toMatchObject({ p: 1, n: 1, unseen: ['c/c'] });
  expect(text(planned)).toContain('nothing valid in c/c: the estimate does not speak for it');
});

describe('terminal', () => {
  test('an ungraded run has no rate', () => {
    expect(text({ ids: ['a__a-1'], happened: () => [{}] })).toContain('not graded');
  });
  test('stays within 80 columns whatever the names are', () => {
    const long = 'x'.repeat(60);
    const shown = text({
      ids: [`${long}__${long}-1`, `${long}__${long}-2`],
      arms: [`arm-${long}`, 'other'],
      happened: (id) => [{ ...(id.endsWith('1') ? good : bad), suspicion: [{ rule: 'network_attempt' }] }],
    });
    const wide = shown.split('\n').filter((l) => [...l].length > 80);
    expect(wide).toEqual([]);
  });
  test('every proportion carries its n and its interval', () => {
    const shown = text({
      ids: ['a__a-1', 'a__a-2', 'b__b-1'],
      happened: (id) => [id.endsWith('1') ? good : bad],
    });
    expect(shown).toContain('2/3 = 66.7 % [20.8, 93.9]');
    expect(shown).toContain('coverage 3/3 = 100.0 % [43.9, 100.0]');
  });
  test('text from a model cannot move the cursor, hide or turn around', () => {
    const shown = text({
      ids: ['a__a-1'],
      arms: ['evil\u001b[2J\u001b]0;title\u0007\u202eeman\u0000'],
      happened: () => [good],
    });
    expect(shown).toContain('evileman');
    expect(shown).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u202a-\u202e]/);
  });
});

test('what an imported run cost is unknown where its calls are not written down', () => {
  const db = openMemory();
  const runId = recordRun(db, { ids: ['a__a-1'], happened: () => [good] });
  db.prepare('DELETE FROM model_calls').run();
  const costOf = () => summarize(loadRunData(db, runId)!).arms[0]!.accounting.cost.nano;
  expect(costOf()).toBe(0);
  db.prepare('UPDATE runs SET imported = 1').run();
  expect(costOf()).toBeNull();
  db.close();
});
