// Log shapes of Multi-SWE-bench. `multi-golden.json` has made logs and what the suite's own parse_log of each repository
// (multi-swe-bench/multi-swe-bench@24f493f8) says passed, failed and was skipped in them; null where it raises.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ParserError } from '../../../src/grading/parsers/logParser.ts';
import { shapeOf } from '../../../src/suites/multiSwe/shapes.ts';

interface Golden {
  readonly repo: string;
  readonly log: string;
  readonly sets: readonly (readonly string[])[] | null;
}
const golden = JSON.parse(
  readFileSync(join(import.meta.dirname, 'fixtures/multi-golden.json'), 'utf8'),
) as Golden[];

const sorted = (sets: Iterable<Iterable<string>>) => [...sets].map((names) => [...names].toSorted());
function read(repo: string, log: string) {
  const { passed, failed, skipped } = shapeOf(repo, 1)!(log);
  return sorted([passed, failed, skipped]);
}

test("37 repositories: the same tests passed, failed and were skipped as by the suite's own parsers", () => {
  expect(new Set(golden.map(({ repo }) => repo)).size).toBe(37);
  for (const { repo, log, sets } of golden) {
    const where = `${repo} on ${JSON.stringify(log)}`;
    if (sets === null) expect(() => read(repo, log), where).toThrow(ParserError);
    else expect(read(repo, log), where).toEqual(sorted(sets));
  }
});

test('fastjson2 takes no colours off, and gson begins at the ninth character', () => {
  const counts = 'Tests run: 1, Failures: 0, Errors: 0, Skipped: 0, Time elapsed: 0.1 s';
  expect(read('apache/dubbo', `\x1b[1mTests run: 1\x1b[m${counts.slice(12)} - in A`)).toEqual([
    ['A'],
    [],
    [],
  ]);
  expect(read('alibaba/fastjson2', `\x1b[1mTests run: 1\x1b[m${counts.slice(12)} - in A`)).toEqual([
    [],
    [],
    [],
  ]);
  expect(read('google/gson', `Running A\n${counts}ec`)).toEqual([[], [], []]);
  expect(read('google/gson', `12345678Running A\n${counts}ec`)).toEqual([['A'], [], []]);
});
