// What the page of a run says about its trials, without a browser.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { readLiveRun } from '../../src/run/liveRun.ts';
import type { ReportTrial } from '../../src/store/records/runData.ts';
import { runById } from '../../src/store/records/runs.ts';
import {
  costSizes,
  groupCells,
  type MapCell,
  missingParts,
  type RunMap,
  readCells,
} from '../../src/viewer/documents/mapGroups.ts';
import type { RunDocument } from '../../src/viewer/documents/resources.ts';
import { createDocuments } from '../../src/viewer/documents/resources.ts';
import type { TrialPage } from '../../src/viewer/documents/trialDocuments.ts';
import { addRun, openFixture } from './fixture.ts';
import { addHostileRun } from './hostileRun.ts';

const cell = (instanceId: string, more: Partial<MapCell> = {}): MapCell => ({
  instanceId,
  repo: 'a/a',
  difficulty: '',
  arm: 'main',
  epoch: 1,
  verdict: 'resolved',
  exitClass: 'agent',
  reason: 'submitted',
  costNano: 1,
  steps: 1,
  attempt: 1,
  ...more,
});

describe('the map of a run', () => {
  test('groups by repository, the largest first; within one what was resolved first, the dearest first', () => {
    const groups = groupCells(
      [
        cell('b', { repo: 'b/b', verdict: 'infra' }),
        cell('cheap', { costNano: 1 }),
        cell('failed', { verdict: 'unresolved', costNano: 9 }),
        cell('dear', { costNano: 5 }),
        cell('unknown', { costNano: null }),
      ],
      'repo',
    );
    expect(groups.map(({ name, cells }) => [name, cells.length])).toEqual([
      ['a/a', 4],
      ['b/b', 1],
    ]);
    expect(groups[0]!.cells.map((one) => one.instanceId)).toEqual(['dear', 'cheap', 'unknown', 'failed']);
  });

  test('difficulties go from easy to hard, others behind them', () => {
    const names = ['>4 hours', 'x', '<15 min fix', '1-4 hours', '15 min - 1 hour', ''];
    const groups = groupCells(
      names.map((difficulty) => cell(difficulty, { difficulty })),
      'difficulty',
    );
    expect(groups.map(({ name }) => name)).toEqual([
      '<15 min fix',
      '15 min - 1 hour',
      '1-4 hours',
      '>4 hours',
      '',
      'x',
    ]);
  });

  test('what is missing is counted by why, and a verdict is never missing', () => {
    const trial = (exitClass: string, exitReason: string, outcome: string | null) =>
      ({ arm: 'main', state: 'sealed', exitClass, exitReason, outcome, resolved: null }) as ReportTrial;
    const trials = [
      trial('agent', 'submitted', 'resolved'),
      trial('agent', 'submitted', 'unresolved'),
      ...[1, 2].map(() => trial('infra', 'stalled', null)),
      trial('infra', 'disk', null),
    ];
    expect(missingParts({ trials })).toEqual([
      { verdict: 'infra', reason: 'stalled', n: 2 },
      { verdict: 'infra', reason: 'disk', n: 1 },
    ]);
  });

  test('five sizes by cost; an unknown cost has none', () => {
    const cells = Array.from({ length: 10 }, (_, i) => cell(String(i), { costNano: i }));
    expect(cells.map(costSizes(cells))).toEqual([1, 1, 2, 2, 3, 3, 4, 4, 5, 5]);
    expect(costSizes(cells)(cell('x', { costNano: null }))).toBe(0);
  });
});

describe('the documents behind it', () => {
  const withRecord = (
    work: (read: (path: string) => unknown, store: ReturnType<typeof openFixture>) => void,
  ) => {
    const dir = mkdtempSync(join(tmpdir(), 'swebatch-map-'));
    const store = openFixture(dir);
    try {
      work((path) => createDocuments(store, { title: 't' }).read(path), store);
    } finally {
      store.close();
      rmSync(dir, { recursive: true, force: true });
    }
  };

  test('the map says of each trial what its table says, in a fraction of the bytes', () => {
    withRecord((read, store) => {
      const run = addRun(store, { name: 'wide', instances: 900, steps: 1, arms: ['main'] });
      const map = read(`runs/${run}/map/0`) as RunMap;
      const rows = (read(`runs/${run}/trials/0`) as TrialPage).rows;
      expect(
        readCells(map).map((one) => [
          one.instanceId,
          one.repo,
          one.difficulty,
          one.verdict,
          one.costNano,
          one.attempt,
        ]),
      ).toEqual(
        rows.map((row) => [
          row.instance_id,
          row.repo,
          row.difficulty,
          row.verdict,
          row.money.costNano,
          row.attempt,
        ]),
      );
      expect(JSON.stringify(map).length * 8).toBeLessThan(JSON.stringify(rows).length);
      expect(read(`runs/${run}/map/1`)).toBeUndefined();
      expect(read('runs/999/map/0')).toBeUndefined();
    });
  });

  test('of a run too large to draw the first trials are there, and the page is small all the same', () => {
    withRecord((read, store) => {
      const run = addRun(store, { name: 'huge', instances: 1, steps: 1 });
      store.exec(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 7000)
        INSERT INTO instances (run_id, position, instance_id, repo, difficulty, image, row_hash, row)
        SELECT ${run}, i, 'sympy__sympy-' || (10000 + i), 'sympy/sympy', '', 'i', 'h', '{}' FROM n`);
      store.exec(`INSERT INTO trials (run_id, arm_id, instance_pk, position, state)
        SELECT ${run}, (SELECT id FROM arms WHERE run_id = ${run}), id, position, 'pending' FROM instances WHERE position > 0`);
      const map = read(`runs/${run}/map/0`) as RunMap;
      expect([map.total, map.cells.length]).toEqual([7001, 6000]);
      const doc = read(`runs/${run}`) as RunDocument;
      expect(doc.missing).toContainEqual({ verdict: 'not_run', reason: 'pending', n: 7000 });
      expect(JSON.stringify(map).length + JSON.stringify(doc).length).toBeLessThan(1_000_000);
    });
  });

  test('a line over time has some hundred points whatever the size, with the same end and the same pace', () => {
    withRecord((read, store) => {
      const run = addRun(store, { name: 'long', instances: 1500, steps: 1 });
      const doc = read(`runs/${run}`) as RunDocument;
      expect(doc.series.length).toBeGreaterThan(300);
      expect(doc.series.length).toBeLessThan(602);
      expect(doc.series.at(-1)!.costNano).toBe(doc.summary.money.costNano);
      // An ending every 15 seconds, and a second one for each eleventh trial.
      const { pace } = readLiveRun(store, runById(store, run)!);
      expect(pace!.perHour).toBeGreaterThan(240);
      expect(pace!.perHour).toBeLessThan(290);
    });
  });

  test('names that every object has are names in the map too', () => {
    withRecord((read, store) => {
      const { run } = addHostileRun(store);
      const cells = readCells(read(`runs/${run}/map/0`) as RunMap);
      expect(cells.map((one) => one.arm)).toContain('__proto__');
      expect(groupCells(cells, 'arm').length).toBe(new Set(cells.map((one) => one.arm)).size);
    });
  });
});
