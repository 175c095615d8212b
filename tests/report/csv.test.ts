// A spreadsheet gets values, never formulas.
import { expect, test } from 'vitest';
import { trialsCsv } from '../../src/report/render/trialsCsv.ts';
import { loadRunData } from '../../src/store/records/runData.ts';
import { openMemory, recordRun } from './recordedRun.ts';

test('one line a trial; unknown is empty, formulas are text, quotes are doubled', () => {
  const db = openMemory();
  const runId = recordRun(db, {
    name: '=cmd("x"),1',
    ids: ['a__a-1', 'a__a-2', 'a__a-3'],
    happened: (id) =>
      id.endsWith('1') ? [{ outcome: 'resolved' }] : id.endsWith('2') ? [{ cost: null }] : [],
  });
  const lines = trialsCsv(loadRunData(db, runId)!).split('\r\n');
  expect(lines).toHaveLength(5);
  const header = lines[0]!.split(',');
  expect(
    lines[1]!.startsWith(
      `"'=cmd(""x""),1",default,vendor/default,a__a-1,a/a,easy,1,sealed,1,submitted,agent,Submitted,resolved,true,true`,
    ),
  ).toBe(true);
  const second = lines[2]!.split(',').slice(-header.length);
  expect(second[header.indexOf('cost_nano')]).toBe('');
  expect(second[header.indexOf('missing')]).toBe('not_graded');
  expect(lines[3]).toContain('not_run');
  // A table is often printed to a terminal; and what is left of an escape may begin a formula.
  const hostile = recordRun(db, { name: 'e', ids: ['\u001b[2J=1+1', '+1', '-1', '@x'], happened: () => [] });
  const cells = trialsCsv(loadRunData(db, hostile)!);
  expect(cells).not.toContain('\u001b');
  expect(
    cells
      .split('\r\n')
      .slice(1, 5)
      .map((l) => l.split(',')[3]),
  ).toEqual(["'=1+1", "'+1", "'-1", "'@x"]);
});
