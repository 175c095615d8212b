// A pattern of JavaScript read by RE2: it finds what V8 finds, and what it cannot do is refused with the reason.
import { describe, expect, test } from 'vitest';
import { linearProblem, linearRegex } from '../../src/base/regex/linearRegex.ts';
import fc from '../support/property.ts';

const byV8 = (source: string, flags: string, text: string) =>
  [...text.matchAll(new RegExp(source, `g${flags}`))].map((m) => ({
    index: m.index,
    text: m[0],
    group: m[1] ?? null,
  }));

const PATTERNS = [
  ['<a>(.*?)</a>', 's'],
  ['<a>(.*?)</a>', ''],
  ['a(\\s*)b', ''],
  ['\\S+', ''],
  ['[^\\S\\n]+(x)?', ''],
  ['[\\w.-]+', ''],
  ['[\\w-a]', ''],
  ['[a-\\d]', ''],
  ['[]|b', ''],
  ['[^]b', ''],
  ['[\\b\\]^[a]+', ''],
  ['\\ba\\B|\\u0062|\\x61|\\cJ', ''],
  ['a{2,}|b{1}|{|}|]|a{x', ''],
  ['(?<name>a)b?', ''],
  ['(?:a|b)+$', ''],
  ['^[ab]', ''],
  ['(?<=a)b|(?<!a)<', ''],
  ['b(?![\\s\\S])', ''],
  ['(?<![\\s\\S])a', ''],
  ['A|B', 'i'],
  ['[^a]', ''],
  ['\\D+|\\W|[\\D]', ''],
  ['\\-\\/\\.|\\a', ''],
  ['é|\\😀', ''],
] as const;

describe.each(PATTERNS)('/%s/%s', (source, flags) => {
  test('finds what JavaScript finds', () => {
    const piece = fc.constantFrom(
      ...[
        'a',
        'b',
        'A',
        '<a>',
        '</a>',
        ' ',
        '\n',
        '\r',
        '\ufeff',
        '\u2028',
        '\x85',
        '\v',
        'x',
        '{',
        '}',
        ']',
        '[',
        '^',
      ],
      ...['-', '.', '/', '\\', '\b', 'é', '1', '_', '-/.', '\0'],
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
        const text = pieces.join('');
        expect(linearRegex(source, flags).all(text, 100)).toEqual(byV8(source, flags, text));
      }),
      { numRuns: 200 },
    );
  });
});

test('positions are those of JavaScript also behind an emoji', () => {
  expect(linearRegex('x(.)').search('😀😀x😀')).toEqual({ index: 4, text: 'x😀', group: '😀' });
});

test.each([
  ['a(?=b)', 'a look-ahead'],
  ['a(?!b)', 'a look-ahead'],
  ['(a)\\1', 'a back reference'],
  ['(?<x>a)\\k<x>', 'a named back reference'],
  ['a{2000}', 'cannot be matched in linear time'],
  ['(', 'is not a regular expression'],
])('%s is refused: %s', (source, reason) => {
  expect(linearProblem(source)).toContain(reason);
});
