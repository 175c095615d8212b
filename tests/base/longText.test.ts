// Megabytes of the worst stay as cheap as they are long, and come out as short texts do.
import { describe, expect, test } from 'vitest';
import { OutsideRootError, pathInside } from '../../src/base/files/pathInside.ts';
import { parseJsonAsPython, pythonLine } from '../../src/base/python/json.ts';
import { parseFilter } from '../../src/base/python/regex.ts';
import { repr } from '../../src/base/python/values.ts';
import { linearProblem } from '../../src/base/regex/linearRegex.ts';
import { asciiOnly, replaceUnits, unitsOf } from '../../src/base/replaceUnits.ts';
import { closest } from '../../src/base/text/closest.ts';
import { columns, head, shorten } from '../../src/base/text/columns.ts';
import { harnessName, pathName } from '../../src/base/text/fileName.ts';
import { DANGEROUS, html, line, plain, replaceDangerous } from '../../src/base/text/inert.ts';
import { lineDiff } from '../../src/base/text/lineDiff.ts';
import { createRedactor, looksLikeKey } from '../../src/base/text/redact.ts';
import { table } from '../../src/cli/terminal/table.ts';
import { loadConfig } from '../../src/config/loadConfig.ts';
import { ConfigError } from '../../src/config/readConfig.ts';
import { readJson } from '../../src/dataset/read/readRows.ts';
import { parsePredictions } from '../../src/formats/predictions.ts';
import { OFFICIAL_PARSERS } from '../../src/grading/parsers/parserRegistry.ts';
import { renderMarkdown, renderTerminal } from '../../src/report/render/renderers.ts';
import { render } from '../../src/template/render.ts';
import { ansiSpans } from '../../src/viewer/page/text/foreignText.ts';
import { cpuMs } from '../support/cpuTime.ts';
import fc from '../support/property.ts';

const text = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.string({ unit: fc.constantFrom('\0', '&', '\ud800', '\udc00', '\u{e0041}', '😀', 'a') }),
);

