// Every form of file and place a dataset comes in, and the list of what is wrong with a bad one.
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { parquetWriteBuffer } from 'hyparquet-writer';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  datasetHash,
  headOf,
  type LoadedRow,
  readInstance,
  readRowHash,
  recordedRow,
} from '../../src/dataset/dataset.ts';
import type { LocateOptions } from '../../src/dataset/read/locate.ts';
import { jsonLines } from '../../src/dataset/read/readRows.ts';
import { type LoadOptions, loadDataset } from '../../src/suites/loadDataset.ts';
import { rawRow } from './rows.ts';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'swebatch-dataset-'));
});
afterEach(() => rmSync(dir, { recursive: true }));

function file(path: string, content: string | Uint8Array): string {
  const full = join(dir, path);
  mkdirSync(dirname(full), { recursive: true });
  writeFileSync(full, content);
  return full;
}
const lines = (...rows: unknown[]) => rows.map((row) => `${JSON.stringify(row)}\n`).join('');
function parquet(rows: Record<string, unknown>[]): Uint8Array {
  const columns = Object.keys(rows[0]!).map((name) => ({ name, data: rows.map((row) => row[name]) }));
  return new Uint8Array(parquetWriteBuffer({ columnData: columns }));
}
async function idsIn(source: string, options?: LocateOptions): Promise<string[]> {
  const result = await loadDataset(source, options);
  if (!result.ok) throw new Error(result.problems.map((p) => p.message).join('\n'));
  return result.dataset.rows.map((row) => headOf(row).instance_id);
}
async function problemsIn(source: string, options?: LoadOptions) {
  const result = await loadDataset(source, options);
  return result.ok ? [] : result.problems;
}
const [a, b, c] = ['a__a-1', 'b__b-2', 'c__c-3'];

