// Predictions files of every tool: forms, rules of the harness, errors that name the place.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parsePredictions } from '../../src/formats/predictions.ts';
import { unknownIds } from '../../src/grading/recordPredictions.ts';
import { DATA, WITHOUT_DATA } from '../grading/officialData.ts';

const ok = (text: string, name: string) => {
  const read = parsePredictions(text, name);
  if (!read.ok) throw new Error(read.problems.join());
  return read;
};
const problems = (text: string, name: string) => {
  const read = parsePredictions(text, name);
  return read.ok ? [] : read.problems;
};
const one = { instance_id: 'a__b-1', model_name_or_path: 'm', model_patch: 'p\n' };

describe('forms', () => {
  test.each([
    ['object by id', 'preds.json', JSON.stringify({ 'a__b-1': one })],
    ['list', 'preds.json', JSON.stringify([one])],
    ['lines', 'all_preds.jsonl', `${JSON.stringify(one)}\n\n`],
    ['lines with a byte order mark', 'all_preds.jsonl', `\uFEFF${JSON.stringify(one)}\r\n`],
    ['extra keys', 'x.jsonl', JSON.stringify({ ...one, cost: 1, tests: ['x'] })],
  ])('%s', (_form, name, text) => {
    expect(ok(text, name).predictions).toEqual([one]);
    expect(ok(text, name).warnings).toEqual([]);
  });
  test('SWE-bench-Live keys by id alone; Pro says patch and prefix; Multi-SWE-bench has no id column', () => {
    expect(ok('{"a__b-1": {"model_patch": "x"}}', 'p.json').predictions[0]).toEqual({
      instance_id: 'a__b-1',
      model_name_or_path: 'None',
      model_patch: 'x',
    });
    expect(ok('[{"instance_id": "i", "patch": "x", "prefix": "gpt"}]', 'p.json').predictions[0]).toEqual({
      instance_id: 'i',
      model_name_or_path: 'gpt',
      model_patch: 'x',
    });
    expect(
      ok('{"org": "o", "repo": "r", "number": 7, "fix_patch": "x"}', 'p.jsonl').predictions[0]!.instance_id,
    ).toBe('o__r-7');
  });
  test("Python's NaN and Infinity in other keys do no harm, and stay text where they are text", () => {
    const line = JSON.stringify({ ...one, model_patch: 'x = "NaN"; y = -Infinity\n' }).replace(
      '{',
      '{"cost": NaN, "best": [-Infinity, Infinity], ',
    );
    for (const [text, name] of [
      [`${line}\n${line}`, 'p.jsonl'],
      [`[${line}]`, 'p.json'],
    ] as const)
      expect(ok(text, name).predictions).toEqual([{ ...one, model_patch: 'x = "NaN"; y = -Infinity\n' }]);
    expect(problems('{"a": NaN', 'p.jsonl')[0]).toMatch(/line 1 is not JSON/);
  });
  test('a null patch is an empty one; a row without any is an error with its line and id', () => {
    expect(
      ok('[{"instance_id": "i", "model_name_or_path": "m", "model_patch": null}]', 'p.json').predictions[0]!
        .model_patch,
    ).toBeNull();
    expect(problems('[{"instance_id": "i", "model_name_or_path": "m"}]', 'p.json')).toEqual([
      'p.json: line 1, entry 1 (i): there is no model_patch, patch or fix_patch',
    ]);
  });
});

describe('rules of the harness', () => {
  test('the inner id counts, the key does not', () => {
    const read = ok(JSON.stringify({ other: one }), 'p.json');
    expect(read.predictions).toEqual([one]);
    expect(read.warnings[0]).toMatch(/"other" calls itself "a__b-1"/);
  });
  test('a later duplicate wins, with a warning', () => {
    const read = ok(`${JSON.stringify(one)}\n${JSON.stringify({ ...one, model_patch: 'q' })}`, 'p.jsonl');
    expect(read.predictions).toEqual([{ ...one, model_patch: 'q' }]);
    expect(read.warnings).toEqual(['p.jsonl: line 2 repeats a__b-1; the later one counts']);
  });
  test('ids that the dataset lacks are found', () => {
    expect(unknownIds([one], new Set(['x']))).toEqual(['a__b-1']);
  });
});

test('every problem is said at once, with its place', () => {
  expect(
    problems(
      `${JSON.stringify(one)}\nnot json\n{"model_patch": "x"}\n{"instance_id": "i", "model_patch": 7}\n3`,
      'p.jsonl',
    ),
  ).toEqual([
    expect.stringMatching(/^p\.jsonl: line 2 is not JSON/),
    'p.jsonl: line 3 has no instance_id',
    'p.jsonl: line 4 (i): model_patch is a number, not text',
    'p.jsonl: line 5 is a number; each prediction must be an object',
  ]);
  expect(problems('x', 'p.txt')[0]).toMatch(/must be a \.json or \.jsonl file/);
  expect(problems('[]', 'p.json')[0]).toMatch(/no predictions/);
  expect(problems(JSON.stringify(one), 'p.json')[0]).toMatch(/single prediction/);
  expect(problems('"x"', 'p.json')[0]).toMatch(/a string/);
});

const aider = join(DATA, 'predictions', 'aider-lite');
test.skipIf(!existsSync(aider))(`a real file whose rows carry many extra keys (${WITHOUT_DATA})`, () => {
  for (const name of readdirSync(aider).filter((file) => file.endsWith('.jsonl'))) {
    const read = ok(readFileSync(join(aider, name), 'utf8'), name);
    expect(read.predictions.length).toBeGreaterThan(200);
    expect(read.predictions.every(({ model_name_or_path }) => model_name_or_path !== 'None')).toBe(true);
  }
});

test('half characters, as Python writes bytes that are not UTF-8, are told of', () => {
  const read = parsePredictions(
    '{"a__b-1": {"model_patch": "+\\udce9\\n"}, "a__b-2": {"model_patch": "\\ud83d\\ude00"}}',
    'p.json',
  );
  if (!read.ok) throw new Error(read.problems.join());
  expect(read.warnings).toEqual([expect.stringMatching(/^p\.json: line 1, "a__b-1".* half characters/)]);
});
