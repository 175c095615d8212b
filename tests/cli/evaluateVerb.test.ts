// `swebatch evaluate` as a person calls it: files and gold in Docker, regrading without it, calibration, errors that help.
import { mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { PATCHES, SUM_REPO_SCRIPT, sumRow } from '../grading/fixtures/sumRepo.ts';
import { DATA, hasData, WITHOUT_DATA } from '../grading/officialData.ts';
import { type CliResult, cli } from '../support/cli.ts';
import { dockerAvailable } from '../support/docker.ts';
import { derivedImage } from '../support/dockerEnvironment.ts';

const available = await dockerAvailable();
let dir = '';
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'swebatch-evaluate-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const evaluate = (...args: string[]): Promise<CliResult> => cli(['evaluate', ...args], { cwd: dir });
const write = (name: string, text: string) => writeFileSync(join(dir, name), text);

describe.skipIf(!available)('in Docker', () => {
  let image = '';
  beforeAll(async () => {
    image = await derivedImage(SUM_REPO_SCRIPT);
  });
  const ids = ['demo__sum-1', 'demo__sum-2', 'demo__sum-3'];
  beforeEach(() => {
    write(
      'data.jsonl',
      ids.map((instance_id) => JSON.stringify(sumRow(image, undefined, { instance_id }))).join('\n'),
    );
  });
  const preds = (patches: Record<string, string>) =>
    JSON.stringify(
      Object.fromEntries(
        Object.entries(patches).map(([instance_id, model_patch]) => [
          instance_id,
          { instance_id, model_name_or_path: 'org/m', model_patch },
        ]),
      ),
    );

  test('a predictions file: verdicts, official folders and report; a changed patch alone is graded again', async () => {
    write('preds.json', preds({ 'demo__sum-1': PATCHES.gold, 'demo__sum-2': PATCHES.wrong }));
    const first = await evaluate(
      'preds.json',
      '--subset',
      'data.jsonl',
      '-o',
      'out',
      '--run-id',
      'r1',
      '--json',
      '-w',
      '1',
    );
    expect(first.code, first.stderr).toBe(0);
    const [part] = JSON.parse(first.stdout) as { report: Record<string, unknown>; report_path: string }[];
    expect(part!.report).toMatchObject({
      total_instances: 3,
      resolved_ids: ['demo__sum-1'],
      unresolved_ids: ['demo__sum-2'],
      incomplete_ids: ['demo__sum-3'],
    });
    // What the harness adds when it has a Docker client: nothing of the run is left but the dataset's image.
    expect(Object.entries(part!.report).slice(-4)).toEqual([
      ['schema_version', 2],
      ['unstopped_instances', 0],
      ['unstopped_containers', []],
      ['unremoved_images', [image]],
    ]);
    expect(JSON.parse(readFileSync(join(dir, 'out/r1/org__m.r1.json'), 'utf8'))).toEqual(part!.report);
    const logs = join(dir, 'out/r1/logs/run_evaluation/r1/org__m/demo__sum-1');
    expect(JSON.parse(readFileSync(join(logs, 'report.json'), 'utf8'))).toMatchObject({
      'demo__sum-1': { resolved: true },
    });

    write('preds.json', preds({ 'demo__sum-1': PATCHES.gold, 'demo__sum-2': PATCHES.gold }));
    const second = await evaluate(
      'preds.json',
      '--subset',
      'data.jsonl',
      '-o',
      'out',
      '--run-id',
      'r1',
      '--json',
    );
    expect(second.stderr).toMatch(/\[1\/1\] demo__sum-2 {2}resolved/);
    expect(second.stderr).not.toMatch(/\] demo__sum-1/);
    expect(JSON.parse(second.stdout)[0].report.resolved_ids).toEqual(['demo__sum-1', 'demo__sum-2']);

    const again = await evaluate(
      '--regrade',
      'out/r1/logs/run_evaluation',
      '--subset',
      'data.jsonl',
      '--json',
    );
    expect(JSON.parse(again.stdout)).toMatchObject([
      { run_id: 'r1', model: 'org__m', instance_id: 'demo__sum-1', resolved: true },
      { run_id: 'r1', model: 'org__m', instance_id: 'demo__sum-2', resolved: true },
    ]);
  });

  test('model names that climb or never end stay in the run folder and cost nobody a verdict', async () => {
    const models = ['../../../climbs', `${'long/'.repeat(100)}x`, '..'];
    write(
      'all_preds.jsonl',
      ids
        .map((instance_id, i) =>
          JSON.stringify({ instance_id, model_name_or_path: models[i], model_patch: PATCHES.gold }),
        )
        .join('\n'),
    );
    const args = ['all_preds.jsonl', '--subset', 'data.jsonl', '-o', 'out', '--run-id', 'r1', '--json'];
    const { code, stdout, stderr } = await evaluate(...args);
    expect(code, stderr).toBe(0);
    const parts = JSON.parse(stdout) as { report_path: string; report: { resolved_ids: string[] } }[];
    expect(parts.flatMap((part) => part.report.resolved_ids).toSorted()).toEqual(ids);
    const home = realpathSync(join(dir, 'out', 'r1'));
    for (const { report_path } of parts) expect(realpathSync(report_path).startsWith(`${home}/`)).toBe(true);
    const written = readdirSync(dir, { recursive: true }).map(String);
    expect(written.filter((path) => path.endsWith('/report.json'))).toHaveLength(3);
    expect(written.filter((path) => !path.startsWith('out') && path.includes('climbs'))).toEqual([]);
  });

  test('gold calibrates: later scores are also shown without what gold fails', async () => {
    write(
      'data.jsonl',
      [
        JSON.stringify(sumRow(image, undefined, { instance_id: 'demo__sum-1' })),
        JSON.stringify(sumRow(image, undefined, { instance_id: 'demo__sum-2', patch: PATCHES.wrong })),
      ].join('\n'),
    );
    const gold = await evaluate('--verify-gold', '--subset', 'data.jsonl', '-o', 'out');
    expect(gold.code, gold.stderr).toBe(0);
    expect(gold.stdout).toMatch(/demo__sum-2 +fails +0 of 1/);
    expect(gold.stderr).toMatch(/gold passes on this machine for 1 of 2/);
    write(
      'p.jsonl',
      JSON.stringify({ instance_id: 'demo__sum-2', model_name_or_path: 'm', model_patch: PATCHES.unrelated }),
    );
    const later = await evaluate('p.jsonl', '--subset', 'data.jsonl', '-o', 'out', '--json');
    expect(JSON.parse(later.stdout)[0].gold).toEqual({
      fails: ['demo__sum-2'],
      flaky: [],
      resolved: 0,
      submitted: 0,
    });
  });
});

