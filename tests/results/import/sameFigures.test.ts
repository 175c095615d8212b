// A run that is exported and read again by us has the same figures on every surface, whatever it was exported as.
import { copyFileSync, cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { readPredictions } from '../../../src/formats/predictions.ts';
import { compareSources } from '../../../src/results/compareSources.ts';
import { importResults } from '../../../src/results/import/importResults.ts';
import { openSource } from '../../../src/results/import/openSource.ts';
import { openResults } from '../../../src/results/openResults.ts';
import { exportForeign } from '../../../src/run/record/exportForeign.ts';
import {
  exportAttempts,
  exportRecord,
  exportRun,
  exportTrajectories,
} from '../../../src/run/record/exportRun.ts';
import { requireRun } from '../../../src/run/resultsRoot.ts';
import { openStore, type Store } from '../../../src/store/open.ts';
import { verifyRun } from '../../../src/store/verifyRun.ts';
import { createDocuments } from '../../../src/viewer/documents/resources.ts';
import { type Happened, recordRun } from '../../report/recordedRun.ts';
import { cli, tempDir } from '../../support/cli.ts';

const IDS = [...Array.from({ length: 12 }, (_, n) => `a__a-${n}`), '__proto__', 'constructor'];
const ARMS = ['a/b', 'default'];
const MESSAGES = [
  { role: 'system', content: 'You fix code.' },
  { role: 'user', content: `Résumé 文: ${'it is broken. '.repeat(200)}` },
  { role: 'assistant', content: 'I look.' },
  { role: 'user', content: 'seen', extra: { returncode: 1 } },
];
const COMMANDS = [{ messageSeq: 3, command: 'ls', output: 'x'.repeat(5000) }];

/** Of each kind: resolved, unresolved, at a limit, lost for good, tried twice or three times, not graded, not run. */
function happened(id: string, arm: string, epoch: number): readonly Happened[] {
  const k = IDS.indexOf(id) + 3 * epoch + ARMS.indexOf(arm);
  const cost = 1_000_003 * (k + 1);
  const said = { cost, steps: 1 + (k % 4), messages: MESSAGES, commands: COMMANDS };
  const lost = { ...said, reason: 'env_died' as const, patch: '' };
  const graded = (resolved: boolean): Happened => ({
    ...{ ...said, outcome: resolved ? 'resolved' : 'unresolved', resolved, strict: resolved && k % 4 !== 0 },
    ...{ reward: resolved ? 1 : 0.25, rewards: { tests: 0.25, style: 1 }, suspicion: [{ rule: 'network' }] },
  });
  if (k % 9 === 1) return [lost, graded(true)];
  if (k % 9 === 2) return [lost, lost, graded(false)];
  if (k % 9 === 3) return [{ ...graded(false), reason: 'limit_steps' }];
  if (k % 9 === 4) return [{ ...said, cost: null }];
  if (k % 9 === 5) return [lost];
  if (k === 14) return [];
  return [graded(k % 2 === 0)];
}

function recorded(root: string): Store {
  mkdirSync(root);
  const store = openStore(join(root, 'swebatch.db'));
  recordRun(store, {
    name: 'whole',
    ids: IDS,
    arms: ARMS,
    epochs: 3,
    config: { run: { epochs: 3 }, grading: {}, arms: ARMS.map((name) => ({ name })) },
    armConfig: { agent: { step_limit: 7 }, model: { model_name: 'vendor/m' } },
    manifest: { program: { version: '1.2.3' }, statistics: { paired_test: 'exact' } },
    happened,
  });
  // Infrastructure took the trial for good; calls whose answers were lost, or that failed; what else a run leaves.
  store.exec(`
    UPDATE trials SET state = 'sealed', final_attempt_id = (SELECT max(a.id) FROM attempts a WHERE a.trial_id = trials.id)
      WHERE final_attempt_id IS NULL AND EXISTS (SELECT 1 FROM attempts a WHERE a.trial_id = trials.id);
    INSERT INTO model_calls (attempt_id, step, try, state, started_at, model_asked, error_code, notes)
      SELECT id, 2, 0, 'aborted', started_at, 'vendor/m', NULL, '["its answer was lost"]' FROM attempts WHERE id % 5 = 0;
    INSERT INTO model_calls (attempt_id, step, try, state, started_at, model_asked, error_code, cost_nano)
      SELECT id, 2, 0, 'failed', started_at, 'vendor/m', 'rate_limited', 0 FROM attempts WHERE id % 7 = 0;
    UPDATE attempts SET ended_at = strftime('%Y-%m-%dT%H:%M:%fZ', '2026-11-21T00:00:10Z', id || ' seconds');
    INSERT INTO phases SELECT id, 0, 'model', 0, 4000 + id FROM attempts;
    INSERT INTO events (run_id, at, type, data) VALUES (1, '2026-11-21T00:00:00.000Z', 'run_started', '{}');
    INSERT INTO verdicts (run_id, arm, verdict, exit_code, judged_at) VALUES (1, 'default', 'improved', 0, '2026-11-21T02:00:00.000Z');
    DELETE FROM attempt_sums;
  `);
  return store;
}

const FORMS = ['results folder', 'trajectories', 'atif', 'harbor', 'inspect', 'record alone'] as const;
let home: string;
let source: Store;
/** Of the run as it was recorded. */
let wanted: unknown;
const exported = (form: string): string => join(home, 'exported', form, 'whole');

beforeAll(async () => {
  home = tempDir();
  source = recorded(join(home, 'results'));
  const run = requireRun(source, 'whole');
  const into = (form: string) => ({ store: source, run, dir: exported(form), version: '1.2.3' });
  await exportRun(into('results folder'));
  await exportTrajectories(into('trajectories'));
  await exportRecord(into('trajectories'));
  await exportAttempts(into('atif'), 'atif');
  await exportRecord(into('atif'));
  await exportForeign(into('harbor'), 'harbor');
  await exportForeign(into('inspect'), 'inspect');
  await exportRecord(into('record alone'));
  wanted = figuresOf(join(home, 'results'));
  return () => {
    source.close();
    rmSync(home, { recursive: true });
  };
});

const OF_DATABASE = /^(?:id|trial|attempt|evaluation|run)(?:_?id)?$|^trial_attempts$/i;
/** Rows have other ids in another database, and a status has the time of asking. */
const plain = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value), (key, inner) =>
    OF_DATABASE.test(key) && typeof inner !== 'object' ? undefined : inner,
  );

