// A stored configuration that cannot be read is shown as unknown, but nothing goes on by it: the defaults could spend money or grade by another rule.
import { expect, test } from 'vitest';
import { plannedArm, plannedConfig } from '../../src/run/plan/planRecord.ts';
import { exportConfig } from '../../src/run/record/exportRun.ts';
import { type RunRow, storedConfig } from '../../src/store/records/runs.ts';

const torn = { config: '{"grading": {"harness": ', imported: 0 } as RunRow;

test('whoever reads the record sees no settings', () => {
  expect(storedConfig(torn)).toEqual({});
});

test('resume, grading and export config stop instead of taking the defaults', () => {
  const stops = /configuration of the run cannot be read; nothing was started/;
  expect(() => plannedConfig(torn)).toThrow(stops);
  expect(() => exportConfig(torn, ['a__a-1'])).toThrow(stops);
  expect(() => plannedArm({ config: '[1]' })).toThrow(/configuration of the arm cannot be read/);
});