test.skipIf(!hasData)(`--regrade over the official logs (${WITHOUT_DATA})`, async () => {
  const before = readFileSync(
    join(DATA, 'grading-logs/verified-98/django__django-10880/report.json'),
    'utf8',
  );
  const { code, stdout } = await evaluate(
    '--regrade',
    join(DATA, 'grading-logs', 'verified-98'),
    '--subset',
    join(DATA, 'datasets', 'SWE-bench_Verified_test.parquet'),
    '--subset',
    join(DATA, 'datasets', 'SWE-bench_Lite_test.parquet'),
    '--harness',
    'v5',
    '--no-write',
    '--json',
  ); // prettier-ignore
  expect(code).toBe(0);
  const rows = JSON.parse(stdout) as {
    run_id: string;
    model: string;
    instance_id: string;
    report: Record<string, { resolved: boolean }>;
  }[];
  expect(rows).toHaveLength(98);
  expect(rows.filter((row) => row.report[row.instance_id]!.resolved)).toHaveLength(73);
  expect(readFileSync(join(DATA, 'grading-logs/verified-98/django__django-10880/report.json'), 'utf8')).toBe(
    before,
  );
});

test('a log parser that is not there is a mistake of the call, said before anything is made', {
  timeout: 60_000,
}, async () => {
  write('data.jsonl', JSON.stringify(sumRow('none:1', undefined, { log_parser: 'mine' })));
  const gold = ['gold', '--subset', 'data.jsonl', '-o', 'out', '--parser', 'mine=./nowhere.mjs'];
  const { code, stderr } = await evaluate(...gold);
  expect(code).toBe(2);
  expect(stderr).toMatch(/grading\.parsers\.mine: \.\/nowhere\.mjs cannot be loaded/);
  expect(stderr).toContain('relative paths of parsers start in the working directory');
  expect(readdirSync(dir)).toEqual(['data.jsonl']);
});

test('gold that cannot be graded is refused with the reason, and needs no engine', {
  timeout: 60_000,
}, async () => {
  write('data.jsonl', JSON.stringify(sumRow('none:1', undefined, { log_parser: 'mine' })));
  const { code, stderr } = await evaluate('gold', '--subset', 'data.jsonl', '-o', 'out');
  expect(code).toBe(2);
  expect(stderr).toContain('1 of 1 tasks cannot be graded');
  expect(stderr).toContain('no log parser is called "mine"; give one under grading.parsers');
});

describe('what is missing is said', () => {
  test.each([
    [[], /name what to evaluate/],
    [['preds.json'], /preds\.json cannot be read: there is no such file/],
    [['stranger.json'], /--subset is missing/],
    [['--regrade', '.'], /--regrade needs the dataset/],
    [['--regrade', 'nowhere', '--subset', 'data.jsonl'], /no folder nowhere/],
    [['preds.json', '--subset', 'data.jsonl'], /preds\.json cannot be read/],
    [['stranger.json', '--subset', 'data.jsonl'], /instances that the dataset does not have: x__y-1/],
    [['broken.jsonl', '--subset', 'data.jsonl'], /broken\.jsonl: line 1 is not JSON/],
    [['gold', '--subset', 'data.jsonl', '-i', 'x__y-1'], /the dataset has no instance named x__y-1/],
    [['nobody'], /there are no results in .*no run "nobody"/],
    [['last', '--verify-gold'], /--verify-gold grades the solutions of a dataset/],
  ] as const)('%j', async (args, message) => {
    write('data.jsonl', JSON.stringify(sumRow('i:1')));
    write('stranger.json', '[{"instance_id": "x__y-1", "model_patch": "x", "model_name_or_path": "m"}]');
    write('broken.jsonl', '{');
    const result = await evaluate(...args);
    expect(result.code).toBe(2);
    expect(result.stderr).toMatch(message);
  });
});
