// Whatever a model, a repository or a file wrote, a report stays a report.
import { describe, expect, test } from 'vitest';
import { columns, shorten } from '../../src/base/text/columns.ts';
import { line, markdown, plain } from '../../src/base/text/inert.ts';
import {
  type Document,
  duration,
  money,
  pointDifference,
  pValue,
  rate,
  toJson,
} from '../../src/report/render/document.ts';
import { renderHtml, renderMarkdown, renderTerminal } from '../../src/report/render/renderers.ts';
import { proportion } from '../../src/report/statistics/proportions.ts';

const evil =
  '<script>alert(1)</script>"\'><img src=x onerror=y>|`[a](javascript:x)\u001b[31m\u001b]8;;http://x\u0007\u202e\u0000 @team\n# heading';
const document: Document = [
  { kind: 'heading', level: 1, text: evil },
  { kind: 'facts', rows: [[evil, evil]] },
  { kind: 'table', head: ['a', evil], align: ['left', 'right'], rows: [[evil, evil]] },
  { kind: 'text', text: evil },
  { kind: 'warning', text: evil },
  { kind: 'ids', label: evil, ids: [evil] },
  { kind: 'lines', lines: [evil, '````'] },
  { kind: 'bars', title: evil, max: 1, bars: [{ label: evil, value: 0.5, low: 0.2, high: 0.9, text: evil }] },
];

