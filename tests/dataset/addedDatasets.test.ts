// Datasets by a name of one's own: what was found, the pin, and a kind that a user of the two tables adds.
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { addDataset, checkDataset } from '../../src/run/datasets.ts';
import { loadDataset } from '../../src/suites/loadDataset.ts';
import { pro } from '../../src/suites/pro/pro.ts';
import { suiteOfFolder } from '../../src/suites/suites.ts';

const row = (id: string, more = {}) => ({
  ...{ instance_id: id, repo: 'a/b', base_commit: 'abc', problem_statement: 'x, "y"' },
  ...{
    fail_to_pass: "['f']",
    pass_to_pass: '[]',
    before_repo_set_cmd: 'true',
    selected_test_files_to_run: "['t']",
  },
  ...more,
});
const cell = (value: unknown) => `"${String(value).replaceAll('"', '""')}"`;

/** A clone of Pro's repository with three rows, of which one lacks its scripts and one has a bad id. */
function proClone(dir: string, form: 'csv' | 'jsonl'): string {
  const clone = join(dir, 'pro');
  const rows = [row('instance_a__b-1'), row('instance_a__b-2'), row('../escape')];
  for (const id of ['instance_a__b-1']) {
    mkdirSync(join(clone, 'run_scripts', id), { recursive: true });
    writeFileSync(join(clone, 'run_scripts', id, 'run_script.sh'), 'true\n');
    writeFileSync(join(clone, 'run_scripts', id, 'parser.py'), 'pass\n');
    mkdirSync(join(clone, 'dockerfiles/base_dockerfile', id), { recursive: true });
    writeFileSync(join(clone, 'dockerfiles/base_dockerfile', id, 'Dockerfile'), 'ENV A=1\n');
  }
  writeFileSync(join(clone, 'LICENSE'), '\nMIT License\n');
  const lines = rows.map((each) =>
    form === 'csv' ? Object.values(each).map(cell).join(',') : JSON.stringify(each),
  );
  if (form === 'csv') lines.unshift(Object.keys(rows[0]!).join(','));
  writeFileSync(join(clone, `rows.${form}`), `${lines.join('\n')}\n`);
  return clone;
}

describe.each(['csv', 'jsonl'] as const)('a clone of SWE-bench Pro with rows as %s', (form) => {
  test('is read with its scripts; what it lacks is told for each instance', async () => {
    const dir = { path: mkdtempSync(join(tmpdir(), 'swebatch-added-')) };
    const clone = proClone(dir.path, form);
    expect(suiteOfFolder(clone)).toBe('swe-bench-pro');
    const [first] = pro.folders!.read(clone);
    expect(first?.instance).toMatchObject({
      ...{
        kind: 'swe-bench-pro',
        FAIL_TO_PASS: ['f'],
        problem_statement: 'x, "y"',
        image: 'jefzda/sweap-images:a.b-a__b-1',
      },
      extra: { run_script: 'true\n', parser: 'pass\n', base_dockerfile: 'ENV A=1\n' },
    });
    const loaded = await loadDataset(clone);
    if (!loaded.ok) throw new Error(loaded.problems[0]?.message);
    const found = await checkDataset(loaded.dataset);
    expect(found).toMatchObject({
      instances: 3,
      gradable: 1,
      kinds: { 'swe-bench-pro': 3 },
      licence: 'MIT License',
    });
    expect(found.unfit.map(({ instance_id, what }) => [instance_id, what])).toEqual([
      ['instance_a__b-2', 'ungradable'],
      ['../escape', 'refused'],
    ]);
  });
});

describe('datasets add', () => {
  test('a name stands for the same tasks: what has changed is refused until it is added again', async () => {
    const dir = { path: mkdtempSync(join(tmpdir(), 'swebatch-added-')) };
    const env = { PATH: process.env.PATH, XDG_CACHE_HOME: join(dir.path, 'cache') };
    const source = proClone(dir.path, 'jsonl');
    expect(await addDataset({ source, env })).toMatchObject({ name: 'pro', instances: 3, gradable: 1 });
    const loaded = await loadDataset('pro', { env });
    expect(loaded.ok && loaded.dataset).toMatchObject({ source: 'pro', path: source });

    writeFileSync(join(source, 'run_scripts/instance_a__b-1/parser.py'), 'changed\n');
    const changed = await loadDataset('pro', { env });
    expect(changed).toMatchObject({
      ok: false,
      problems: [{ message: expect.stringMatching(/has changed since it was added/) }],
    });
    await addDataset({ source, env });
    expect((await loadDataset('pro', { env })).ok).toBe(true);
  });

  test('a git repository is cloned at one commit, and stays at it', async () => {
    const dir = { path: mkdtempSync(join(tmpdir(), 'swebatch-added-')) };
    const env = { PATH: process.env.PATH, XDG_CACHE_HOME: join(dir.path, 'cache') };
    const clone = proClone(dir.path, 'jsonl');
    const git = (...args: string[]) =>
      execFileSync('git', ['-C', clone, '-c', 'user.email=a@b', '-c', 'user.name=a', ...args])
        .toString()
        .trim();
    git('init', '-q');
    git('add', '-A');
    git('commit', '-qm', 'one');
    const added = await addDataset({ source: `file://${clone}`, env });
    expect(added).toMatchObject({ name: 'pro', instances: 3, revision: git('rev-parse', 'HEAD') });
    writeFileSync(join(clone, 'rows.jsonl'), `${JSON.stringify(row('instance_a__b-9'))}\n`);
    const loaded = await loadDataset('pro', { env });
    expect(loaded.ok && [loaded.dataset.rows.length, loaded.dataset.revision]).toEqual([3, added.revision]);
  });

  test.each([
    ['file:///nowhere/at-all', /cannot be cloned/],
    ['nowhere', /the dataset cannot be used/],
    ['/tmp/verified', /name of a known dataset/],
  ])('%s is refused in words', async (source, message) => {
    const dir = { path: mkdtempSync(join(tmpdir(), 'swebatch-added-')) };
    await expect(
      addDataset({ source, env: { PATH: process.env.PATH, XDG_CACHE_HOME: dir.path } }),
    ).rejects.toThrow(message);
  });
});
