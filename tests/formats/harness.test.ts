// Reports of other graders become runs: verdicts as they said them, patches where they lie beside, nothing invented.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import type { ForeignVerdicts } from '../../src/formats/foreignFormat.ts';
import { readForeignRun } from '../../src/formats/formats.ts';

const home = mkdtempSync(join(tmpdir(), 'swebatch-reports-'));
afterAll(() => rmSync(home, { recursive: true }));
function write(path: string, value: unknown): string {
  const file = join(home, path);
  mkdirSync(join(file, '..'), { recursive: true });
  writeFileSync(file, typeof value === 'string' ? value : JSON.stringify(value));
  return file;
}
const said = (verdicts: ForeignVerdicts) =>
  Object.fromEntries([...verdicts].map(([id, v]) => [id, v.verdict]));

describe('a run report', () => {
  const report = {
    resolved_ids: ['a__a-1'],
    unresolved_ids: ['a__a-2'],
    empty_patch_ids: ['a__a-3'],
    error_ids: ['a__a-4'],
    incomplete_ids: ['a__a-5'],
    failure_reasons: { 'a__a-2': 'missing_module' },
    schema_version: 2,
  };
  test('of the harness, with the predictions beside it', async () => {
    const path = write('h/vendor__model-1.5.night.json', report);
    write('h/preds.json', {
      'a__a-1': { instance_id: 'a__a-1', model_name_or_path: 'vendor/model-1.5', model_patch: 'diff one' },
    });
    const imported = await readForeignRun(path);
    const { verdicts } = imported;
    expect(imported.instances.map((i) => [i.instanceId, i.modelPatch, i.exitReason])).toEqual([
      ['a__a-1', 'diff one', 'submitted'],
      ['a__a-2', null, 'submitted'],
      ['a__a-3', '', 'submitted'],
      ['a__a-4', null, 'submitted'],
    ]);
    expect(imported.instances[0]!.model).toBe('vendor/model-1.5');
    expect(imported.warnings).toEqual([expect.stringMatching(/^its own number is 1 of 5 = 20\.0 %/)]);
    expect(verdicts.get('a__a-2')).toMatchObject({ reason: 'missing_module', grader: 'harness' });
  });
  test('without predictions says that patches are not known, and reads the model from its name', async () => {
    const path = write('alone/vendor__model-1.5.night.json', report);
    const imported = await readForeignRun(path);
    expect(imported.warnings.join()).toContain('imported without patches');
    expect(imported.instances[0]!.model).toBe('vendor__model-1.5');
  });
  test('of sb-cli: what is pending is left out, what failed is no verdict', async () => {
    const path = write('sb/swe-bench_verified__test__r.json', {
      resolved_ids: ['a__a-1'],
      unresolved_ids: [],
      pending_ids: ['a__a-2'],
      failed_ids: ['a__a-3'],
    });
    const { instances, verdicts } = await readForeignRun(path);
    expect(said(verdicts)).toEqual({ 'a__a-1': 'resolved', 'a__a-2': 'pending', 'a__a-3': 'error' });
    expect(verdicts.get('a__a-1')!.grader).toBe('sb-cli');
    expect(instances.map((i) => i.instanceId)).toEqual(['a__a-1', 'a__a-3']);
  });
  test('that is none is refused with the reason', async () => {
    await expect(readForeignRun(write('odd.json', { hello: 1 }))).rejects.toThrow('no resolved_ids');
  });
});

test("the harness's instance folders: keyed or not, with patches; an unreadable report is no verdict", async () => {
  const base = 'logs/run_evaluation/night/vendor__m';
  write(`${base}/a__a-1/report.json`, {
    'a__a-1': { patch_successfully_applied: true, resolved: true },
  });
  write(`${base}/a__a-1/patch.diff`, 'diff one');
  write(`${base}/a__a-2/report.json`, { patch_successfully_applied: true, resolved: false });
  write(`${base}/a__a-3/report.json`, '');
  write(`${base}/a__a-4/run_instance.log`, 'patch failed');
  const imported = await readForeignRun(join(home, 'logs'));
  const { verdicts } = imported;
  expect(said(verdicts)).toEqual({
    'a__a-1': 'resolved',
    'a__a-2': 'unresolved',
    'a__a-3': 'error',
    'a__a-4': 'error',
  });
  expect(imported.instances[0]).toMatchObject({ model: 'vendor__m', modelPatch: 'diff one' });
  expect(verdicts.get('a__a-1')!.report).toContain('"resolved":true');
  expect(verdicts.get('a__a-3')!.report).toBeNull();
  write('none/README.md', 'no report here');
  expect((await readForeignRun(join(home, 'none'))).instances).toEqual([]);
});

test('a copied folder is about the instance that its report names; one report.json alone is one instance', async () => {
  const inner = { patch_successfully_applied: true, resolved: true };
  write('copies/a__a-1.first-try/report.json', { 'a__a-1': inner });
  write('copies/a__a-2/report.json', inner);
  write('copies/a__a-2/patch.diff', 'diff two');
  expect(said((await readForeignRun(join(home, 'copies'))).verdicts)).toEqual({
    'a__a-1': 'resolved',
    'a__a-2': 'resolved',
  });
  const one = await readForeignRun(join(home, 'copies/a__a-2/report.json'));
  expect(one.instances.map((i) => [i.instanceId, i.modelPatch])).toEqual([['a__a-2', 'diff two']]);
  const copy = await readForeignRun(join(home, 'copies/a__a-1.first-try/report.json'));
  expect(said(copy.verdicts)).toEqual({ 'a__a-1': 'resolved' });
});
