// Task repositories of SWE-bench 5: what is read of them, what is refused, how their images are made, and what the harness's rules say of runs.

import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { headOf, readInstance } from '../../../src/dataset/dataset.ts';
import { recipeOf } from '../../../src/environment/places/buildRecipes.ts';
import { loadDataset } from '../../../src/suites/loadDataset.ts';
import { planGrading } from '../../../src/suites/suites.ts';
import { PATCHES, PYTEST, SUM_REPO_SCRIPT, sumRow } from '../../grading/fixtures/sumRepo.ts';
import { cli, tempDir } from '../../support/cli.ts';
import { dockerAvailable } from '../../support/docker.ts';
import { derivedImage } from '../../support/dockerEnvironment.ts';

const ID = 'demo__sum-1';
/** A baseline of a rendering, which no text can carry. */
const PICTURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0, 1, 255]);

interface Made {
  readonly from?: string;
  readonly yaml?: Readonly<Record<string, string | null>>;
  readonly files?: Readonly<Record<string, string | Buffer | null>>;
}

/** Fields and files with null are left out. */
function addTask(
  root: string,
  id: string,
  { from = 'swebatch-test/none:1', yaml = {}, files = {} }: Made = {},
): string {
  const folder = join(root, 'tasks', id);
  const row = sumRow('');
  const facts = {
    instance_id: id,
    repo: 'demo/sum',
    version: '"1.0"',
    base_commit: 'HEAD',
    split: 'test',
    image: `swebench/sweb.eval.x86_64.${id.replaceAll('__', '_1776_')}:latest`,
    log_parser: 'parse_log_pytest',
    eval_type: 'pass_and_fail',
    datasets: '[demo/sum]',
    created_at: "'2024-01-01'",
    ...yaml,
  };
  const lines = Object.entries(facts).flatMap(([key, value]) =>
    value === null ? [] : [`${key}: ${value}\n`],
  );
  const all = {
    'task.yaml': lines.join(''),
    'tests.json': JSON.stringify({ FAIL_TO_PASS: row.FAIL_TO_PASS, PASS_TO_PASS: row.PASS_TO_PASS }),
    'problem_statement.md': 'add subtracts\n',
    'gold.patch': PATCHES.gold,
    'test.patch': row.test_patch,
    'eval.sh': row.eval_script,
    Dockerfile: `FROM ${from}\n`,
    ...files,
  };
  for (const [path, content] of Object.entries(all)) {
    if (content === null) continue;
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), content);
  }
  return folder;
}

function repository(): string {
  const root = tempDir('task-repository-');
  writeFileSync(join(root, 'sweb.yaml'), 'datasets: [demo/sum]\nsplits: [test, dev]\n');
  return root;
}

async function loaded(root: string, split?: string) {
  const result = await loadDataset(root, { split, env: {} });
  if (!result.ok) throw new Error(result.problems.map(({ message }) => message).join());
  return result.dataset;
}

/** `[1/2] demo__sum-1  resolved  7.5 s`, in the order of ids. */
const verdicts = (said: string): string[][] =>
  [...said.matchAll(/^\[\d+\/\d+\] (\S+) +(\S+)/gm)].map(([, id, outcome]) => [id!, outcome!]).sort();

