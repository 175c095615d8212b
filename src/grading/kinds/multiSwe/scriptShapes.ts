/** Logs of Multi-SWE-bench's script languages: Jest, Mocha, Vitest. */
import { ParserError } from '../../parsers/logParser.ts';
import { behind, eachStripped, type Shape, type TestSets, withoutTail } from './shape.ts';

const IN_BRACKETS = /\s\(\d{0,15}\.?\d{1,15}\s{0,5}\w{1,15}\)$/;
const IN_BRACKETS_OR_BARE = /\s{0,5}\d{0,15}\.?\d{1,15}\s{0,5}(?:ms|s|m)$/;
const MOCHA_TIME = /\s\(\d{0,15}\.?\d{0,15}\s{0,5}\w{1,15}\)$/;
const INSOMNIA_TAIL = /(?:\s\(\d{1,9}\s{1,5}tests\))?(?:\s{0,5}\(?\d{0,15}\.?\d{1,15}\s{0,5}\w{1,15}\)?)?$/;

/** A suite with its tests below it: each test is named with its suite. `name` takes off the time of a test. */
const jestWith =
  (name: (text: string) => string): Shape =>
  (log) => {
    let suite: string | undefined;
    const test = (text: string, set: Set<string>) => {
      if (suite === undefined) throw new ParserError('a test stands before any suite');
      set.add(`${suite}:${name(text)}`);
    };
    const begin = (text: string, set: Set<string>) => {
      suite = name(text);
      set.add(suite);
    };
    const read = (line: string, { passed, failed }: TestSets) => {
      const [good, bad] = [behind(line, 'PASS '), behind(line, 'FAIL ')];
      if (good !== undefined) begin(good, passed);
      if (bad !== undefined) begin(bad, failed);
      const [held, broke] = [behind(line, '✓ '), behind(line, '✕ ')];
      if (held !== undefined) test(held, passed);
      if (broke !== undefined) test(broke, failed);
    };
    return eachStripped(read)(log);
  };
export const jest = jestWith((text) => withoutTail(text, IN_BRACKETS));

/** Darkreader's rows take off any bracket at the end. */
export const jestAnyBracket = jestWith((text) => {
  if (!text.endsWith(')')) return text;
  const at = text.search(/\s\(/);
  return at > 0 ? text.slice(0, at).trimEnd() : text;
});

/** `✔ name (12ms)`, and failures by their number. */
export const mocha: Shape = eachStripped((line, sets) => {
  const passed = behind(line, '✔ ');
  if (passed !== undefined) sets.passed.add(withoutTail(passed, MOCHA_TIME));
  const failed = /^\d{1,9}\) (.+)$/.exec(line)?.[1];
  if (failed !== undefined) sets.failed.add(withoutTail(failed, MOCHA_TIME));
});

/** `✓ name 12ms`. */
export const vitest: Shape = eachStripped((line, sets) => {
  const passed = behind(line, '✓ ');
  if (passed !== undefined) sets.passed.add(withoutTail(passed, IN_BRACKETS_OR_BARE));
  const failed = behind(line, '× ');
  if (failed !== undefined) sets.failed.add(withoutTail(failed, IN_BRACKETS_OR_BARE));
});

/** Files of Vitest and of Jest in one log. */
export const insomnia: Shape = eachStripped((line, sets) => {
  const vitestFile = behind(line, '✓ ');
  if (vitestFile !== undefined) sets.passed.add(withoutTail(vitestFile, INSOMNIA_TAIL));
  const passed = behind(line, 'PASS ');
  if (passed !== undefined) sets.passed.add(withoutTail(passed, IN_BRACKETS));
  const failed = behind(line, 'FAIL ');
  if (failed !== undefined) sets.failed.add(withoutTail(failed, IN_BRACKETS));
});