describe('files', () => {
  test('JSONL with BOM, CRLF, blank lines, no last line break and U+2028 inside a string', async () => {
    const odd = rawRow(b, { problem_statement: 'line\u2028separator' });
    const text = `\uFEFF${JSON.stringify(rawRow(a))}\r\n\r\n  \n${JSON.stringify(odd)}\n\n${JSON.stringify(rawRow(c))}`;
    const result = await loadDataset(file('d.jsonl', text));
    expect(result.ok && result.dataset.rows.map((row) => [row.line, readInstance(row).instance_id])).toEqual([
      [1, a],
      [4, b],
      [6, c],
    ]);
    expect(result.ok && readInstance(result.dataset.rows[1]!).problem_statement).toBe('line\u2028separator');
  });

  test('rows of a large JSONL stay in the file, and are the same rows', async () => {
    const text = `\uFEFF${JSON.stringify(rawRow(a))}\r\n\n${JSON.stringify(rawRow(b, { extra_column: 'é' }))}\n${JSON.stringify(rawRow(c))}`;
    const path = file('d.jsonl', text);
    const held = await loadDataset(path);
    const left = await loadDataset(path, { heldBytes: 0 });
    if (!held.ok || !left.ok) throw new Error('not loaded');
    expect(left.dataset.fileHash).toBe(held.dataset.fileHash);
    expect(left.dataset.rows.map((row) => headOf(row).instance_id)).toEqual([a, b, c]);
    expect(left.dataset.rows.every((row) => 'file' in row)).toBe(true);
    const whole = (row: LoadedRow) => [readInstance(row), readRowHash(row), row.line];
    expect(left.dataset.rows.map(whole)).toEqual(held.dataset.rows.map(whole));
    expect(left.dataset.rows.map(recordedRow)).toEqual(held.dataset.rows.map(recordedRow));
    expect(datasetHash(left.dataset.rows)).toBe(datasetHash(held.dataset.rows));
    writeFileSync(path, text.replace('é', 'e'));
    expect(() => readInstance(left.dataset.rows[1]!)).toThrow(/changed while it was in use/);
    expect(readInstance(left.dataset.rows[0]!).instance_id).toBe(a);
  });

  test('of a large JSONL every bad line is named as of a small one; an array in it is read as one', async () => {
    const bad = file('d.jsonl', `${JSON.stringify(rawRow(a))}\n{"a\n${JSON.stringify(rawRow(a))}\n\xff\n`);
    const told = await problemsIn(bad);
    expect(told.length).toBeGreaterThan(1);
    expect(await problemsIn(bad, { heldBytes: 0 })).toEqual(told);
    const array = file('e.jsonl', `\n [${JSON.stringify(rawRow(a))}]`);
    const loaded = await loadDataset(array, { heldBytes: 0 });
    expect(loaded.ok && loaded.dataset.rows.map((row) => headOf(row).instance_id)).toEqual([a]);
  });

  test('columns that are no text are told once, however many rows have them, and refuse no file', async () => {
    const odd = (id: string) => rawRow(id, { difficulty: { files: 1 } });
    const loaded = await loadDataset(file('odd.jsonl', lines(odd(a!), odd(b!), rawRow(c!))));
    expect(loaded).toMatchObject({ ok: true, dataset: { rows: [{}, {}, {}] } });
    expect(loaded.ok && loaded.dataset.warnings).toEqual([
      "2 rows, such as a__a-1: difficulty is an object, not text; it stays with the row's other columns",
    ]);
  });

  test('lines that begin in one piece and end in another are whole', () => {
    const bytes = Buffer.from('{"a":"é"}\n\n{"b":2}\n{"c":3}');
    const whole = [...jsonLines([bytes])];
    expect(whole).toHaveLength(3);
    for (let size = 1; size < bytes.length; size++) {
      const pieces = Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) =>
        bytes.subarray(i * size, (i + 1) * size),
      );
      expect([...jsonLines(pieces)]).toEqual(whole);
    }
  });

  test('JSON as array, keyed by id, as a dump of the datasets server, as one row; lines are those of the text', async () => {
    const rows = [rawRow(a), rawRow(b)];
    const keyed = { [a]: { ...rawRow(a), instance_id: undefined }, [b]: rawRow(b) };
    const dump = { features: [{ name: 'x' }], rows: rows.map((row, row_idx) => ({ row_idx, row })), n: 2 };
    for (const value of [rows, keyed, dump]) {
      const result = await loadDataset(file('d.json', `\uFEFF\n${JSON.stringify(value, null, 2)}`));
      expect(result.ok && result.dataset.rows.map((row) => headOf(row).instance_id)).toEqual([a, b]);
      const text = `\n${JSON.stringify(value, null, 2)}`.split('\n');
      for (const row of result.ok ? result.dataset.rows : []) expect(text[row.line - 1]).toMatch(/\{$/);
    }
    expect(await idsIn(file('one.json', JSON.stringify(rawRow(a))))).toEqual([a]);
  });

  test("a dump whose cells the dataset server's viewer cut off is refused with row and column", async () => {
    const cut = [[], ['patch', 'PASS_TO_PASS'], []];
    const rows = [a, b, c].map((id, row_idx) => ({
      row_idx,
      row: rawRow(id),
      truncated_cells: cut[row_idx],
    }));
    expect(await problemsIn(file('cut.json', JSON.stringify({ features: [], rows })))).toEqual([
      {
        line: 1,
        message: expect.stringMatching(
          /row 1 \(.+\): the dataset viewer cut off patch, PASS_TO_PASS; download/,
        ),
      },
    ]);
    const whole = rows.map((row) => ({ ...row, truncated_cells: [] }));
    expect(await idsIn(file('whole.json', JSON.stringify({ rows: whole })))).toEqual([a, b, c]);
  });

  test.each([
    [{ num_rows_total: 500 }, /it is a page of 2 of 500 rows; download the dataset's Parquet files/],
    [
      { num_rows_total: 2, partial: true },
      /the dataset viewer has only a part of the rows, of which 2 are here/,
    ],
    [{ truncated: true }, /only a part of the rows/],
    [{ num_rows_total: 2, partial: false, truncated: false }, null],
  ])('a dump that is not the whole dataset says so: %j', async (more, told) => {
    const rows = [a, b].map((id, row_idx) => ({ row_idx, row: rawRow(id), truncated_cells: [] }));
    const result = await loadDataset(file('page.json', JSON.stringify({ features: [], rows, ...more })));
    expect(result.ok && result.dataset.rows).toHaveLength(2);
    const warnings = result.ok ? result.dataset.warnings : ['not loaded'];
    expect(warnings).toEqual(told === null ? undefined : [expect.stringMatching(told)]);
  });

  test('an array in a .jsonl and lines in a .json are read for what they are', async () => {
    expect(await idsIn(file('d.jsonl', JSON.stringify([rawRow(a), rawRow(b)], null, 1)))).toEqual([a, b]);
    expect(await idsIn(file('d.json', lines(rawRow(a), rawRow(b))))).toEqual([a, b]);
  });

  test('Parquet and JSONL of the same rows have the same row hashes', async () => {
    const rows = [rawRow(a, { difficulty: 'easy' }), rawRow(b, { difficulty: 'hard' })];
    const fromParquet = await loadDataset(file('d.parquet', parquet(rows)));
    const fromLines = await loadDataset(file('d.jsonl', lines(...rows)));
    if (!fromParquet.ok || !fromLines.ok) throw new Error('not loaded');
    const hashes = (r: typeof fromLines) => r.dataset.rows.map(readRowHash);
    expect(hashes(fromParquet)).toEqual(hashes(fromLines));
    expect(fromParquet.dataset.fileHash).not.toBe(fromLines.dataset.fileHash);
  });

  test('template syntax and megabytes of text stay literal [T-56]', async () => {
    const statement = `{{ 7*7 }} \${HOME} {% raw %} $(touch x) ${'é'.repeat(2_500_000)}`;
    const result = await loadDataset(file('d.jsonl', lines(rawRow(a, { problem_statement: statement }))));
    expect(result.ok && readInstance(result.dataset.rows[0]!).problem_statement === statement).toBe(true);
  });
});