/** Documents of the viewer, by what they are about. */
function documentsOf(root: string): unknown {
  using store = openStore(join(root, 'swebatch.db'), { readonly: true });
  const documents = createDocuments(store, { title: 't' });
  const attempts = store
    .prepare('SELECT id FROM attempts')
    .pluck()
    .all()
    .map((id) => [
      documents.read(`attempts/${id}`),
      documents.read(`attempts/${id}/messages/0`),
      documents.read(`attempts/${id}/raw/0`),
    ]);
  const page = documents.read('runs/1/trials/0') as { rows?: unknown[] };
  return [
    ...['runs', 'runs/1', 'compare/1.0/1.1'].map((path) => documents.read(path)),
    ...[page, ...attempts].map((each) => JSON.stringify(plain(each))).sort(),
  ];
}

function figuresOf(root: string): unknown {
  const opened = openResults(root);
  try {
    const run = opened.run('last');
    return plain({
      run: { ...run, name: '' },
      manifest: opened.manifest(run.name),
      trials: opened.trials(run.name),
      verdicts: opened
        .verdicts(run.name)
        .map((row) => JSON.stringify(plain(row)))
        .sort(),
      report: { ...opened.report(run.name), run: '' },
      documents: documentsOf(root),
    });
  } finally {
    opened.close();
  }
}

const tell = () => {};

describe.each(FORMS)('%s', (form) => {
  test('an import has every trial, attempt, call, cost, verdict and name, and exports the same again', async () => {
    const root = join(home, `root of ${form}`);
    const { trials, verdicts } = await importResults(
      { source: exported(form), results: root },
      { env: {}, tell },
    );
    expect(trials).toBe(84);
    expect(verdicts.judged).toBeGreaterThan(40);
    expect(figuresOf(root)).toEqual(wanted);
    using store = openStore(join(root, 'swebatch.db'), { readonly: true });
    const run = requireRun(store, 'whole');
    expect(verifyRun(store, run).checks.filter(({ ok }) => !ok)).toEqual(
      verifyRun(source, requireRun(source, 'whole')).checks.filter(({ ok }) => !ok),
    );
    if (form !== 'results folder') return;
    const again = readdirSync(join(root, 'whole'), { recursive: true, encoding: 'utf8' }).sort();
    expect(again).toEqual(readdirSync(exported(form), { recursive: true, encoding: 'utf8' }).sort());
  });

  test('what is read in place says the same in a comparison', async () => {
    const caller = { env: { XDG_CACHE_HOME: join(home, 'cache') }, tell };
    const opened = await openSource(exported(form), caller);
    expect(figuresOf(opened!.root)).toEqual(wanted);
    const sides = [exported(form), exported(form)];
    const compared = await compareSources({ sides, results: join(home, 'none') }, caller);
    expect(compared.sides.length).toBe(4);
  });
});

