// Log shapes of SWE-rebench V2 that have names of SWE-bench's parsers. `rebench-golden.json` has made logs and the tests that the suite's own
// lib/agent/log_parsers.py (SWE-rebench/SWE-rebench-V2@c71902a8) calls passed in them; null where it raises.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ParserError } from '../../../src/grading/parsers/logParser.ts';
import { extendRegistry, OFFICIAL_PARSERS } from '../../../src/grading/parsers/parserRegistry.ts';
import { rebenchShape, withoutTiming } from '../../../src/suites/rebenchV2/rebenchV2.ts';
import { rememberBuilds } from '../../../src/suites/suites.ts';
import { normaliseRow, planGrading } from '../../support/suites.ts';

interface Golden {
  readonly id: string;
  readonly log: string;
  readonly passed: readonly string[] | null;
}
const golden = JSON.parse(
  readFileSync(join(import.meta.dirname, 'fixtures/rebench-golden.json'), 'utf8'),
) as Golden[];

function passedBy(id: string, log: string, harness: 'v5' | 'v4.1'): string[] {
  const statuses = rebenchShape(undefined, id)!(log, { instanceId: 'a__b-1', version: '', harness });
  const named = new Map([...statuses].map(([name, status]) => [withoutTiming(name), status]));
  return [...named].flatMap(([name, status]) => (status === 'PASSED' ? [name] : [])).toSorted();
}

describe.each(['v5', 'v4.1'] as const)('under %s', (harness) => {
  test("45 shapes say the same tests passed as the suite's own parsers", () => {
    expect(new Set(golden.map(({ id }) => id)).size).toBe(45);
    for (const { id, log, passed } of golden) {
      const where = `${id} on ${JSON.stringify(log)}`;
      if (passed === null) expect(() => passedBy(id, log, harness), where).toThrow(ParserError);
      else expect(passedBy(id, log, harness), where).toEqual(passed.toSorted());
    }
  });

  test.each([
    ['parse_log_gradle_custom', 'Suite > adds() PASSED (0.5s)', ['Suite > adds()']],
    ['parse_log_gradle_custom', 'Suite > waits\nPASSED', []],
    ['parse_log_react_pdf', 'PASS a (1s) x', ['a (1s) x']],
    ['parse_log_pytest', 'PASSED t.py::a\nXFAIL t.py::a', ['t.py::a']],
    ['parse_log_pytest_v2', 'PASSED t.py::a[x y]', ['t.py::a[x']],
    ['parse_log_sympy', 'test_last ok      [OK]', ['test_last']],
  ])('%s reads %j as its suite does, where harness 5 reads it in another way', (id, log, passed) => {
    expect(passedBy(id, log, harness)).toEqual(passed);
  });
});

test('shapes that the suite does not have are not known, whatever SWE-bench has; a parser of the user goes first', () => {
  for (const id of ['parse_log_eslint', 'parse_log_ocaml_v4', 'pytest', ''])
    expect(rebenchShape(extendRegistry({}), id)).toBeUndefined();
  const mine = () => new Map([['a', 'PASSED']]);
  expect(rebenchShape(extendRegistry({ parse_log_ocaml_v4: mine, parse_log_jq: mine }), 'parse_log_jq')).toBe(
    mine,
  );
  expect(rebenchShape(extendRegistry({ ocaml: mine }), 'ocaml')).toBe(mine);
  expect(rebenchShape(extendRegistry({}), 'parse_log_maven')).not.toBe(OFFICIAL_PARSERS.parse_log_maven);
});

test('a row with one of the other shapes is graded by the Python of the suite, in an image that is built; one with none of them is not', () => {
  const row = (log_parser: string) =>
    normaliseRow({
      ...{
        instance_id: 'o__r-1',
        repo: 'o/r',
        base_commit: 'main',
        problem_statement: 'x',
        FAIL_TO_PASS: ['a'],
      },
      ...{
        image_name: 'docker.io/swerebenchv2/o-r:1',
        install_config: { test_cmd: 'make test', log_parser },
      },
    });
  const told = ['parse_log_gotest', 'parse_log_ocaml_v4', 'parse_lue_nvim', 'parse_log_eslint'].map(
    (shape) => {
      const read = row(shape);
      if (!read.ok) throw new Error(read.messages.join());
      return [planGrading(read.instance).ok, rememberBuilds(read.instance).length];
    },
  );
  expect(told).toEqual([
    [true, 0],
    [true, 1],
    [true, 1],
    [false, 0],
  ]);
});
