// Predictions from outside as a run in the database: recorded once, extended, graded history, reports, calibration.

import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { LoadedRow } from '../../src/dataset/dataset.ts';
import { rowHashOf } from '../../src/dataset/read/row.ts';
import type { Prediction } from '../../src/formats/predictions.ts';
import { type PredictionsRun, recordPredictions } from '../../src/grading/recordPredictions.ts';
import { storedReports } from '../../src/grading/storedReports.ts';
import { openStore, type Store } from '../../src/store/open.ts';
import {
  calibration,
  type EvaluationRow,
  goldStandings,
  gradableTrials,
  insertEvaluation,
  verdictsOf,
} from '../../src/store/records/evaluations.ts';
import { instancesOf } from '../../src/store/records/runs.ts';
import { attemptsOf, trialsOf } from '../../src/store/records/trials.ts';
import { verifyRun } from '../../src/store/verifyRun.ts';
import { normaliseRow } from '../support/suites.ts';

let db: Store;
beforeEach(() => {
  db = openStore(':memory:');
});
afterEach(() => db.close());

function loaded(id: string, statement = 'x'): LoadedRow {
  const read = normaliseRow({
    instance_id: id,
    base_commit: 'c',
    problem_statement: statement,
    FAIL_TO_PASS: ['a'],
  });
  if (!read.ok) throw new Error(read.messages.join());
  return { instance: read.instance, rowHash: rowHashOf(read.instance), line: 1 };
}
const p = (id: string, patch: string | null = 'x\n', model = 'm'): Prediction => ({
  instance_id: id,
  model_name_or_path: model,
  model_patch: patch,
});
const record = (predictions: readonly Prediction[], more: Partial<PredictionsRun> = {}) =>
  recordPredictions(db, {
    name: 'r1',
    predictions,
    rows: new Map(['a', 'b', 'c'].map((id) => [id, loaded(id)])),
    dataset: { source: 'd', revision: null },
    config: '{}',
    configHash: 'h',
    armConfig: '{}',
    manifest: '{}',
    now: () => new Date(Date.UTC(2026, 0, 1)),
    ...more,
  });
function verdict(trial: ReturnType<typeof gradableTrials>[number], more: Partial<EvaluationRow>): void {
  const id = instancesOf(db, 1).find((row) => row.id === trial.instance_pk)!.instance_id;
  insertEvaluation(db, {
    run_id: 1,
    trial_id: trial.trial_id,
    attempt_id: trial.attempt_id,
    instance_id: id,
    model: trial.model,
    patch_sha256: trial.patch_sha256,
    spec_hash: 's',
    harness: 'v5',
    outcome: 'resolved',
    resolved: 1,
    resolved_strict: 1,
    report: '{}',
    log: null,
    apply_method: null,
    exit_code: 0,
    infra_reason: null,
    suspicion: '[]',
    error_message: null,
    network: 'default',
    image_digest: 'sha256:1',
    source: 'native',
    started_at: '2026-01-01T00:00:00Z',
    duration_ms: 1,
    ...more,
  }); // prettier-ignore
}

test('a patch that no file can hold is marked invalid, with the reason; any other text is not', () => {
  record([p('a', 'diff --git a/x b/x\n+\udce9\n'), p('b', 'diff --git a/x b/x\n+é😀\ufffd\n')]);
  const [torn, whole] = trialsOf(db, 1).map((trial) => attemptsOf(db, trial.id)[0]!);
  expect(torn).toMatchObject({ patch_state: 'invalid', notes: expect.stringContaining('half characters') });
  expect(torn!.model_patch).toContain('+\ufffd\n');
  expect(whole).toMatchObject({ patch_state: 'ok', notes: expect.not.stringContaining('half') });
});

