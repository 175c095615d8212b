// A report says the score also without the instances whose gold patch does not pass on this machine.
import { describe, expect, test } from 'vitest';
import { goldScore, summarize } from '../../src/report/measure/summary.ts';
import { renderTerminal } from '../../src/report/render/renderers.ts';
import { summaryDocument } from '../../src/report/render/summaryDocument.ts';
import type { GoldStanding } from '../../src/store/records/evaluations.ts';
import { loadRunData } from '../../src/store/records/runData.ts';
import { openMemory, recordRun } from './recordedRun.ts';

const trial = (instanceId: string, resolved: boolean, valid = true) => ({ instanceId, valid, resolved });
const standings = (all: Record<string, GoldStanding>) => new Map(Object.entries(all));

describe('the score without what gold fails', () => {
  test('fails and flaky go out, what was never calibrated stays and is counted', () => {
    const score = goldScore(
      [trial('a', true), trial('b', false), trial('c', true), trial('d', false), trial('e', false, false)],
      standings({ a: 'passes', b: 'fails', c: 'flaky', e: 'passes', elsewhere: 'fails' }),
      1,
    )!;
    expect(score).toMatchObject({ passes: 2, fails: ['b'], flaky: ['c'], unknown: 1, estimateWithout: null });
    expect(score.resolvedWithout).toMatchObject({ x: 1, n: 2 });
  });
  test('nothing is said where none of the instances was calibrated', () => {
    expect(goldScore([trial('a', true)], standings({ other: 'fails' }), 1)).toBeNull();
  });
  test('with epochs the mean is over instances', () => {
    const score = goldScore(
      [trial('a', true), trial('a', false), trial('b', true), trial('b', true), trial('c', false)],
      standings({ c: 'fails' }),
      2,
    )!;
    expect(score.estimateWithout).toMatchObject({ n: 2, mean: 0.75 });
  });
});

test('a calibration by any run of the results root enters the report, with both scores and the ids', () => {
  const db = openMemory();
  const ids = ['a__a-1', 'a__a-2', 'a__a-3'];
  const runId = recordRun(db, {
    ids,
    happened: (id) => [{ outcome: id === 'a__a-1' ? 'resolved' : 'unresolved' }],
  });
  const before = summarize(loadRunData(db, runId)!);
  expect(before.arms[0]!.gold).toBeNull();
  expect(renderTerminal(summaryDocument(before))).not.toContain('gold');

  const calibration = recordRun(db, {
    name: 'calibration',
    ids,
    happened: (id) => [{ outcome: id === 'a__a-2' ? 'unresolved' : 'resolved' }],
  });
  db.prepare("UPDATE evaluations SET model = 'gold' WHERE run_id = ?").run(calibration);
  const text = renderTerminal(summaryDocument(summarize(loadRunData(db, runId)!)));
  expect(text).toContain('resolved  1/3 = 33.3 %');
  expect(text.replace(/\s+/g, ' ')).toContain(
    'fails 1 of these instances on this machine; without them 1/2 = 50.0 %',
  );
  expect(text).toContain('Gold fails here (1): a__a-2');
  db.close();
});