test('`report`, `ls`, `show` and `compare` say the same of it by --json', async () => {
  const root = join(home, 'by the program');
  const imported = await cli(['import', exported('harbor'), '-o', root, '--json']);
  expect([imported.code, imported.stderr]).toEqual([
    0,
    expect.stringMatching(/read as a run of swebatch: 84 trials of 14/),
  ]);
  for (const words of [
    ['report', 'whole'],
    ['ls', 'whole'],
    ['show', 'whole', 'a__a-1'],
    ['show', 'whole', '__proto__'],
    ['compare', 'whole/a/b', 'whole/default'],
  ]) {
    const [ours, theirs] = await Promise.all(
      [join(home, 'results'), root].map((at) => cli([...words, '-o', at, '--json'])),
    );
    expect(theirs!.code, theirs!.stderr).toBe(ours!.code);
    expect(JSON.parse(theirs!.stdout)).toEqual(JSON.parse(ours!.stdout));
  }
});

test('a run of a results root is read from its database, newer than its files; a copy of another run is not', async () => {
  const root = join(home, 'live');
  mkdirSync(root);
  const store = recorded(join(root, 'r'));
  onTestFinished(() => void store.close());
  cpSync(exported('results folder'), join(root, 'r', 'whole'), { recursive: true });
  store.exec(`UPDATE model_calls SET cost_nano = 5 WHERE id = 1`);
  const first = (at: string): unknown => {
    using opened = openStore(join(at, 'swebatch.db'), { readonly: true });
    return opened.prepare('SELECT cost_nano FROM model_calls ORDER BY id').pluck().get();
  };
  await importResults({ source: join(root, 'r', 'whole'), results: join(root, 'a') }, { env: {}, tell });
  expect(first(join(root, 'a'))).toBe(5);
  store.exec(`UPDATE runs SET created_at = '2025-01-01T00:00:00.000Z'`);
  await importResults({ source: join(root, 'r', 'whole'), results: join(root, 'b') }, { env: {}, tell });
  expect(first(join(root, 'b'))).not.toBe(5);
});

test('logs of arms are one run again; a log without rows, or rows of two runs, are not mixed', async () => {
  const logs = readdirSync(exported('inspect'));
  expect(logs).toHaveLength(2);
  const dir = join(home, 'one arm');
  mkdirSync(dir);
  copyFileSync(join(exported('inspect'), logs[1]!), join(dir, logs[1]!));
  const { trials } = await importResults({ source: dir, results: join(home, 'one') }, { env: {}, tell });
  expect(trials).toBe(42);
  expect(
    openResults(join(home, 'one'))
      .report('last')
      .arms.map((arm) => arm.arm),
  ).toHaveLength(1);
  // The same arm twice is no run.
  copyFileSync(join(dir, logs[1]!), join(dir, `2027${basename(logs[1]!).slice(4)}`));
  await expect(
    importResults({ source: dir, results: join(home, 'twice') }, { env: {}, tell }),
  ).rejects.toThrow(/two parts hold the same trial/);
  expect(openResults(join(home, 'twice')).runs()).toEqual([]);
});

test('predictions of one arm and epoch are one file that `evaluate` takes; several are refused by their number', async () => {
  const root = join(home, 'preds');
  mkdirSync(root);
  const store = openStore(join(root, 'swebatch.db'));
  onTestFinished(() => void store.close());
  recordRun(store, { name: 'one', ids: IDS, happened: (id) => [{ patch: `diff --git a/${id} b/${id}\n` }] });
  for (const name of ['x.json', 'x.jsonl']) {
    const path = join(root, name);
    const { code, stdout, stderr } = await cli(['export', 'one', 'preds', '-o', root, '--to', path]);
    expect([code, stdout.trim()], stderr).toEqual([0, path]);
    const read = readPredictions(readFileSync(path), path);
    expect(read?.problems).toEqual([]);
    expect(read?.predictions.map((one) => one.instance_id).sort()).toEqual([...IDS].sort());
  }
  const several = await cli([
    'export',
    'whole',
    'preds',
    '-o',
    join(home, 'results'),
    '--to',
    join(root, 'y.json'),
  ]);
  expect(several.code).toBe(2);
  expect(several.stderr).toContain('whole has 6 sets of predictions');
  expect(readdirSync(root)).not.toContain('y.json');
});

