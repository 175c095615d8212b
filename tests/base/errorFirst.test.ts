// What a message has of a program's output: whole lines, the one with the error first.
import { expect, test } from 'vitest';
import { errorFirst, lastLines } from '../../src/base/text/errorFirst.ts';

test.each<[what: string, output: string, room: number, shown: string]>([
  ['nothing', ' \n\n', 100, ''],
  ['one line', 'it is gone\n', 100, 'it is gone'],
  ['no error at all', 'one\ntwo\nthree', 9, 'two\nthree'],
  [
    'Node',
    "node:internal/modules/cjs/loader:1\n  throw err;\n\nError: Cannot find module 'x'\n    at a\n    at b\n\nNode.js v22.1.0",
    45,
    "Error: Cannot find module 'x'\nNode.js v22.1.0",
  ],
  [
    'Rust',
    "error: unexpected argument '--yolo' found\n\nUsage: x [OPTIONS]\n\nFor more information, try '--help'.",
    60,
    "error: unexpected argument '--yolo' found",
  ],
  [
    'argparse',
    'usage: x [-h]\nx: error: unrecognized arguments: --yolo\n',
    80,
    'x: error: unrecognized arguments: --yolo\nusage: x [-h]',
  ],
  ['the last of several', 'Error: one\nwarning\nKeyError: two\n', 13, 'KeyError: two'],
  ['colours', '\x1b[31mfatal: no key\x1b[0m\r\nbye', 20, 'fatal: no key\nbye'],
  ['a shell', 'hello\nsh: 1: kimi: not found\nbye bye', 35, 'sh: 1: kimi: not found\nbye bye'],
  ['a line without end', `Error: ${'x'.repeat(500)}`, 20, `Error: ${'x'.repeat(12)}…`],
])('%s', (_what, output, room, shown) => {
  expect(errorFirst(output, room)).toBe(shown);
});

test('an end has whole lines, or the end of a line that is longer than it', () => {
  expect(lastLines('one\ntwo\nthree', 9)).toBe('two\nthree');
  expect(lastLines('one\ntwo\nthree', 8)).toBe('three');
  expect(lastLines('one two three', 5)).toBe('three');
  expect(lastLines('short', 50)).toBe('short');
});

test('megabytes in one line are read in no time', () => {
  const began = performance.now();
  errorFirst(`${'a.b$'.repeat(2_000_000)}\nError: x`, 300);
  errorFirst('error '.repeat(1_000_000), 300);
  expect(performance.now() - began).toBeLessThan(500);
});
