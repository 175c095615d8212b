/** Every sanitiser is fed every dangerous code point and every kind of escape sequence: one table serves all places. */
import { describe, expect, test } from 'vitest';
import { harnessName, pathName } from '../../src/base/text/fileName.ts';
import {
  csvCell,
  DANGEROUS,
  DANGERS,
  html,
  inert,
  line,
  markdown,
  plain,
} from '../../src/base/text/inert.ts';
import { ansiSpans, plain as pageText } from '../../src/viewer/page/text/foreignText.ts';
import { cpuMs } from '../support/cpuTime.ts';

const page = (text: string): string =>
  ansiSpans(text)
    .map((span) => span.text)
    .join('');

const SANITISERS: Readonly<Record<string, (text: string) => string>> = {
  'terminal: inert': inert,
  'page: cells': pageText,
  'page: output': page,
  'page and XML files: html': html,
  'files and reports: plain': plain,
  'files and reports: line': line,
  'Markdown: markdown': markdown,
  'CSV: csvCell': csvCell,
  'file name: pathName': pathName,
  'file name: harnessName': harnessName,
};

const points = DANGERS.flatMap(({ ranges }) =>
  ranges.flatMap(([first, last]) => Array.from({ length: last - first + 1 }, (_, i) => first + i)),
);

/** What Unicode itself calls a control, a format character, a separator of lines, half a character or ignorable. */
const SUSPECT = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\p{Default_Ignorable_Code_Point}]/u;
/** Tab, line feed, variation selectors 1 to 16, and format characters that are drawn: Arabic, Syriac and Kaithi signs, hieroglyph joiners. */
const ALLOWED =
  /[\t\n\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\u{110bd}\u{110cd}\u{13430}-\u{1343f}]|\p{Variation_Selector}/u;

const ESCAPES: Readonly<Record<string, string>> = {
  colour: '\x1b[31m',
  'clear screen': '\x1b[2J',
  'window title': '\x1b]0;owned\x07',
  'hyperlink ended by ST': '\x1b]8;;http://evil\x1b\\',
  'device control': '\x1bP1;2qsixel\x1b\\',
  'application command': '\x1b_x\x1b\\',
  'character set': '\x1b(B',
  reset: '\x1bc',
  '8-bit CSI': '\x9b2J',
  '8-bit OSC': '\x9d0;owned\x9c',
};

describe('text safety', () => {
  test('the table has everything that Unicode calls invisible or steering', () => {
    const known = new Set(points);
    const missing: string[] = [];
    for (let code = 0; code <= 0x10ffff; code++) {
      const char = String.fromCodePoint(code);
      if (SUSPECT.test(char) && !ALLOWED.test(char) && !known.has(code)) missing.push(code.toString(16));
    }
    expect(missing).toEqual([]);
  });

  describe.each(Object.entries(SANITISERS))('%s', (_, sanitise) => {
    test('no dangerous code point comes through', () => {
      const through = points.filter((code) => sanitise(`a${String.fromCodePoint(code)}b`).match(DANGEROUS));
      expect(through.map((code) => code.toString(16))).toEqual([]);
    });
    test.each(Object.entries(ESCAPES))('%s steers nothing and takes no text along', (_kind, sequence) => {
      const shown = sanitise(`before${sequence}after`);
      expect(shown).not.toMatch(DANGEROUS);
      expect(shown).toMatch(/^before.*after$/);
    });
    test.each([
      ['introducers', '\x9d'],
      ['string sequences', '\x1b]x'],
      ['control sequences', '\x1b['],
      ['parameters', '\x1b[1'],
      ['parameters alone', '1;'],
      ['spaces', ' '],
      ['line feeds', '\n'],
      ['carriage returns', '\r'],
      ['tags', '\u{e0041}'],
    ])('the time is linear in the length: %s', (_kind, piece) => {
      // A quadratic scan of this length takes minutes.
      expect(cpuMs(() => sanitise(`${piece.repeat(300_000)}\x1bX`))).toBeLessThan(5000);
    });
  });
});
