import { describe, expect, test } from 'vitest';
import { inert as safeText, settleLines, showUnseen, stripEscapes } from '../../src/base/text/inert.ts';
import fc from '../support/property.ts';
import { HOSTILE } from '../viewer/hostileRun.ts';

describe('text of others', () => {
  test('colours go or stay, everything else that escapes goes', () => {
    const text =
      '\u001b[31mred\u001b[0m \u001b[2J\u001b]0;title\u0007\u001b]8;;http://x\u001b\\link\u001b]8;;\u001b\\ \u001bP1;2qsixel\u001b\\end \u001b(B';
    expect(stripEscapes(text)).toBe('red link end ');
    expect(stripEscapes(text, { keepColours: true })).toBe('\u001b[31mred\u001b[0m link end ');
  });

  test('an unfinished escape cannot swallow what follows on later lines unseen', () => {
    expect(safeText('\u001b[31')).toContain('[31');
    expect(safeText('a \u001b')).toBe('a ␛');
    expect(safeText('\u001b]0;open\nsecond')).toBe('\nsecond');
  });

  test('what reorders or hides is shown', () => {
    expect(showUnseen('a\u202eb\u2066c\u200bd\u0000\u007f')).toBe('a‹U+202E›b‹U+2066›c‹U+200B›d␀␡');
    expect(showUnseen('\ud800 😀 \udc00')).toBe('\ufffd 😀 \ufffd');
    expect(showUnseen('tab\tand\nnewline')).toBe('tab\tand\nnewline');
  });

  test('a progress bar shows its last state', () => {
    expect(settleLines('10%\r50%\r100%\nnext\r\nlast')).toBe('100%\nnext\nlast');
  });

  test('nothing a terminal would obey is left, whatever comes in [T-16]', () => {
    const piece = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.constantFrom(
        '\u001b',
        '[',
        ']',
        '\u0007',
        '\u009b',
        'm',
        '31',
        ';',
        '\r',
        '\n',
        '\u202e',
        '\ud800',
        ...Object.values(HOSTILE),
      ),
    );
    fc.assert(
      fc.property(fc.array(piece), (pieces) => {
        expect(safeText(pieces.join(''))).not.toMatch(
          /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/,
        );
      }),
    );
  });
});