describe('recording', () => {
  test('each prediction is a sealed attempt that can be graded, and the record is whole', () => {
    expect(record([p('a'), p('b', ''), p('c', null)])).toMatchObject({
      ok: true,
      changed: 3,
      run: { imported: 1, status: 'complete' },
    });
    expect(gradableTrials(db, 1).map((t) => [t.model, t.model_patch])).toEqual([
      ['m', 'x\n'],
      ['m', ''],
      ['m', ''],
    ]);
    expect(verifyRun(db, { id: 1 } as never).ok).toBe(true);
  });
  test('again with one changed patch: one new attempt, whose verdict is open, and the old history stays', () => {
    record([p('a'), p('b')]);
    for (const trial of gradableTrials(db, 1)) verdict(trial, {});
    expect(record([p('a'), p('b', 'other\n')])).toMatchObject({ ok: true, changed: 1 });
    expect(trialsOf(db, 1).map((trial) => attemptsOf(db, trial.id).length)).toEqual([1, 2]);
    expect(verdictsOf(db, 1).size).toBe(1);
    expect(db.prepare('SELECT count(*) AS n FROM evaluations').get()).toEqual({ n: 2 });
  });
  test('more instances and another model extend the run', () => {
    record([p('a')]);
    expect(record([p('a'), p('b'), p('a', 'y\n', 'n')])).toMatchObject({ changed: 2 });
    expect(gradableTrials(db, 1)).toHaveLength(3);
    expect(instancesOf(db, 1)).toHaveLength(2);
  });
  test('a changed row is refused, and so is the name of a run of ours', () => {
    record([p('a')]);
    const rows = new Map([['a', loaded('a', 'other words')]]);
    expect(record([p('a')], { rows })).toMatchObject({
      ok: false,
      message: expect.stringMatching(/another revision.*--run-id/),
    });
    db.prepare('UPDATE runs SET imported = 0').run();
    expect(record([p('a')])).toMatchObject({ ok: false, message: expect.stringMatching(/run of its own/) });
  });
});

test('run reports come from the newest verdicts, with reasons from the stored logs', () => {
  record([p('a'), p('b'), p('c', '')]);
  const [a, b] = gradableTrials(db, 1);
  verdict(a!, {});
  verdict(b!, { outcome: 'invalid', resolved: 0, report: '{}', log: gzipSync('no tests ran') });
  const [part] = storedReports(db, 1, 'v5', ['a', 'b', 'c', 'd']);
  expect(part).toMatchObject({
    arm: 'm',
    epoch: 1,
    model: 'm',
    report: {
      total_instances: 4,
      resolved_ids: ['a'],
      unresolved_ids: ['b'],
      empty_patch_ids: ['c'],
      incomplete_ids: ['d'],
      ambiguous_failure_ids: ['b'],
    },
  }); // prettier-ignore
  // A call that asks for some of them is told about those.
  expect(storedReports(db, 1, 'v5', ['a'])[0]!.report).toMatchObject({
    total_instances: 1,
    submitted_ids: ['a'],
    resolved_ids: ['a'],
  });
  verdict(b!, { outcome: 'timeout', resolved: null, report: null });
  expect(storedReports(db, 1, 'v5')[0]!.report).toMatchObject({ error_ids: ['b'], total_instances: 3 });
});

test('gold passes, fails or is flaky on this machine, by image; broken evaluations say nothing', () => {
  record([p('a', 'g', 'gold'), p('b', 'g', 'gold'), p('c', 'g', 'gold')]);
  const [a, b, c] = gradableTrials(db, 1);
  verdict(a!, {});
  verdict(a!, { outcome: 'infra', resolved: null });
  verdict(b!, { outcome: 'unresolved', resolved: 0 });
  verdict(c!, {});
  verdict(c!, { outcome: 'timeout', resolved: null });
  verdict(b!, { image_digest: 'sha256:2', started_at: '2026-02-01T00:00:00Z' });
  expect(calibration(db).map((row) => [row.instance_id, row.image_digest, row.standing])).toEqual([
    ['a', 'sha256:1', 'passes'],
    ['b', 'sha256:1', 'fails'],
    ['b', 'sha256:2', 'passes'],
    ['c', 'sha256:1', 'flaky'],
  ]);
  expect(goldStandings(db).get('b')!.standing).toBe('passes');
});

test('gold by other rules, without the network or without a patch does not make a passing one flaky', () => {
  record([p('a', 'g', 'gold'), p('b', '', 'gold')]);
  const [a, b] = gradableTrials(db, 1);
  const lost = { outcome: 'unresolved', resolved: 0 } as const;
  verdict(a!, { ...lost, harness: 'v4.1', started_at: '2025-12-01T00:00:00Z' });
  verdict(a!, { ...lost, network: 'none', started_at: '2025-12-02T00:00:00Z' });
  verdict(a!, {});
  verdict(b!, { outcome: 'empty_patch', resolved: null });
  expect(calibration(db).map((row) => [row.instance_id, row.harness, row.network, row.standing])).toEqual([
    ['a', 'v4.1', 'default', 'fails'],
    ['a', 'v5', 'none', 'fails'],
    ['a', 'v5', 'default', 'passes'],
  ]);
  expect([...goldStandings(db)].map(([id, { standing }]) => [id, standing])).toEqual([['a', 'passes']]);
});
