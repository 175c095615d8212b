import { describe, expect, test } from 'vitest';
import { csvCell, toCsv } from '../../src/base/text/inert.ts';
import { compileFilter, type Fields, type FieldValue } from '../../src/viewer/documents/filter.ts';
import fc from '../support/property.ts';

interface Row {
  id: string;
  steps: number | null;
  flags: string[];
}
const FIELDS: Fields<Row> = new Map<string, (row: Row) => FieldValue>([
  ['id', (row) => row.id],
  ['steps', (row) => row.steps],
  ['flags', (row) => row.flags],
]);
const ROWS: Row[] = [
  { id: 'django__django-1', steps: 12, flags: [] },
  { id: 'django__django-2', steps: 90, flags: ['network fetch'] },
  { id: 'sympy__sympy-3', steps: null, flags: ['oom'] },
];
const found = (text: string) => {
  const filter = compileFilter(text, FIELDS, (row) => row.id);
  return {
    ids: ROWS.filter(filter.test)
      .map((row) => row.id.slice(-1))
      .join(''),
    problems: filter.problems,
  };
};

describe('filter box', () => {
  test.each([
    ['', '123'],
    ['django', '12'],
    ['DJANGO steps>50', '2'],
    ['steps<=12', '1'],
    ['steps>1m', '2'],
    ['-django', '3'],
    ['flags:any', '23'],
    ['flags:none', '1'],
    ['-flags:any django', '1'],
    ['flags:"network fetch"', '2'],
    ['flags:oom|network', '23'],
    ['id=sympy__sympy-3', '3'],
    ['id!=sympy__sympy-3', '12'],
    ['id=sympy', ''],
    ['steps=90', '2'],
  ])('%s', (text, ids) => {
    expect(found(text)).toEqual({ ids, problems: [] });
  });

  test('an unknown field and a missing number are said, and narrow nothing', () => {
    expect(found('colour:red').ids).toBe('123');
    expect(found('colour:red').problems[0]).toContain('no field "colour"; there are id, steps, flags');
    expect(found('steps>many').problems[0]).toContain('needs a number');
  });

  test('names of Object.prototype are fields nobody has', () => {
    for (const name of ['constructor', '__proto__', 'toString'])
      expect(found(`${name}:x`).problems).toHaveLength(1);
  });

  test('no text makes it throw', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        const filter = compileFilter(text, FIELDS, (row) => row.id);
        for (const row of ROWS) expect(typeof filter.test(row)).toBe('boolean');
      }),
    );
  });
});

describe('csv', () => {
  test('quotes what must be quoted and leaves numbers alone', () => {
    const csv = toCsv(
      [
        { header: 'id', value: (row: Row) => row.id },
        { header: 'steps', value: (row: Row) => row.steps },
        { header: 'flags', value: (row: Row) => row.flags },
      ],
      [{ id: 'a,"b"\nc', steps: -1, flags: ['x', 'y'] }, ROWS[2]!],
    );
    expect(csv).toBe('id,steps,flags\r\n"a,""b""\nc",-1,x y\r\nsympy__sympy-3,,oom\r\n');
  });

  test('a text that a spreadsheet would run is made text', () => {
    for (const evil of ['=1+1', '+1', '-1', '@SUM(A1)', '\t=1', '=HYPERLINK("http://x")'])
      expect(csvCell(evil).replace(/^"/, '')).toMatch(/^'/);
  });
});