describe('HTML', () => {
  const page = renderHtml(document, evil);
  test('no tag or attribute comes from data', () => {
    const tags = new Set([...page.matchAll(/<\/?([a-z0-9!]+)/gi)].map((m) => m[1]!.toLowerCase()));
    for (const tag of ['script', 'img', 'a', 'iframe']) expect(tags.has(tag)).toBe(false);
    // Outside of quoted values no attribute of data's making is left.
    expect(page.replace(/"[^"]*"/g, '""')).not.toMatch(/<[^>]*\sonerror/);
    expect(page).toContain('&lt;script&gt;');
  });
  test('bars are table cells, so that a mail shows them; the picture adds the interval', () => {
    expect(page).toMatch(/<td width="110" [^>]*bgcolor="#2f6feb"/);
    expect(page).toContain('<svg');
    const none = renderHtml(
      [{ kind: 'bars', title: 't', max: 0, bars: [{ label: 'x', value: 1, text: '' }] }],
      't',
    );
    expect(none).not.toContain('NaN');
    expect(none).not.toContain('<svg');
  });
});

describe('Markdown', () => {
  const text = renderMarkdown(document);
  test('no table cell, link, tag, mention or fence comes from data', () => {
    const outside = text.replace(/^(`{4,})diff\n[\s\S]*?\n\1$/m, '');
    expect(outside).not.toMatch(/<script|<img/);
    expect(outside).not.toMatch(/(?<!\\)\[a\]/);
    expect(outside).not.toMatch(/@team/);
    const row = outside.split('\n').find((l) => l.startsWith('| a |'))!;
    expect(row.match(/(?<!\\)\|/g)).toHaveLength(3);
    expect(text).toMatch(/^`{5}diff$/m);
  });
  test('GitHub finds no mention, issue or address in what it rendered', () => {
    // It looks at the rendered text, where an escape or an entity is the character again.
    expect(markdown('see @team, #12, https://evil.example and www.evil.example')).toBe(
      'see @&#8203;team, \\#&#8203;12, https:&#8203;//evil.example and www&#8203;.evil.example',
    );
  });
  test('a heading in data does not start one', () => {
    expect(text.replace(/^(`{4,})diff[\s\S]*\1$/m, '').match(/^# /gm)).toHaveLength(1);
  });
});

describe('terminal', () => {
  test('no escape, control or direction change, and 80 columns', () => {
    const text = renderTerminal(document);
    expect(text).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202a-\u202e]/);
    expect(text.split('\n').filter((l) => [...l].length > 80)).toEqual([]);
  });
  test('a hyperlink escape leaves its text, a cut-off escape takes nothing else', () => {
    expect(plain('a\u001b]8;;http://evil\u0007b\u001b]8;;\u0007c')).toBe('abc');
    expect(plain('red \u001b[31')).toBe('red ');
    expect(line('a\r\nb\tc')).toBe('a b c');
    expect(shorten('a__long-123', 6)).toBe('a__lo…');
  });
  test('characters of two columns count as two, combining ones as none', () => {
    expect([columns('模型'), columns('e\u0301'), columns('🚀x')]).toEqual([4, 1, 3]);
    expect(shorten('模型模型', 5)).toBe('模型…');
    const shown = renderTerminal([
      { kind: 'heading', level: 1, text: '模'.repeat(60) },
      {
        kind: 'table',
        head: ['model', 'n'],
        align: ['left', 'right'],
        rows: [
          ['模'.repeat(35), '7'],
          ['plain', '8'],
        ],
      },
    ]);
    const lines = shown.split('\n').filter(Boolean);
    expect(lines.filter((l) => columns(l) > 80)).toEqual([]);
    const [wide, plainRow] = lines.slice(-2);
    expect(columns(wide!)).toBe(columns(plainRow!));
  });
  test('where the words of a table do not fit beside each other, each cell has a line, and nothing is lost', () => {
    const ids = [1, 2].map((n) => `${'scikit-learn__'.repeat(7)}scikit-learn-2574${n}`);
    const shown = renderTerminal([
      {
        kind: 'table',
        head: ['instance', 'rules'],
        align: ['left', 'left'],
        rows: ids.map((id) => [id, 'x y']),
      },
    ]);
    expect(shown.split('\n').filter((l) => columns(l) > 80)).toEqual([]);
    expect(shown.replace(/\s/g, '')).toBe(ids.map((id) => `${id}rulesxy`).join(''));
  });
  test('a cell that does not fit goes on in the next line, by whole words; an interval stays whole', () => {
    const words = 'one two three four five six seven eight nine ten eleven twelve thirteen fourteen';
    const shown = renderTerminal([
      {
        kind: 'table',
        head: ['text', 'rate'],
        align: ['left', 'right'],
        rows: [[words, '64.3 % [38.8, 83.7]']],
      },
    ]);
    const [, first, second] = shown.split('\n');
    expect(first).toContain('64.3 % [38.8, 83.7]');
    expect(`${first!.split('  ')[1]} ${second!.trim()}`).toBe(words);
  });
  test('numbers are never cut, the widest text is', () => {
    const text = renderTerminal([
      { kind: 'table', head: ['id', 'n'], align: ['left', 'right'], rows: [['x'.repeat(200), '123456789']] },
    ]);
    expect(text).toContain('123456789');
    expect(text.split('\n').every((l) => [...l].length <= 80)).toBe(true);
  });
});

describe('numbers', () => {
  test('a proportion always carries its n and its interval', () => {
    expect(rate(proportion(7, 20))).toBe('7/20 = 35.0 % [18.1, 56.7]');
    expect(rate(proportion(0, 0))).toBe('0/0 –');
  });
  test('differences carry a sign, small p-values do not become 0', () => {
    expect(pointDifference(0.018, { low: -0.013793, high: 0.049753 })).toBe('+1.8 pp [-1.4, +5.0]');
    expect(pointDifference(-0.0001, null)).toBe('0.0 pp');
    expect(pValue(4.4e-6)).toBe('p < .0001');
    expect(pValue(0.0568879)).toBe('p = .0569');
  });
  test('money that is partly unknown is a lower bound', () => {
    expect(money({ nano: 1_500_000_000, atLeast: true })).toBe('≥ $1.50');
    expect(money({ nano: null, atLeast: true })).toBe('unknown');
  });
  test('durations', () => {
    expect([9_940, 59_400, 61_000, 3_661_000, null].map(duration)).toEqual([
      '9.9 s',
      '59 s',
      '1 m 01 s',
      '1 h 01 m',
      '–',
    ]);
  });
  test('JSON has snake_case keys, and an unbounded interval is null', () => {
    expect(toJson({ costPerResolved: [{ high: Number.POSITIVE_INFINITY }], text: '\ud800' })).toEqual({
      cost_per_resolved: [{ high: null }],
      text: '\ufffd',
    });
  });
});

test('a line is not broken in an interval', () => {
  const text = `${'x'.repeat(65)} 0/3 = 0.0 % [0.0, 56.1] and`;
  expect(renderTerminal([{ kind: 'text', text }])).toContain('[0.0, 56.1]');
});

test('a line is not broken between a number and its unit', () => {
  const text = renderTerminal([{ kind: 'text', text: `${'word '.repeat(14)}66.7 % [1, 2]` }]);
  expect(text).toMatch(/66\.7 %/);
  expect(renderTerminal([{ kind: 'text', text: 'a  b %d c' }])).toBe('a b %d c\n');
});