describe('replacing by a table is replacing by an expression', () => {
  test('of dangerous characters', () => {
    fc.assert(
      fc.property(text, (given) => {
        expect(replaceDangerous(given, (code) => `<${code}>`)).toBe(
          given.replace(DANGEROUS, (char) => `<${char.codePointAt(0)}>`),
        );
      }),
      { numRuns: 2000 },
    );
  });
  test('of others, where halves of characters stay', () => {
    const table = unitsOf('a&');
    fc.assert(
      fc.property(text, (given) => {
        expect(replaceUnits(given, table, (code) => `<${code}>`)).toBe(
          given.replace(/[a&]/g, (char) => `<${char.charCodeAt(0)}>`),
        );
        expect(asciiOnly(given)).toBe(
          given.replace(/[\x7f-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`),
        );
        expect(pythonLine(given)).toBe(asciiOnly(JSON.stringify(given)));
      }),
      { numRuns: 2000 },
    );
  });
  test('of white space, on one line', () => {
    const spaced = fc.string({
      unit: fc.constantFrom(' ', '\n', '\t', '\v', '\u00a0', '\u2003', '\u3000', 'a', '\0'),
    });
    fc.assert(
      fc.property(spaced, (given) => {
        expect(line(given)).toBe(plain(given).replace(/\s+/g, ' ').trim());
      }),
      { numRuns: 2000 },
    );
  });
});

/** A quadratic one takes minutes for these. */
const cheap = (work: () => unknown): void => expect(cpuMs(() => void work())).toBeLessThan(3000);
const MB = 1_000_000;

describe('long texts', () => {
  test.each(['\0', '\u202e', '\ud800', '&', '\x1b['])('sanitisers on %j', (piece) => {
    const long = piece.repeat(MB);
    for (const sanitise of [plain, html, pathName, harnessName]) cheap(() => sanitise(long));
  });
  test('a name too long to be seen whole is told apart by all of it', () => {
    for (const name of [pathName, harnessName]) {
      expect(name(`${'a'.repeat(5000)}b`)).not.toBe(name(`${'a'.repeat(5000)}c`));
      expect(Buffer.byteLength(name('😀/'.repeat(MB)))).toBeLessThan(256);
    }
  });
  test('the width of a text in a terminal', () => {
    for (const piece of ['😀', 'e\u0301', '漢', 'a', '\u0301']) {
      const long = piece.repeat(MB);
      cheap(() => columns(long));
      cheap(() => shorten(long, 80));
      expect(columns(shorten(long, 80))).toBeLessThanOrEqual(80);
    }
    expect(head('abcdef', 3)).toBe('abc');
    expect(head('漢字漢字', 5)).toBe('漢字');
    expect(shorten('漢字漢字', 5)).toBe('漢字…');
  });
  test('a cell of megabytes in a table', () => {
    cheap(() => table(['a', 'b'], [['a', 'x'.repeat(5 * MB)]], 80));
    cheap(() => table(['a', 'b'], [['a', 'x'.repeat(5 * MB)]], 80, undefined, true));
    const [, , inAPipe] = table(['a', 'b', 'c'], [['a', 'x'.repeat(5 * MB), 'y']], 40).split('\n');
    expect(inAPipe!.length).toBeLessThan(300);
    const shown = table(['a', 'b', 'c'], [['a', 'x'.repeat(5 * MB), 'y']], 40, undefined, true).split('\n');
    expect(Math.max(...shown.map((line) => line.length))).toBeLessThanOrEqual(40);
    expect(shown.length).toBeLessThan(60);
  });
  test('a report on a terminal cuts one endless text and says so; a long list of ids stays whole', () => {
    const shown = (word: string) => renderTerminal([{ kind: 'text', text: word }], 80);
    cheap(() => shown('x'.repeat(5 * MB)));
    expect(shown('x'.repeat(5 * MB))).toContain('… (4980000 more)');
    const ids = Array.from({ length: 3000 }, (_, i) => `django__django-${10_000 + i}`);
    expect(renderTerminal([{ kind: 'ids', label: 'ids', ids }], 80)).toContain(ids.at(-1));
  });
  test('millions of lines and of backticks end no renderer', () => {
    const lines = '`\n'.repeat(MB).split('\n');
    expect(renderTerminal([{ kind: 'lines', lines }], 80)).toContain('lines more');
    expect(renderMarkdown([{ kind: 'lines', lines }])).toMatch(/^```diff\n/);
  });
  test('a slip of a key is short', () => {
    expect(closest('agent.step_limti', ['agent.step_limit'])).toBe('agent.step_limit');
    cheap(() => expect(closest('x'.repeat(MB), ['agent.step_limit'])).toBeNull());
  });
});

describe('names, keys and patterns', () => {
  test('a path of millions of parts is refused, not a full stack', () => {
    expect(() => pathInside('/results', 'a/'.repeat(MB))).toThrow(OutsideRootError);
    expect(() => pathInside('/results', ...Array.from({ length: 5000 }, () => 'a'))).toThrow(/too long/);
  });
  test('Python shows millions of unprintable characters as it shows one', () => {
    for (const char of ['\ud800', '\0', "'", '\u{e0041}', '\\', 'é']) {
      cheap(() => repr(char.repeat(MB)));
    }
    expect(repr(`a'b\n\u00a0\ud800"`)).toBe(`'a\\'b\\n\\xa0\\ud800"'`);
    expect(repr("it's")).toBe(`"it's"`);
  });
  test("arguments of a call that are nested without end are refused in Python's words", () => {
    for (const open of ['[', '{"a":'])
      expect(parseJsonAsPython(open.repeat(MB))).toEqual({
        ok: false,
        message: 'maximum recursion depth exceeded while decoding a JSON document',
      });
    expect(parseJsonAsPython(`${'['.repeat(900)}${']'.repeat(900)}`).ok).toBe(true);
    expect(parseJsonAsPython(`[${'[],'.repeat(5000)}[]]`).ok).toBe(true);
    cheap(() => parseJsonAsPython(`"${'a'.repeat(5 * MB)}"`));
    expect(parseJsonAsPython('"a\\u00e9b\u0001"')).toMatchObject({ ok: false });
    expect(parseJsonAsPython('"a\\u00e9\\nb"')).toEqual({ ok: true, value: 'aé\nb' });
  });
  test('a pattern of megabytes is refused', () => {
    cheap(() => expect(linearProblem('(a'.repeat(MB))).toMatch(/more than 10000 characters/));
    cheap(() => expect(parseFilter('a'.repeat(MB)).ok).toBe(false));
  });
  test('keys and diffs of megabytes', () => {
    cheap(() => looksLikeKey('\ud800'.repeat(5 * MB)));
    expect(looksLikeKey(`sk-${'a1B2'.repeat(9)}`)).toBe(true);
    expect(lineDiff('\n'.repeat(MB), 'a\n')).toEqual(['- 1000001 lines', '+ 2 lines']);
  });
});

describe('what the fuzz suite found', () => {
  test('a merge key or an alias that leads nowhere is a mistake in the configuration', () => {
    for (const file of ['<<: *a\n', 'agent: *nobody\n', '<<: 7\n'])
      expect(() => loadConfig({ specs: ['f.yaml'], cwd: '/', readFile: () => file })).toThrow(ConfigError);
  });
  test('a text that is no JSON loses its secrets all the same', () => {
    const secrets = createRedactor([{ name: 'KEY', value: 'sk-canary-1234567' }]);
    expect(secrets.json('"torn\n sk-canary-1234567')).toBe('"torn\n ‹redacted:KEY›');
    expect(secrets.json('{"sk-canary-1234567": ["sk-canary-1234567"]}')).toBe(
      '{"sk-canary-1234567": ["‹redacted:KEY›"]}',
    );
  });
  test('half a character in an address', () => {
    expect(render('{{ a|urlencode }}', { a: 'x\ud800' })).toBe('x%EF%BF%BD');
  });
});

describe('logs and files', () => {
  const { parse_log_django: parseDjango, parse_log_pytest_v2: parsePytestV2 } = OFFICIAL_PARSERS;
  const context = { instanceId: 'a__a-1', version: '1', harness: 'v5' } as const;
  test('one endless line of interrupted tests', () => {
    const log = ' ... Testing against Django installed in '.repeat(50_000);
    cheap(() => parseDjango!(log, context));
    expect(parseDjango!(`a\nb\ntest_a ... Internal Server Error: /x/\nok\n`, context).get('test_a')).toBe(
      'PASSED',
    );
    cheap(() => parsePytestV2!('\n'.repeat(5 * MB), context));
  });
  test('a file whose lines are no JSON is given up after a thousand of them', () => {
    const torn = 'a\n'.repeat(MB);
    cheap(() => parsePredictions(torn, 'p.jsonl'));
    const read = parsePredictions(torn, 'p.jsonl');
    expect(!read.ok && read.problems.at(-1)).toBe(
      'p.jsonl: 1000 lines up to line 1000 are not JSON, so the rest was not read',
    );
    cheap(() => readJson(Buffer.from(torn), 'jsonl'));
    expect(readJson(Buffer.from(torn), 'jsonl').map((found) => 'message' in found)).toEqual(
      Array(1001).fill(true),
    );
  });
  test('blank lines count, and are not read', () => {
    expect(readJson(Buffer.from('\n\r\n{"a":1}\n\n x\n'), 'jsonl')).toMatchObject([
      { line: 3, row: { a: 1 } },
      { line: 5, message: expect.any(String) as string },
    ]);
  });
});

describe('colours of a terminal', () => {
  test('that are told again and again, or with millions of numbers, cost as much as they are long', () => {
    expect(cpuMs(() => ansiSpans('\x1b[1m'.repeat(100_000)))).toBeLessThan(3000);
    expect(cpuMs(() => ansiSpans(`\x1b[${'1;'.repeat(500_000)}mx`))).toBeLessThan(3000);
  });

  test('hold until they are changed, however many come before; a text of nothing but colours ends without', () => {
    const many = '\x1b[31mr\x1b[1mb'.repeat(500);
    const spans = ansiSpans(`plain${many}`);
    expect(spans).toHaveLength(1001);
    expect([spans[0], spans.at(-1)]).toEqual([
      { text: 'plain', className: '' },
      { text: 'b', className: 'ansi-red ansi-bold' },
    ]);
    const endless = ansiSpans('\x1b[31mr'.repeat(30_000));
    expect(endless.map((span) => span.text).join('')).toBe('r'.repeat(30_000));
    expect(endless[0]!.className).toBe('ansi-red');
    expect(endless.at(-1)!.className).toBe('');
    expect(ansiSpans('')).toEqual([{ text: '', className: '' }]);
  });
});
