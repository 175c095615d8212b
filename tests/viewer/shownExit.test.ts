// Exit codes of imported observations, as mini-swe-agent writes them.
import { expect, test } from 'vitest';
import { shownExit } from '../../src/base/text/exitCodeTold.ts';

test.each([
  ['<returncode>1</returncode>\n<output>\nls: cannot access', 1],
  ['<returncode>0</returncode>\n<output>', 0],
  ['<returncode>-1</returncode>', -1],
  ['Observation: <returncode>127</returncode>', 127],
  ['{"returncode": 2, "output": "x"}', 2],
  ['the file says <returncode>1</returncode>', null],
  ['<returncode>1e9</returncode>', null],
  ['<returncode>99999999999', null],
  ['', null],
])('%j is %j', (head, code) => {
  expect(shownExit(head)).toBe(code);
});
