// Filters without a syntax: what is chosen narrows, and each facet counts what its values would leave.
import { describe, expect, test } from 'vitest';
import {
  type Facet,
  facetCounts,
  facetTest,
  readChosen,
  writeChosen,
} from '../../src/viewer/documents/facets.ts';

interface Row {
  verdict: string;
  repo: string;
  flags: string[];
}
const FACETS: readonly Facet<Row>[] = [
  { id: 'verdict', label: 'Verdict', values: (row) => [row.verdict] },
  { id: 'repo', label: 'Repository', values: (row) => [row.repo] },
  { id: 'flags', label: 'Flags', values: (row) => row.flags },
];
const ROWS: readonly Row[] = [
  { verdict: 'resolved', repo: 'django/django', flags: [] },
  { verdict: 'unresolved', repo: 'django/django', flags: ['oom', 'retried'] },
  { verdict: 'unresolved', repo: 'sympy/sympy', flags: ['oom'] },
  { verdict: 'infra', repo: 'sympy/sympy', flags: [] },
];
const chosenBy = (text: string) => readChosen(FACETS, new URLSearchParams(text));
const left = (text: string) =>
  ROWS.filter(facetTest(FACETS, chosenBy(text))).map((row) => `${row.verdict} ${row.repo}`);

describe('facets', () => {
  test('values of one facet widen, facets narrow each other', () => {
    expect(left('')).toHaveLength(4);
    expect(left('verdict=resolved|infra')).toEqual(['resolved django/django', 'infra sympy/sympy']);
    expect(left('verdict=unresolved&repo=sympy/sympy')).toEqual(['unresolved sympy/sympy']);
    expect(left('flags=retried')).toEqual(['unresolved django/django']);
    expect(left('verdict=nobody has this')).toEqual([]);
  });

  test('a facet counts what each of its values would leave, given the others', () => {
    const counts = facetCounts(ROWS, FACETS, chosenBy('repo=sympy/sympy&verdict=unresolved'));
    expect(counts.get('verdict')).toEqual([
      { value: 'infra', n: 1 },
      { value: 'resolved', n: 0 },
      { value: 'unresolved', n: 1 },
    ]);
    expect(counts.get('repo')).toEqual([
      { value: 'django/django', n: 1 },
      { value: 'sympy/sympy', n: 1 },
    ]);
    expect(counts.get('flags')).toEqual([
      { value: 'oom', n: 1 },
      { value: 'retried', n: 0 },
    ]);
  });

  test('a value stays to be pressed where what is typed leaves none of its rows', () => {
    const typed = ROWS.filter((row) => row.verdict === 'resolved');
    expect(facetCounts(typed, FACETS, chosenBy(''), ROWS).get('verdict')).toEqual([
      { value: 'infra', n: 0 },
      { value: 'resolved', n: 1 },
      { value: 'unresolved', n: 0 },
    ]);
  });

  test('a chosen value that no row has any more can still be taken back', () => {
    expect(facetCounts([], FACETS, chosenBy('verdict=gone')).get('verdict')).toEqual([
      { value: 'gone', n: 0 },
    ]);
  });

  test('values with the signs of the address, and names of every object, come back as they were', () => {
    const hostile = ['a|b', '%7C', '100%', '__proto__', '&repo=x', '漢 "q"', '%25'];
    const query = new URLSearchParams({ verdict: writeChosen(hostile) });
    expect([...readChosen(FACETS, new URLSearchParams(query.toString())).get('verdict')!]).toEqual(hostile);
    const rows = hostile.map((verdict) => ({ verdict, repo: 'constructor', flags: [] }));
    expect(rows.filter(facetTest(FACETS, readChosen(FACETS, query)))).toHaveLength(hostile.length);
  });
});
