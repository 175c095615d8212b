// The verbs as a person calls them: what goes to stdout, what to stderr, and the exit code a CI acts on.
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { openStore } from '../../src/store/open.ts';
import { cli } from '../support/cli.ts';
import { type Happened, type PlannedRun, recordRun } from './recordedRun.ts';

const home = mkdtempSync(join(tmpdir(), 'swebatch-verbs-'));
const root = join(home, 'results');
afterAll(() => rmSync(home, { recursive: true }));

const good: Happened = { outcome: 'resolved' };
const bad: Happened = { outcome: 'unresolved' };
const ids = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, i) => `a__a-${String(from + i).padStart(2, '0')}`);

function record(planned: PlannedRun): void {
  mkdirSync(root, { recursive: true });
  const db = openStore(join(root, 'swebatch.db'));
  recordRun(db, planned);
  db.close();
}

const call = (...args: string[]) => cli([...args, '-o', root], { cwd: home });

beforeAll(() => {
  // The nights of T-60, with the re-measurement already recorded.
  record({ name: 'night-1', ids: ids(1, 20), happened: (id) => [id === 'a__a-05' ? bad : good] });
  record({
    name: 'night-2',
    ids: ids(2, 21),
    armConfig: { agent: { step_limit: 5 } },
    happened: (id) =>
      id === 'a__a-06' ? [{ reason: 'env_died' }] : [id === 'a__a-03' || id === 'a__a-04' ? bad : good],
  });
  record({
    name: 'night-2.again-1',
    ids: ['a__a-03', 'a__a-04'],
    epochs: 3,
    manifest: { remeasures: { run: 'night-2' } },
    happened: (id, _arm, epoch) => [id === 'a__a-04' && epoch > 1 ? good : bad],
  });
});

