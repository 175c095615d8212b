// The harness's folders: written by us, found again wherever they lie, regraded without containers.

import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { writeAtomically } from '../../src/base/files/atomicWrite.ts';
import { harnessName } from '../../src/base/text/fileName.ts';
import type { Instance } from '../../src/dataset/instance.ts';
import {
  findInstanceFolders,
  instanceFolder,
  runMetadataText,
  runReportName,
  writeInstanceLogs,
} from '../../src/formats/harness/logFolders.ts';
import type { EvaluationResult } from '../../src/grading/gradingFrame.ts';
import { regradeFolder } from '../../src/grading/regradeFolder.ts';
import { normaliseRow } from '../support/suites.ts';
import { DATA, hasData, officialLogs, rowsOf, WITHOUT_DATA } from './officialData.ts';

let root = '';
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'swebatch-regrade-'));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const LOG = '>>>>> Start Test Output\nok 1 a\n>>>>> End Test Output\n';
function instance(id: string, more: Record<string, unknown> = {}): Instance {
  const read = normaliseRow({
    instance_id: id,
    base_commit: 'c',
    problem_statement: '',
    eval_script: 'x',
    log_parser: 'tap',
    FAIL_TO_PASS: ['a'],
    PASS_TO_PASS: [],
    ...more,
  });
  if (!read.ok) throw new Error(read.messages.join());
  return read.instance;
}
const rows = (...instances: Instance[]) => new Map(instances.map((row) => [row.instance_id, row]));
function folder(path: string, files: Record<string, string>): void {
  mkdirSync(join(root, path), { recursive: true });
  for (const [name, text] of Object.entries(files)) writeFileSync(join(root, path, name), text);
}
const regrade = (more: Partial<Parameters<typeof regradeFolder>[1]> = {}, where = root) =>
  regradeFolder(where, { harness: 'v5', instances: rows(instance('a__b-1')), write: false, ...more });

describe('writing', () => {
  const result = {
    instanceId: 'a__b-1',
    outcome: 'resolved',
    report: {
      'a__b-1': {
        patch_is_None: false,
        patch_exists: true,
        patch_successfully_applied: true,
        resolved: true,
      },
    },
    log: LOG,
    script: 'run',
    runLog: [{ at: new Date(Date.UTC(2026, 0, 2, 3, 4, 5, 6)), level: 'INFO', message: 'hello' }],
  } as unknown as EvaluationResult; // prettier-ignore

  test('the official layout, the run log in its form, and what was written is found again', async () => {
    const path = instanceFolder(root, 'r1', 'org/model', 'a__b-1');
    await writeInstanceLogs(path, result, 'diff\n');
    expect(path).toBe(join(root, 'logs', 'run_evaluation', 'r1', 'org__model', 'a__b-1'));
    expect(readFileSync(join(path, 'run_instance.log'), 'utf8')).toBe(
      '2026-01-02 03:04:05,006 - INFO - hello\n',
    );
    expect(readFileSync(join(path, 'patch.diff'), 'utf8')).toBe('diff\n');
    expect(await findInstanceFolders(root)).toEqual([
      { path, name: 'a__b-1', runId: 'r1', model: 'org__model' },
    ]);
    expect((await regrade()).rows[0]).toMatchObject({
      run_id: 'r1',
      model: 'org__model',
      resolved: true,
      patch: 'diff\n',
    });
  });
  test('a report of an earlier evaluation does not outlive one that has none', async () => {
    const path = instanceFolder(root, 'r1', 'm', 'a__b-1');
    await writeInstanceLogs(path, result, 'diff\n');
    await writeInstanceLogs(path, { ...result, report: null, log: null }, 'other\n');
    expect(existsSync(join(path, 'report.json'))).toBe(false);
    expect(existsSync(join(path, 'test_output.txt'))).toBe(false);
  });
  test('a model name never leaves its place', () => {
    expect(harnessName('../../etc')).toBe('..__..__etc');
    expect(harnessName('..')).toBe('_..');
    expect(harnessName('')).toBe('_');
    expect(runReportName('a/b', 'r')).toBe('a__b.r.json');
  });
  test('a name too long for a file system is cut, and two such names stay apart', async () => {
    const long = (end: string) => `${'é'.repeat(300)}${end}`;
    const [one, two] = [harnessName(long('1')), harnessName(long('2'))];
    expect(one).not.toBe(two);
    expect(one).toMatch(/^é+-[0-9a-f]{12}$/);
    expect(harnessName(long('1'))).toBe(one);
    const run = 'r'.repeat(128);
    const path = instanceFolder(root, run, long('1'), `a__${'b'.repeat(120)}-1`);
    await writeInstanceLogs(path, result, 'diff\n');
    await writeAtomically(join(root, runReportName(long('1'), run)), '{}');
    expect(readFileSync(join(path, 'patch.diff'), 'utf8')).toBe('diff\n');
  });
  test('run.json says what was graded against', () => {
    expect(JSON.parse(runMetadataText('x.parquet', 'test', new Date(0)))).toEqual({
      dataset: 'x.parquet',
      split: 'test',
      task_repo: null,
      created_at: '1970-01-01T00:00:00+00:00',
    });
  });
});

