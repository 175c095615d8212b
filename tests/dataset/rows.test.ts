// One Instance out of the forms that the official datasets and their relatives use.

import { describe, expect, test } from 'vitest';
import { parsePythonLiteral } from '../../src/base/python/literal.ts';
import { imageOf } from '../../src/dataset/instance.ts';
import { gradingHashOf, parseTestIds, rowHashOf } from '../../src/dataset/read/row.ts';
import fc from '../support/property.ts';
import { normaliseRow } from '../support/suites.ts';
import { instanceOf, rawRow } from './rows.ts';

describe('FAIL_TO_PASS', () => {
  const wanted = ['a::b[x-1]', `it's "quoted"`];
  test.each([
    ['a list', wanted],
    ['JSON text', JSON.stringify(wanted)],
    ['a Python list', `['a::b[x-1]', 'it\\'s "quoted"']`],
    ['a Python tuple with a trailing comma', `('a::b[x-1]', "it's \\"quoted\\"",)`],
    ['a map keyed by test', { 'a::b[x-1]': { run: 'PASS' }, 'it\'s "quoted"': null }],
    ['JSON text of a map', JSON.stringify({ 'a::b[x-1]': 1, 'it\'s "quoted"': 2 })],
  ])('%s', (_, value) => {
    expect(parseTestIds(value)).toEqual({ ok: true, ids: wanted });
  });

  test.each([[undefined], [null], [''], ['[]'], [[]]])('%j means no tests', (value) => {
    expect(parseTestIds(value)).toEqual({ ok: true, ids: [] });
  });

  test.each([
    [5],
    [true],
    ['test_a'],
    ['"test_a"'],
    ['[1]'],
    [[null]],
    ['["a"'],
    ["__import__('os').system('x')"],
  ])('%j is refused', (value) => {
    expect(parseTestIds(value)).toMatchObject({ ok: false });
  });

  test('the lower-case spelling of SWE-bench Pro is read', () => {
    const { FAIL_TO_PASS: _, PASS_TO_PASS: __, ...row } = rawRow('a__a-1');
    expect(normaliseRow({ ...row, fail_to_pass: "['x']", pass_to_pass: '["y"]' })).toMatchObject({
      instance: { FAIL_TO_PASS: ['x'], PASS_TO_PASS: ['y'], extra: {} },
    });
  });
});

describe('Python literals', () => {
  test.each([
    ['[]', []],
    ["['a' 'b', u'c', r'\\d']", ['ab', 'c', '\\d']],
    ["'\\x41\\u00e9\\U0001F600\\101\\q\\\n!'", 'Aé😀A\\q!'],
    ["'''a\n'b'''", "a\n'b"],
    ['("a")', 'a'],
    ['("a",)', ['a']],
    ["{'a': [1, -2.5e3, None], 'b': True}", { a: [1, -2500, null], b: true }],
    ["{'a', 'b'}", ['a', 'b']],
  ])('%s', (text, value) => {
    expect(parsePythonLiteral(text)).toEqual(value);
  });

  test('reads back any list of strings written with Python escapes', () => {
    const repr = (s: string) =>
      `'${s.replace(/[\\'\n\r]/g, (c) => ({ '\n': '\\n', '\r': '\\r' })[c] ?? `\\${c}`)}'`;
    fc.assert(
      fc.property(fc.array(fc.string({ unit: 'binary' })), (list) => {
        expect(parsePythonLiteral(`[${list.map(repr).join(', ')}]`)).toEqual(list);
      }),
    );
  });

  test('ends on hostile text: deep nesting, half strings, calls', () => {
    for (const text of ['['.repeat(100_000), "['a", "'\\x4", 'f()', '[1', '{1: 2, 3}', '[a]', "'a\nb'", ''])
      expect(() => parsePythonLiteral(text)).toThrow(/at character/);
  });
});