describe('report', () => {
  test('a person reads 80 columns, a program reads JSON on stdout', async () => {
    const text = await call('report', 'night-2');
    expect(text.code).toBe(0);
    expect(text.stdout).toContain('coverage 19/20 = 95.0 %');
    expect(text.stdout.split('\n').filter((l) => [...l].length > 80)).toEqual([]);
    const json = JSON.parse((await call('report', 'night-2', '--json')).stdout);
    expect(json.arms[0]).toMatchObject({
      planned: 20,
      valid: 19,
      resolved: { x: 17, n: 19 },
      missing: [{ why: 'infra', n: 1, ids: ['a__a-06'] }],
    });
  });
  test('HTML is one file that needs nothing and runs nothing', async () => {
    const path = join(home, 'report.html');
    const found = await call('report', 'night-2', '--format', 'html', '--to', path);
    expect([found.code, found.stdout]).toEqual([0, '']);
    const page = readFileSync(path, 'utf8');
    expect(page).toContain('<svg');
    expect(page).not.toMatch(/<script|<link|src=|href=|url\(/);
  });
  test('history labels what went back and forth', async () => {
    const { instances } = JSON.parse((await call('report', 'night-2', '--history', '--json')).stdout);
    const labels = Object.fromEntries(
      instances.map((i: { instance_id: string; label: string }) => [i.instance_id, i.label]),
    );
    expect(labels).toMatchObject({ 'a__a-04': 'flaky', 'a__a-03': 'changed', 'a__a-07': 'stable' });
  });
  test('an empty patch of a graded night is a failure in the history, as in the report, and no gap', async () => {
    const empty = { reason: 'limit_steps', outcome: 'empty_patch', resolved: null } as const;
    for (const [i, one] of [good, empty, good].entries())
      record({ name: `e-${i}`, ids: ['e__e-1'], arms: ['coin'], happened: () => [one] });
    const { instances } = JSON.parse((await call('report', 'e-2', '--history', '--json')).stdout);
    expect(instances).toMatchObject([{ label: 'flaky', flips: 2, resolved: { x: 2, n: 3 } }]);
    // The interval is whole at 80 columns.
    expect((await call('report', 'e-2', '--history')).stdout).toContain('2/3 = 66.7 % [20.8, 93.9]  +-+');
  });
  test('an unknown run exits 2 and says what to do', async () => {
    const found = await call('report', 'nothing');
    expect(found.code).toBe(2);
    expect(found.stderr).toContain('there is no run "nothing"');
  });
});

describe('compare', () => {
  test('two runs, with the differing limit said loudly', async () => {
    const found = await call('compare', 'night-1', 'night-2');
    expect(found.code).toBe(0);
    expect(found.stdout).toContain('NOT THE SAME CONDITIONS (limits)');
    expect(found.stdout).toContain('not comparable 3');
  });
  test("the harness's own run reports, without any database", async () => {
    const write = (name: string, resolved: string[], unresolved: string[]) =>
      writeFileSync(
        join(home, name),
        JSON.stringify({ schema_version: 2, resolved_ids: resolved, unresolved_ids: unresolved }),
      );
    write('a.json', ['x-1', 'x-2'], ['x-3']);
    write('b.json', ['x-2', 'x-3'], ['x-1']);
    const found = await cli(['compare', 'a.json', 'b.json', '--json'], { cwd: home });
    expect(found.code).toBe(0);
    expect(JSON.parse(found.stdout)).toMatchObject({
      matched: 3,
      fixed: ['x-3'],
      broken: ['x-1'],
      both: ['x-2'],
      neither: [],
      difference: { points: 0, method: 'Newcombe 10' },
      test: { name: 'exact McNemar', p: 1 },
    });
  });
  test('files are compared whatever the state of the database here is', async () => {
    const damaged = join(home, 'damaged');
    mkdirSync(damaged);
    writeFileSync(join(damaged, 'swebatch.db'), 'no database');
    for (const name of ['c.json', 'd.json'])
      writeFileSync(join(home, name), JSON.stringify({ resolved_ids: ['x-1'] }));
    const found = await cli(['compare', 'c.json', 'd.json', '--json', '-o', damaged], { cwd: home });
    expect([found.code, JSON.parse(found.stdout).matched]).toEqual([0, 1]);
    expect((await cli(['compare', 'c.json', 'a-run', '-o', damaged], { cwd: home })).code).not.toBe(0);
  });
  test('two files of one name are told apart by their paths', async () => {
    for (const folder of ['m1', 'm2']) {
      mkdirSync(join(home, folder), { recursive: true });
      writeFileSync(join(home, folder, 'r.json'), JSON.stringify({ resolved_ids: ['x-1'] }));
    }
    const found = await cli(['compare', 'm1/r.json', 'm2/r.json'], { cwd: home });
    expect(found.stdout).toContain('Compare m1/r.json with m2/r.json');
  });
  test('--config shows only how they were run', async () => {
    const { differences } = JSON.parse(
      (await call('compare', 'night-1', 'night-2', '--config', '--json')).stdout,
    );
    expect(differences).toMatchObject([{ key: 'config.arm.agent.step_limit', a: '(none)', b: '5' }]);
  });
  test('what is neither a run nor a file exits 2', async () => {
    const found = await call('compare', 'night-1', 'nowhere.json');
    expect(found.code).toBe(2);
    expect(found.stderr).toContain('neither a run in');
  });
});

describe('a night', () => {
  test('T-60 from the command line: exit 1, the broken id first, artifacts written', async () => {
    expect((await call('baseline', 'set', 'night-1')).code).toBe(0);
    expect((await call('baseline', 'show')).stdout).toContain('night-1');
    const step = join(home, 'step.md');
    appendFileSync(step, '');
    const found = await cli(['compare', 'baseline', 'night-2', '--gate', '--max-drop', '2%', '-o', root], {
      cwd: home,
      env: { GITHUB_STEP_SUMMARY: step },
    });
    expect(found.code).toBe(1);
    expect(found.stderr).toContain(
      'matched 18: broken 1, flaky 1, fixed 1; not comparable 3 (infra 1, removed 1, added 1)',
    );
    expect(found.stdout.trimStart().startsWith('Broken (1): a__a-03')).toBe(true);
    for (const file of ['gate.json', 'gate.md', 'junit.xml', 'summary.json', 'summary.md', 'summary.html'])
      expect(existsSync(join(root, 'night-2', file))).toBe(true);
    expect(JSON.parse(readFileSync(join(root, 'night-2', 'gate.json'), 'utf8')).gate).toMatchObject({
      verdict: 'regressed',
      exit_code: 1,
      broken: ['a__a-03'],
    });
    expect(readFileSync(step, 'utf8')).toContain('FAILED: regressed');
  });
  test('"last" is no name for a baseline', async () => {
    const found = await call('baseline', 'set', 'night-1', '--name', 'last');
    expect([found.code, found.stderr]).toEqual([2, expect.stringContaining('newest comparable run')]);
  });
  test('within policy exits 0', async () => {
    expect(
      (await call('compare', 'night-1', 'night-2', '--gate', '--max-broken', '1', '--max-drop', '10%')).code,
    ).toBe(0);
  });
  test('must-pass names what it lost; a share that is none is refused', async () => {
    writeFileSync(join(home, 'golden.txt'), '# golden\na__a-02\na__a-06\na__a-06\n');
    const found = await call(
      'compare',
      'night-1',
      'night-2',
      '--gate',
      '--max-broken',
      '1',
      '--must-pass',
      join(home, 'golden.txt'),
      '--json',
    );
    expect(found.code).toBe(1);
    const { gate } = JSON.parse(found.stdout);
    expect(gate.rules.find((r: { rule: string }) => r.rule === 'must-pass').ids).toEqual(['a__a-06']);
    const wrong = await call('compare', 'night-1', 'night-2', '--gate', '--max-drop', '5');
    expect(wrong.code).toBe(2);
    expect(wrong.stderr).toContain('--max-drop');
  });
});

describe('export', () => {
  test('preds, csv, junit and config', async () => {
    const preds = await call('export', 'night-2', 'preds');
    expect(preds.stdout).toContain(join(root, 'night-2', 'preds.json'));
    expect(Object.keys(JSON.parse(readFileSync(join(root, 'night-2', 'preds.json'), 'utf8')))).toHaveLength(
      19,
    );
    expect((await call('export', 'night-2', 'csv')).stdout.split('\r\n')).toHaveLength(22);
    expect((await call('export', 'night-2', 'junit')).stdout).toContain('<testsuites>');
    expect(parse((await call('export', 'night-2', 'config')).stdout)).toBeTypeOf('object');
  });
  test('verdicts without patches are reported, and no empty patch is made of them', async () => {
    const path = join(home, 'vendor__m.night.json');
    writeFileSync(
      path,
      JSON.stringify({
        schema_version: 2,
        total_instances: 3,
        submitted_ids: ['r__r-1', 'r__r-2', 'r__r-3'],
        completed_ids: ['r__r-1', 'r__r-2'],
        resolved_ids: ['r__r-1'],
        unresolved_ids: ['r__r-2'],
        empty_patch_ids: ['r__r-3'],
        error_ids: [],
      }),
    );
    const found = await call('import', path, '--run-id', 'report-alone');
    expect(found.stderr).toContain('imported without patches, and no patches are exported');
    // The empty one is known: its verdict says it.
    expect(Object.keys(JSON.parse(readFileSync(join(root, 'report-alone', 'preds.json'), 'utf8')))).toEqual([
      'r__r-3',
    ]);
    const [arm] = JSON.parse((await call('report', 'report-alone', '--json')).stdout).arms;
    expect(arm).toMatchObject({ resolved: { x: 1, n: 3 } });
    // What it cost is not known, and nothing is left to grade.
    expect((await call('show', 'report-alone')).stdout).toContain('≥ $0.00');
    const refused = await call('export', 'report-alone', 'submission', '--split', 'verified');
    expect(refused.code).not.toBe(0);
    expect(refused.stderr).toContain('the patch of 2 instances is not known: r__r-1, r__r-2');
    writeFileSync(path, JSON.stringify({ schema_version: 2, resolved_ids: ['r__r-1'], unresolved_ids: [] }));
    await call('import', path, '--run-id', 'no-patch');
    const nothing = await call('evaluate', 'no-patch');
    expect([nothing.code, nothing.stderr]).toEqual([
      2,
      expect.stringContaining('nothing to grade in no-patch'),
    ]);
  });
  test('a submission of the night is refused in words, with the exit code of unfinished work', async () => {
    const found = await call('export', 'night-2', 'submission', '--split', 'verified');
    expect(found.code).toBe(3);
    expect(found.stderr).toContain('1 infra instance unresolved; 19/20 predictions');
    expect(existsSync(join(root, 'night-2', 'submission'))).toBe(false);
  });
});
