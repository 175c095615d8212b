// The bash block: golden cases of the published regex, and what a configured one may be.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { agentConfigSchema } from '../../src/agent/agentConfig.ts';
import { bashBlock, isAction } from '../../src/agent/loop/protocol.ts';
import { parseJsonAsPython } from '../../src/base/python/json.ts';
import { strip } from '../../src/base/python/text.ts';
import { cpuMs } from '../support/cpuTime.ts';
import fc from '../support/property.ts';
import { reply } from './fakes.ts';

const cases = JSON.parse(
  readFileSync(join(import.meta.dirname, 'fixtures', 'v1-action-regex.json'), 'utf8'),
) as {
  content: string;
  actions: string[];
}[];
const protocol = bashBlock(agentConfigSchema.parse({}).action_regex);

describe('golden cases of the action regex [M-22, S-16]', () => {
  test.each(cases)('$content', ({ content, actions }) => {
    const turn = protocol.parse(reply(content));
    expect(turn.found).toEqual(actions);
    expect(turn.calls.filter(isAction).map((c) => c.command)).toEqual(actions.length === 1 ? actions : []);
    expect(turn.error === null).toBe(actions.length === 1);
  });
  test('all 21 are here [M-63]', () => expect(cases).toHaveLength(21));
});

test('the regex keeps no state between replies', () => {
  for (let i = 0; i < 3; i++) expect(protocol.parse(reply('```bash\nls\n```')).error).toBeNull();
});
test('a regex without a group takes the whole match', () => {
  expect(bashBlock('<run>.*?</run>').parse(reply('a <run>ls\npwd</run>')).found).toEqual([
    '<run>ls\npwd</run>',
  ]);
});
test('dot matches newlines, as with DOTALL', () => {
  expect(bashBlock('<c>(.*?)</c>').parse(reply('<c>a\nb</c>')).found).toEqual(['a\nb']);
});

describe('a reply of any size is read in one pass', () => {
  const published = bashBlock('```mswea_bash_command\\s*\\n(.*?)\\n```');
  test.each([
    ['newlines after an open fence', protocol, `\`\`\`bash${'\n'.repeat(100_000)}x`],
    ['fences that never close', protocol, '```bash\nx '.repeat(300_000)],
    ['a published regex', published, `\`\`\`mswea_bash_command${'\n'.repeat(100_000)}x`],
    ["a user's regex", bashBlock('<c>\\s*(.*?)\\s*</c>'), `<c>${' '.repeat(100_000)}`],
    ["a user's nested quantifier", bashBlock('<c>((?:a+b?)+)</c>'), `<c>${'a'.repeat(40)}`],
  ])('%s', (_what, { parse }, content) => {
    expect(cpuMs(() => expect(parse(reply(content)).found).toEqual([]))).toBeLessThan(500);
  });
  test('the scan of fences finds what the expression says', () => {
    const regex = agentConfigSchema.parse({}).action_regex;
    const piece = fc.constantFrom('```bash', '```', '\n', '\n```', ' ', '\r', 'ls', '`', '\u2028', 'bash');
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 14 }), (pieces) => {
        const text = pieces.join('');
        const expected = [...text.matchAll(new RegExp(regex, 'gs'))].map((m) => strip(m[1]!));
        expect(protocol.parse(reply(text)).found).toEqual(expected);
      }),
      { numRuns: 3000 },
    );
  });
});

describe("CPython's messages for bad JSON", () => {
  test.each([
    ['{"command": "ls', 'Unterminated string starting at: line 1 column 13 (char 12)'],
    ['', 'Expecting value: line 1 column 1 (char 0)'],
    ['{', 'Expecting property name enclosed in double quotes: line 1 column 2 (char 1)'],
    ["{'a': 1}", 'Expecting property name enclosed in double quotes: line 1 column 2 (char 1)'],
    ['{"a" 1}', "Expecting ':' delimiter: line 1 column 6 (char 5)"],
    ['{"a": 1 "b"}', "Expecting ',' delimiter: line 1 column 9 (char 8)"],
    ['{"a": }', 'Expecting value: line 1 column 7 (char 6)'],
    ['{"a": 1}\n x', 'Extra data: line 2 column 2 (char 10)'],
    ['{"a": "b\nc"}', 'Invalid control character at: line 1 column 9 (char 8)'],
    ['{"a": "\\x"}', 'Invalid \\escape: line 1 column 8 (char 7)'],
    ['{"a": "😀\\u12"}', 'Invalid \\uXXXX escape: line 1 column 10 (char 9)'],
    ['[1, 2', "Expecting ',' delimiter: line 1 column 6 (char 5)"],
    ['tru', 'Expecting value: line 1 column 1 (char 0)'],
  ])('%s', (text, message) => {
    expect(parseJsonAsPython(text)).toEqual({ ok: false, message });
  });
  test('good JSON parses as JSON.parse does', () => {
    for (const text of ['{"a": [1, -2.5e3, "x\\n\\u00e9", null, true, {}]}', ' "s" ', '[]', '0'])
      expect(parseJsonAsPython(text)).toEqual({ ok: true, value: JSON.parse(text) });
  });
});