describe('a record that is damaged, forged or of another version', () => {
  const lines = (): string[] =>
    gunzipSync(readFileSync(join(exported('record alone'), 'record.jsonl.gz')))
      .toString('utf8')
      .split('\n');
  const row = (table: string, cells: object): string => JSON.stringify([table, cells]);
  const cases: readonly (readonly [string, (rows: string[]) => string | Buffer, RegExp])[] = [
    ['is no gzip', () => Buffer.from('not gzip'), /record\.jsonl\.gz cannot be read/],
    ['is cut off', (rows) => gzipSync(rows.join('\n')).subarray(0, 900), /cannot be read: unexpected end/],
    ['ends within a line', (rows) => rows.join('\n').slice(0, -9), /cannot be read/],
    ['is empty', () => '', /cannot be read: it is empty/],
    ['is other JSON', () => '{"a": 1}\n', /it is no record of swebatch/],
    ['has a row that is no row', (rows) => `${rows[0]}\n[1]\n`, /it is no record of swebatch/],
    [
      'has a table of the program',
      (rows) => `${rows[0]}\n${row('baselines', { name: 'x' })}\n`,
      /baselines is no table of a run/,
    ],
    [
      'has SQL as a column',
      (rows) => `${rows[0]}\n${row('runs', { 'id) VALUES (1); --': 1 })}\n`,
      /runs has no column/,
    ],
    [
      'has a trial of no arm',
      (rows) => rows.filter((line) => !line.startsWith('["arms"')).join('\n'),
      /refers to one of arms that is missing/,
    ],
    [
      'has an end without its attempt',
      (rows) => rows.filter((line) => !line.startsWith('["attempts"')).join('\n'),
      /one of attempts that is missing/,
    ],
    [
      'breaks a rule of the schema',
      (rows) => rows.join('\n').replace('"state":"sealed"', '"state":"won"'),
      /a row of trials is not one/,
    ],
    ['holds no run', (rows) => `${rows[0]}\n`, /the row of the run is missing/],
    ['is a bomb', () => gzipSync(Buffer.alloc(200_000_000, 120)), /far more than a record holds/],
  ];
  test.each(cases)('%s: it is refused, and nothing of it stays', async (name, made, says) => {
    const dir = join(home, 'damaged', name.replaceAll(' ', '-'));
    mkdirSync(dir, { recursive: true });
    const content = made(lines());
    writeFileSync(join(dir, 'record.jsonl.gz'), typeof content === 'string' ? gzipSync(content) : content);
    const results = `${dir}.root`;
    await expect(importResults({ source: dir, results }, { env: {}, tell })).rejects.toThrow(says);
    expect(openResults(results).runs()).toEqual([]);
    expect(readdirSync(results).filter((file) => !file.startsWith('swebatch.db'))).toEqual([]);
  });
  test('of another schema: what lies beside it is read, and it is said what may be missing', async () => {
    const dir = join(home, 'older');
    cpSync(exported('harbor'), dir, { recursive: true });
    const [head, ...rest] = lines();
    const other = [head!.replace(/"schema":\d+/, '"schema":3'), ...rest].join('\n');
    writeFileSync(join(dir, 'record.jsonl.gz'), gzipSync(other));
    const told: string[] = [];
    const { run } = await importResults(
      { source: dir, results: `${dir}.root` },
      { env: {}, tell: ({ text }) => void told.push(text) },
    );
    expect(run).toBe('older');
    expect(told.join()).toMatch(
      /schema 3; this one knows \d+\): it is read without, so earlier attempts and lost calls may be missing/,
    );
    expect(told.join()).toMatch(/read as/);
  });
});

test.each(['__proto__', 'constructor'])(
  'files of other tools may have the id %s: its verdict is kept',
  async (id) => {
    const dir = join(home, `ids ${id}`);
    const logs = join(dir, 'logs', 'run_evaluation', 'r', 'm', id);
    mkdirSync(logs, { recursive: true });
    const patch = 'diff --git a/x b/x\n';
    writeFileSync(
      join(logs, 'report.json'),
      `{${JSON.stringify(id)}: {"resolved": true, "patch_successfully_applied": true}}`,
    );
    writeFileSync(join(logs, 'patch.diff'), patch);
    const pro = join(dir, 'eval_results.json');
    writeFileSync(pro, `{${JSON.stringify(id)}: true, "a__a-1": false}`);
    const report = join(dir, 'm.r.json');
    writeFileSync(
      report,
      `{"schema_version": 2, "total_instances": 1, "submitted_ids": ["${id}"], "completed_ids": [], "resolved_ids": [], "unresolved_ids": [], "error_ids": ["${id}"], "infra_failure_ids": [], "failure_reasons": {"${id}": "the disk"}}`,
    );
    const kept = async (source: string) => {
      const results = `${source}.root`;
      await importResults({ source, results }, { env: {}, tell });
      using store = openStore(join(results, 'swebatch.db'), { readonly: true });
      return store
        .prepare('SELECT instance_id, outcome, infra_reason FROM evaluations WHERE instance_id = ?')
        .raw()
        .all(id);
    };
    expect(await kept(join(dir, 'logs'))).toEqual([[id, 'resolved', null]]);
    expect(await kept(pro)).toEqual([[id, 'resolved', null]]);
    expect(await kept(report)).toEqual([[id, 'infra', 'the disk']]);
  },
);