describe('bad rows', () => {
  test('all are listed at once with their lines, and nothing is loaded', async () => {
    const { base_commit: _, ...noCommit } = rawRow('x__x-5');
    const bad = [
      rawRow(a),
      rawRow('../../x'),
      rawRow('$(touch /tmp/p)'),
      rawRow(a),
      noCommit,
      rawRow('x__x-6', { problem_statement: 7, FAIL_TO_PASS: 'no list' }),
      { repo: 'a/b' },
      'text',
      rawRow('x__x-9', { eval_type: 'sometimes' }),
      rawRow('x__x-10', { base_commit: '--output=/etc/passwd' }),
    ];
    const problems = await problemsIn(file('d.jsonl', `${lines(...bad)}{"instance_id": \n`));
    expect(problems.map((p) => p.line)).toEqual([2, 3, 4, 5, 6, 6, 7, 7, 7, 8, 9, 10, 11]);
    const at = (line: number) => problems.filter((p) => p.line === line).map((p) => p.message);
    expect(at(2)[0]).toMatch(/d\.jsonl line 2 \(\.\.\/\.\.\/x\): instance_id/);
    expect(at(4)).toEqual([expect.stringContaining('same instance_id as line 1')]);
    expect(at(5)).toEqual([expect.stringContaining('(x__x-5): base_commit is missing')]);
    expect(at(6)).toEqual([
      expect.stringContaining('FAIL_TO_PASS is neither a JSON list nor a Python list'),
      expect.stringContaining('problem_statement must be a string, not a number'),
    ]);
    expect(at(8)).toEqual([expect.stringContaining('the row is a string, not an object')]);
    expect(at(10)).toEqual([expect.stringContaining('is not a commit')]);
    expect(at(11)).toEqual([expect.stringContaining('not valid JSON')]);
  });

  test('lines of a pretty-printed array are those of the text', async () => {
    const text = JSON.stringify([rawRow(a), rawRow('b/b'), rawRow('c c')], null, 2);
    const expected = text.split('\n').flatMap((line, i) => (line === '  {' ? [i + 1] : []));
    expect((await problemsIn(file('d.json', text))).map((p) => p.line)).toEqual(expected.slice(1));
  });

  test('one key twice, or a key that contradicts its row, is found', async () => {
    const row = JSON.stringify({ ...rawRow(a), instance_id: undefined });
    expect(await problemsIn(file('d.json', `{"${a}": ${row},\n "${a}": ${row}}`))).toEqual([
      { line: 2, instanceId: a, message: expect.stringContaining('same instance_id as line 1') },
    ]);
    expect(await problemsIn(file('e.json', JSON.stringify({ other: rawRow(a) })))).toEqual([
      {
        line: 1,
        instanceId: a,
        message: expect.stringContaining('has the key "other", but its instance_id is'),
      },
    ]);
  });

  test.each([
    ['e.jsonl', '', /holds no instances/],
    ['e.json', '[]', /holds no instances/],
    ['e.json', '"x"', /neither a list nor an object/],
    ['e.json', '[{"a": 1},\n {"b": }]', /line 2: not valid JSON/],
    [
      'e.jsonl',
      Buffer.concat([Buffer.from(lines(rawRow(a))), Buffer.from([0xff, 0x0a])]),
      /line 2: not valid UTF-8/,
    ],
    ['e.parquet', 'PAR1 but not really PAR1', /not a readable Parquet file/],
    ['e.csv', 'x', /holds no instances/],
    ['e.tsv', 'x', /not a dataset file/],
  ])('%s with %s is refused', async (name, content, message) => {
    expect((await problemsIn(file(name, content))).map((p) => p.message).join('\n')).toMatch(message);
  });
});

