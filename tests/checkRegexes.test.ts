// The check of regular expressions finds a planted one, wherever it stands.
import { expect, test } from 'vitest';
import { regexesOf, superLinear } from '../scripts/checkRegexes.ts';

test('literals and expressions made in mid-run are found', () => {
  const text =
    "const a = /x+$/g;\nconst b = new RegExp('ok');\nfunction c(d: string) {\n  return new RegExp(d);\n}\n";
  const { literals, made } = regexesOf('src/planted.ts', text);
  expect(literals).toEqual([{ where: 'src/planted.ts:1', source: 'x+$', flags: 'g' }]);
  expect(made).toEqual([{ where: 'src/planted.ts:4', source: 'd', flags: '' }]);
});

test.each([
  ['\\s*$', 'polynomial'],
  ['(a|a)*b', 'exponential'],
])('%s is refused as %s', (source, why) => {
  expect(superLinear({ source, flags: '' })).toContain(why);
});
test.each(['^a*$', '"[^"]*"'])('%s is linear', (source) => {
  expect(superLinear({ source, flags: '' })).toBeNull();
});