describe('relatives of SWE-bench', () => {
  test.each([
    [{ image: 'reg/img:1' }, 'reg/img:1'],
    [{ image_name: 'jyangballin/swesmith.x86_64.x_1776_y.abc' }, 'jyangballin/swesmith.x86_64.x_1776_y.abc'],
    [{ docker_image: 'swerebench/x' }, 'swerebench/x'],
    [{ dockerhub_tag: 'tag-1' }, 'jefzda/sweap-images:tag-1'],
    [{ test_cmds: ['pytest'] }, 'starryzhang/sweb.eval.x86_64.acme_1776_widgets-5'],
    [{}, 'docker.io/swebench/sweb.eval.x86_64.acme_1776_widgets-5:latest'],
    [{ image: '' }, 'docker.io/swebench/sweb.eval.x86_64.acme_1776_widgets-5:latest'],
  ])('%j gives the image %s [M-46]', (more, image) => {
    expect(imageOf(instanceOf('Acme__Widgets-5', more))).toBe(image);
  });

  test('Multi-SWE-bench: id, commit, tests and image are put together', () => {
    const row = {
      org: 'Cli',
      repo: 'cli',
      number: 495,
      title: 'PR title',
      body: 'PR body',
      base: { label: 'x', ref: 'trunk', sha: 'abc1234' },
      resolved_issues: [{ number: 1, title: 'Issue', body: 'It breaks' }],
      fix_patch: 'diff',
      test_patch: 'tdiff',
      fixed_tests: { T1: { run: 'NONE' } },
      f2p_tests: { T1: {} },
      p2p_tests: { T2: {} },
    };
    expect(normaliseRow(row)).toMatchObject({
      ok: true,
      instance: {
        instance_id: 'Cli__cli-495',
        repo: 'Cli/cli',
        base_commit: 'abc1234',
        problem_statement: 'Issue\nIt breaks',
        patch: 'diff',
        FAIL_TO_PASS: ['T1'],
        PASS_TO_PASS: ['T2'],
        image: 'mswebench/cli_m_cli:pr-495',
      },
    });
  });

  test('SWE-bench Pro: quoted prose is read and the prompt has requirements and interface', () => {
    const pro = instanceOf('instance_a__b-1-vnan', {
      dockerhub_tag: 't',
      problem_statement: '"Fix \\"it\\""',
      requirements: 'R',
      interface: 'I',
    });
    expect(pro.problem_statement).toBe('Fix "it"\n\nRequirements:\nR\n\nNew interfaces introduced:\nI');
  });

  test('SWE-smith alone may come without a commit', () => {
    const { base_commit: _, ...row } = rawRow('x__y.abc-1');
    expect(normaliseRow({ ...row, repo: 'swesmith/x__y.abc' })).toMatchObject({ ok: true });
    expect(normaliseRow(row)).toMatchObject({ ok: false });
  });

  test('other columns are kept untouched in extra', () => {
    expect(instanceOf('a__a-1', { meta: { is_lite: true }, n: 3 }).extra).toEqual({
      meta: { is_lite: true },
      n: 3,
    });
  });
});

describe('hashes', () => {
  test('the row hash ignores the order of columns and the form of the tests, and sees any change', () => {
    const a = instanceOf('a__a-1', { x: 1, y: { p: 1, q: 2 } });
    const b = normaliseRow(
      Object.fromEntries(Object.entries(rawRow('a__a-1', { y: { q: 2, p: 1 }, x: 1 })).reverse()),
    );
    const c = instanceOf('a__a-1', { x: 1, y: { p: 1, q: 2 }, FAIL_TO_PASS: ['test_a'] });
    expect(b.ok && rowHashOf(b.instance)).toBe(rowHashOf(a));
    expect(rowHashOf(c)).toBe(rowHashOf(a));
    expect(rowHashOf(instanceOf('a__a-1', { x: 2, y: { p: 1, q: 2 } }))).not.toBe(rowHashOf(a));
  });

  test('the grading hash changes with what decides a verdict only', () => {
    const hash = (more: Record<string, unknown>) => gradingHashOf(instanceOf('a__a-1', more));
    expect(hash({ hints_text: 'new', difficulty: 'easy' })).toBe(hash({}));
    for (const more of [
      { eval_script: 'x' },
      { FAIL_TO_PASS: ['b'] },
      { PASS_TO_PASS: ['b'] },
      { test_patch: 'd' },
    ])
      expect(hash(more)).not.toBe(hash({}));
  });
});

describe('images', () => {
  test.each([
    '127.0.0.1:9/../../v2/x',
    'evil.example/../../x',
    '../x',
    'a/../b',
    'x y',
    'a/UPPER',
    'a:b:c',
    'a@sha256:short',
    'a:tag\n',
    '/x',
    'https://registry.example/x',
    `a/${'b'.repeat(2000)}`,
  ])('%j is no name', (image) => {
    for (const column of ['image', 'image_name', 'docker_image'])
      expect(normaliseRow(rawRow('a__a-1', { [column]: image }))).toMatchObject({
        ok: false,
        messages: [expect.stringMatching(/^image .* is not an image name: /)],
      });
  });

  test.each([
    'x',
    'a/b',
    'ghcr.io/a/b:t',
    'localhost:5000/a',
    `a/b@sha256:${'0'.repeat(64)}`,
    'a__b/c_1776_d:v1.0',
  ])('%j is a name', (image) => {
    expect(normaliseRow(rawRow('a__a-1', { image }))).toMatchObject({ ok: true });
  });

  // The same name is asked for on the network, whether a row says it or an id leads to it.
  test.each(['a..b-1', 'a-', 'a.', '_a', 'a.-b', 'a__b-1.', '.a', 'a_._b'])(
    'the id %s leads to no name',
    (id) => {
      expect(normaliseRow(rawRow(id))).toMatchObject({
        ok: false,
        messages: [`instance_id "${id}" makes no image name, and the row names no image`],
      });
      expect(normaliseRow(rawRow(id, { image: 'reg/img:1' }))).toMatchObject({ ok: true });
    },
  );
});

test('a column about a task that is no text refuses no row: it stays with the other columns', () => {
  const difficulty = { files: 2, hunks: 3, lines: 9 };
  const read = normaliseRow(rawRow('a__a-1', { difficulty, created_at: 1_700_000_000 }));
  expect(read).toMatchObject({
    ...{ ok: true, odd: ['created_at is a number', 'difficulty is an object'] },
    instance: { difficulty: '', extra: { difficulty, created_at: 1_700_000_000 } },
  });
  expect(normaliseRow(rawRow('a__a-1', { version: 3 }))).toMatchObject({
    ...{ ok: false, messages: ['version must be a string, not a number'] },
  });
});