describe('reading', () => {
  test('files are columns, byte by byte, and the image is that of the Dockerfile', async () => {
    const root = repository();
    const crlf = PATCHES.gold.replaceAll('\n', '\r\n');
    addTask(root, ID, {
      files: { 'gold.patch': crlf, 'hints.md': 'look at the sign\n' },
      yaml: { difficulty: '<15 min' },
    });
    const { rows, split } = await loaded(root);
    expect(split).toBe('test');
    expect(readInstance(rows[0]!)).toMatchObject({
      ...{ instance_id: ID, kind: 'swe-bench-tasks', patch: crlf, problem_statement: 'add subtracts\n' },
      ...{
        hints_text: 'look at the sign\n',
        version: '1.0',
        difficulty: '<15 min',
        log_parser: 'parse_log_pytest',
      },
      FAIL_TO_PASS: ['tests/test_add.py::test_add'],
      extra: { published_image: 'swebench/sweb.eval.x86_64.demo_1776_sum-1:latest', datasets: ['demo/sum'] },
    });
    expect(planGrading(readInstance(rows[0]!))).toMatchObject({ ok: true });
    const { image } = readInstance(rows[0]!);
    expect(image).toMatch(/^swebatch\.internal\/task:[0-9a-f]{32}$/);
    expect(
      recipeOf(image!)!
        .files()
        .map(({ path }) => path),
    ).toEqual(['Dockerfile']);
  });

  test('the split that is meant is test, or the one that is named; one that is not there is told', async () => {
    const root = repository();
    addTask(root, ID);
    addTask(root, 'demo__sum-2', { yaml: { split: 'dev' } });
    addTask(root, 'demo__sum-3', { yaml: { split: 'deprecated' } });
    const ids = async (split?: string) =>
      (await loaded(root, split)).rows.map((row) => headOf(row).instance_id);
    expect([await ids(), await ids('dev'), await ids('deprecated')]).toEqual([
      [ID],
      ['demo__sum-2'],
      ['demo__sum-3'],
    ]);
    await expect(loaded(root, 'train')).rejects.toThrow('has no split "train"; it has test, deprecated, dev');
  });

  test.each<[string, Made, string]>([
    ['a file that is missing', { files: { 'eval.sh': null } }, 'it lacks eval.sh'],
    ['a key that is missing', { yaml: { log_parser: null } }, 'task.yaml has no log_parser'],
    [
      'another id',
      { yaml: { instance_id: 'other__id-1' } },
      'task.yaml says another instance_id than its folder',
    ],
    [
      'no test that must pass',
      { files: { 'tests.json': '{"FAIL_TO_PASS":[],"PASS_TO_PASS":[]}' } },
      'no FAIL_TO_PASS',
    ],
    [
      'tests that are no names',
      { files: { 'tests.json': '{"FAIL_TO_PASS":[1],"PASS_TO_PASS":[]}' } },
      'no lists of names',
    ],
    ['tests that are no JSON', { files: { 'tests.json': '{' } }, 'tests.json is not valid JSON'],
    [
      'a script without marks',
      { files: { 'eval.sh': 'pytest\n' } },
      'eval.sh does not write ">>>>> Start Test Output"',
    ],
    ['YAML that is none', { files: { 'task.yaml': 'a: [' } }, 'at line 1'],
    ['a commit that is an option', { yaml: { base_commit: '"--exec=x"' } }, 'is not a commit'],
    ['an eval type that nobody knows', { yaml: { eval_type: 'by_hand' } }, 'eval_type'],
  ])('%s refuses its task alone', async (_, made, why) => {
    const root = repository();
    addTask(root, 'demo__bad-1', made);
    addTask(root, ID);
    const refused = (await loaded(root)).rows.map((row) => [readInstance(row).instance_id, row.refused]);
    expect(refused[0]).toEqual(['demo__bad-1', expect.stringContaining(why)]);
    expect(refused[1]).toEqual([ID, undefined]);
  });

  test('a Dockerfile that copies gets its folder, and tests of one that does not make no other image', async () => {
    const root = repository();
    const image = async () => (await loaded(root)).rows.map((row) => headOf(row).image!);
    addTask(root, ID);
    addTask(root, 'demo__sum-2', {
      files: { Dockerfile: 'FROM x\nCOPY big.patch /tmp/\n', 'big.patch': 'a' },
    });
    const before = await image();
    for (const row of (await loaded(root)).rows) planGrading(readInstance(row));
    expect(
      recipeOf(before[1]!)!
        .files()
        .map(({ path }) => path),
    ).toContain('big.patch');
    addTask(root, ID, { files: { 'tests.json': '{"FAIL_TO_PASS":["a"],"PASS_TO_PASS":[]}' } });
    writeFileSync(join(root, 'tasks', 'demo__sum-2', 'big.patch'), 'b');
    const after = await image();
    expect([after[0] === before[0], after[1] === before[1]]).toEqual([true, false]);
    expect(() => recipeOf(before[1]!)!.files()).toThrow('has changed since its image was named');
  });

  test('problem_assets is never read, and a task that changes is another task', async () => {
    const root = repository();
    const folder = addTask(root, ID);
    const hash = async () => (await loaded(root)).fileHash;
    const first = await hash();
    mkdirSync(join(folder, 'problem_assets'));
    writeFileSync(join(folder, 'problem_assets', 'page.html'), 'x');
    expect(await hash()).toBe(first);
    writeFileSync(join(folder, 'eval.sh'), `${readFileSync(join(folder, 'eval.sh'), 'utf8')}# more\n`);
    expect(await hash()).not.toBe(first);
  });
});

describe.skipIf(!(await dockerAvailable()))('in Docker', () => {
  let base = '';
  beforeAll(async () => {
    base = await derivedImage(SUM_REPO_SCRIPT);
  });

  test('images are built, gold is resolved, and a forged log is not, because the exit code contradicts it', async () => {
    const root = repository();
    const from = { from: `${base}\nCOPY note.txt /note.txt` };
    addTask(root, ID, { ...from, files: { 'note.txt': `built from a folder, ${process.pid}\n` } });
    // Its script reads a file that no patch can carry.
    const script = sumRow(
      '',
      `cmp pictures/expected.png /testbed/pictures/expected.png && test -s pictures/expected.png && ${PYTEST}`,
    ).eval_script;
    const picture = 'pictures/expected.png';
    addTask(root, 'demo__sum-2', {
      ...from,
      yaml: { image_assets: `{test_patch: [{path: ${picture}}]}` },
      files: { 'note.txt': 'two\n', 'eval.sh': script, [`test_assets/${picture}`]: PICTURE },
    });
    const out = join(root, 'out');
    const gold = await cli(['evaluate', 'gold', '--subset', root, '-o', out]);
    expect(gold.code, gold.stderr).toBe(0);
    expect(verdicts(gold.stderr)).toEqual([
      [ID, 'resolved'],
      ['demo__sum-2', 'resolved'],
    ]);

    const predictions = (patch: string) => {
      const path = join(root, 'preds.json');
      const one = { instance_id: ID, model_name_or_path: 'm', model_patch: patch };
      writeFileSync(path, JSON.stringify({ [ID]: one }));
      return path;
    };
    const graded = async (patch: string, ...more: string[]) => {
      const { stderr, code } = await cli([
        'evaluate',
        predictions(patch),
        '--subset',
        root,
        '-o',
        out,
        '--json',
        ...more,
      ]);
      expect(code, stderr).toBeLessThan(2);
      return verdicts(stderr);
    };
    // All of its tests are "PASSED" in the log, and the command that ran them failed.
    expect(await graded(PATCHES.forgedFail, '--harness', 'v4.1')).toEqual([[ID, 'resolved']]);
    expect(await graded(PATCHES.forgedFail)).toEqual([[ID, 'unresolved']]);
    expect(await graded(PATCHES.wrong)).toEqual([[ID, 'unresolved']]);
    rmSync(root, { recursive: true, force: true });
  }, 300_000);
});
