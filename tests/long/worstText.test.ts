// 5 MB of its worst text holds up no reader for longer than 200 ms: so long nobody else in the process is heard, not even Ctrl-C.
import { describe, expect, test } from 'vitest';
import { cpuMs } from '../support/cpuTime.ts';
import { READERS } from '../support/foreign/everyReader.ts';
import { heard, type Reader } from '../support/foreign/reader.ts';
import { COMMON, filled } from '../support/foreign/worstText.ts';

const CHARACTERS = 5 * 1024 * 1024;
/** What is quadratic takes 50 times as long for one part as for all: it is found before it takes minutes. */
const PARTS = 50;
/** Of every text a part is read, of the slowest all. */
const READ_WHOLE = 3;

/** V8 takes this for 5 MB of nested brackets on a machine with nothing else to do; where it takes longer, everything may. */
const QUIET_MS = 150;
const slowness = (): number =>
  Math.max(
    1,
    cpuMs(() => {
      try {
        JSON.parse('['.repeat(CHARACTERS));
      } catch {}
    }) / QUIET_MS,
  );
const LIMIT_MS = 200;
/** Linear too, and slower: what only a person's own template asks for, such as all characters of an output in their order. */
const SLOWER: readonly (readonly [reader: RegExp, ms: number])[] = [[/^(?:filter|test|method) /, 2500]];
const limitOf = ({ name }: Reader): number => SLOWER.find(([reader]) => reader.test(name))?.[1] ?? LIMIT_MS;

function slowTexts(reader: Reader): string[] {
  const limit = limitOf(reader);
  const texts = [...COMMON, ...(reader.words ?? [])].flatMap((piece) =>
    ['', 'a'].map((before) => {
      const text = (length: number) => before + filled(piece, length) + (before && 'y\n');
      const ms = cpuMs(() => heard(reader, text(CHARACTERS / PARTS)));
      return { name: `${JSON.stringify(piece.slice(0, 40))}${before && ' between other text'}`, text, ms };
    }),
  );
  return texts
    .toSorted((a, b) => b.ms - a.ms)
    .slice(0, READ_WHOLE)
    .flatMap(({ name, text, ms: part }) => {
      if (part > limit && part / slowness() > limit)
        return [`${name}: ${Math.round(part)} ms for ${CHARACTERS / PARTS} characters`];
      const whole = text(CHARACTERS);
      const ms = cpuMs(() => heard(reader, whole));
      // The machine may have been busy in that moment.
      const least = ms > limit ? Math.min(ms, cpuMs(() => heard(reader, whole)) / slowness()) : ms;
      return least > limit ? [`${name}: ${Math.round(least)} ms`] : [];
    });
}

describe.each(Object.entries(READERS))('%s', (_room, readers) => {
  test.each(readers.map((reader) => [reader.name, reader] as const))('%s', (_name, reader) => {
    expect(slowTexts(reader)).toEqual([]);
  });
});

test('a reader that goes back over its text is found', () => {
  const read = (text: string) => {
    let pairs = 0;
    if (text.startsWith('abab'))
      for (let i = 0; i < 60_000; i++) for (let j = 0; j < 60_000; j++) pairs += text.charCodeAt(j) & 1;
    return pairs;
  };
  expect(slowTexts({ name: 'quadratic', read, words: ['ab'] })).toEqual([
    expect.stringMatching(/^"ab": \d+ ms/),
  ]);
});