describe('finding', () => {
  test('from the root, a run, a model or one instance: run and model come from the layout', async () => {
    folder('logs/run_evaluation/r1/m/a__b-1', { 'test_output.txt': LOG });
    for (const where of [
      '.',
      'logs/run_evaluation',
      'logs/run_evaluation/r1',
      'logs/run_evaluation/r1/m',
      'logs/run_evaluation/r1/m/a__b-1',
    ])
      expect((await regrade({}, join(root, where))).rows[0], where).toMatchObject({
        run_id: 'r1',
        model: 'm',
        instance_id: 'a__b-1',
      });
  });
  test('a folder that was moved still states its run and model in its own log', async () => {
    folder('anything/a__b-1.copy', {
      'test_output.txt': LOG,
      'run_instance.log':
        '2026-01-01 00:00:00,000 - INFO - Intermediate patch for a__b-1 written to logs/run_evaluation/r7/gpt/a__b-1/patch.diff, now applying\n',
    });
    expect((await regrade()).rows).toMatchObject([
      { run_id: 'r7', model: 'gpt', instance_id: 'a__b-1', resolved: true },
    ]);
  });
  test('without test output there is nothing to grade, and it says so', async () => {
    folder('r/m/a__b-1', { 'run_instance.log': 'x', 'report.json': '' });
    expect(await regrade()).toEqual({
      rows: [],
      skipped: ['a__b-1 has no test_output.txt: its tests were never run'],
    });
  });
  test('an instance of no dataset, and one whose parser breaks, cost nobody else', async () => {
    folder('r/m/a__b-1', { 'test_output.txt': LOG });
    folder('r/m/unknown', { 'test_output.txt': LOG });
    folder('r/m/bad__p-1', { 'test_output.txt': `${LOG}<doctest>` });
    const found = await regrade({
      instances: rows(instance('a__b-1'), instance('bad__p-1', { log_parser: 'jekyll' })),
    });
    expect(
      found.rows.map((row) => [row.instance_id, row.resolved, row.error?.replace(/.*: /, '') ?? null]),
    ).toEqual([
      ['a__b-1', true, null],
      ['bad__p-1', null, 'no Jekyll log form is known for bad__p-1'],
      ['unknown', null, 'unknown is in none of the datasets given'],
    ]);
  });
  test('an instance with rules of its own gets no verdict by those of SWE-bench', async () => {
    folder('r/m/a__b-1', { 'test_output.txt': LOG });
    const found = await regrade({ instances: rows({ ...instance('a__b-1'), kind: 'rebench-v2' }) });
    const row = found.rows.find(({ instance_id }) => instance_id === 'a__b-1');
    expect(row).toMatchObject({ report: null, resolved: null });
    expect(row?.error).toContain('evaluate its prediction instead');
  });

  test('bytes that are no UTF-8 are replaced', async () => {
    folder('r/m/a__b-1', {});
    writeFileSync(
      join(root, 'r/m/a__b-1/test_output.txt'),
      Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from(LOG)]),
    );
    expect((await regrade()).rows[0]!.resolved).toBe(true);
  });
});

test('report.json is replaced only when writing is asked for', async () => {
  folder('r/m/a__b-1', { 'test_output.txt': LOG, 'report.json': 'old' });
  await regrade();
  expect(readFileSync(join(root, 'r/m/a__b-1/report.json'), 'utf8')).toBe('old');
  await regrade({ write: true });
  expect(JSON.parse(readFileSync(join(root, 'r/m/a__b-1/report.json'), 'utf8'))).toMatchObject({
    'a__b-1': { resolved: true },
  });
});

test.skipIf(!hasData)(
  `the harness's own folders are accepted unchanged and their reports come out byte for byte (${WITHOUT_DATA})`,
  async () => {
    const copy = join(root, 'logs', 'run_evaluation', 'run-1', 'model-1');
    cpSync(join(DATA, 'grading-logs', 'verified-98'), copy, { recursive: true });
    const instances = new Map((await rowsOf('SWE-bench_Verified_test')).map((row) => [row.instance_id, row]));
    const { rows: found, skipped } = await regradeFolder(join(root, 'logs', 'run_evaluation'), {
      harness: 'v4.1',
      instances,
      write: false,
    });
    expect(found).toHaveLength(98);
    expect(skipped).toEqual([expect.stringContaining('pydata__xarray-6992')]);
    const official = new Map(
      officialLogs()
        .filter(({ name }) => name.startsWith('verified-98/'))
        .map((entry) => [entry.instanceId, entry.report]),
    );
    for (const row of found) {
      expect(row).toMatchObject({ run_id: 'run-1', model: 'model-1' });
      expect(row.report).toEqual(official.get(row.instance_id));
    }
  },
);

test('--write replaces no report behind a link that leads outside', async () => {
  const outside = mkdtempSync(join(tmpdir(), 'swebatch-outside-'));
  mkdirSync(join(outside, 'a__b-1'));
  writeFileSync(join(outside, 'a__b-1', 'test_output.txt'), LOG);
  symlinkSync(join(outside, 'a__b-1'), join(root, 'a__b-1'));
  expect((await regrade()).rows).toMatchObject([{ resolved: true }]);
  await expect(regrade({ write: true })).rejects.toThrow(/is a link that leads outside/);
  expect(existsSync(join(outside, 'a__b-1', 'report.json'))).toBe(false);
  rmSync(outside, { recursive: true });
});