describe('places', () => {
  test('links that lead in a circle are a problem of the dataset, in one sentence', async () => {
    symlinkSync('b', join(dir, 'a'));
    symlinkSync('a', join(dir, 'b'));
    const [problem] = await problemsIn(join(dir, 'a'));
    expect(problem?.message).toBe(`${join(dir, 'a')} cannot be read: its links lead in a circle`);
  });

  test('a directory with <split>.parquet: test by default, a named split, and a clear word when there is none', async () => {
    file('ds/test.parquet', parquet([rawRow(a)]));
    file('ds/dev.jsonl', lines(rawRow(b)));
    const ds = join(dir, 'ds');
    expect(await idsIn(ds)).toEqual([a]);
    expect(await idsIn(ds, { split: 'dev' })).toEqual([b]);
    expect(await problemsIn(ds, { split: 'train' })).toEqual([
      { message: expect.stringContaining('no split "train"; it holds dev, test') },
    ]);
  });

  test('without a test split the only one is taken, and of several none', async () => {
    file('one/dev.jsonl', lines(rawRow(a)));
    expect(await idsIn(join(dir, 'one'))).toEqual([a]);
    file('one/train.jsonl', lines(rawRow(b)));
    expect(await problemsIn(join(dir, 'one'))).toEqual([
      { message: expect.stringContaining('choose one with --split') },
    ]);
  });

  test('the hub layout with shards, in order; an incomplete set is refused', async () => {
    file('ds/data/test-00001-of-00002.parquet', parquet([rawRow(b)]));
    expect(await problemsIn(join(dir, 'ds'))).toEqual([
      { message: expect.stringContaining('1 of the files') },
    ]);
    file('ds/data/test-00000-of-00002.parquet', parquet([rawRow(a)]));
    expect(await idsIn(join(dir, 'ds'))).toEqual([a, b]);
    file('ds/data/test-00001-of-00002.parquet', parquet([rawRow(a)]));
    expect(await problemsIn(join(dir, 'ds'))).toEqual([
      { line: 1, instanceId: a, message: expect.stringContaining('same instance_id as row 1') },
    ]);
  });

  test('an alias in --data-dir, as a file of the official naming or as a folder', async () => {
    file('SWE-bench_Lite_test.parquet', parquet([rawRow(a)]));
    file('SWE-bench_Lite_dev.jsonl', lines(rawRow(b)));
    file('SWE-bench_Verified/data/test-00000-of-00001.parquet', parquet([rawRow(c)]));
    expect(await idsIn('lite', { dataDir: dir })).toEqual([a]);
    expect(await idsIn('lite', { dataDir: dir, split: 'dev' })).toEqual([b]);
    expect(await idsIn('verified', { dataDir: dir })).toEqual([c]);
    expect(await idsIn('princeton-nlp/SWE-bench_Verified', { dataDir: dir })).toEqual([c]);
    expect((await problemsIn('full', { dataDir: dir, env: { HF_HOME: dir } }))[0]!.message).toContain(
      'no local copy',
    );
  });

  test('an alias in the Hugging Face cache, with the revision that main names', async () => {
    const repo = 'hub/datasets--princeton-nlp--SWE-bench_Lite';
    const [old, current] = ['1'.repeat(40), '2'.repeat(40)];
    file(`${repo}/refs/main`, current);
    file(`${repo}/snapshots/${old}/data/test-00000-of-00001.parquet`, parquet([rawRow(a)]));
    const blob = file(`${repo}/blobs/abc`, parquet([rawRow(b)]));
    const snapshot = join(dir, repo, 'snapshots', current, 'data');
    mkdirSync(snapshot, { recursive: true });
    symlinkSync(blob, join(snapshot, 'test-00000-of-00001.parquet'));
    const result = await loadDataset('lite', { env: { HF_HOME: dir } });
    expect(result).toMatchObject({ ok: true, dataset: { source: 'lite', revision: current, split: 'test' } });
    expect(await idsIn('lite', { env: { HF_HUB_CACHE: join(dir, 'hub') }, revision: old })).toEqual([a]);
    expect(
      await idsIn('lite', {
        env: { HOME: '/nowhere', XDG_CACHE_HOME: '/nowhere' },
        dataDir: join(dir, 'hub'),
      }),
    ).toEqual([b]);
  });

  test('what cannot be found is named with every place that was looked at', async () => {
    const [problem] = await problemsIn('lite', { dataDir: dir, env: { HF_HOME: join(dir, 'hf') } });
    expect(problem!.message).toContain(join(dir, 'SWE-bench_Lite_<split>.parquet'));
    expect(problem!.message).toContain(join(dir, 'hf', 'hub', 'datasets--SWE-bench--SWE-bench_Lite'));
    expect(problem!.message).toContain('swebatch datasets pull lite');
    expect((await problemsIn(join(dir, 'nope.jsonl')))[0]!.message).toMatch(
      /no file or directory .*nope\.jsonl/,
    );
  });
});
