// On a narrow terminal a line leaves out whole parts, and the bar counts gradings as work.
import { expect, test } from 'vitest';
import { columns, fitted, wrapped } from '../../src/base/text/columns.ts';
import { widthOf } from '../../src/cli/terminal/context.ts';
import { apply, fitParts, newState, slotRows, workDone } from '../../src/cli/terminal/progressState.ts';
import { table } from '../../src/cli/terminal/table.ts';
import fc from '../support/property.ts';

const LINE = '$0.12 of $20.00 · 1:02 · ETA 3:00-4:10 · resolved 4/9 · 3 to grade';

test.each([20, 40, 58, 78])('at %i columns no word of a line is cut', (width) => {
  const shown = fitParts(LINE, width);
  expect(shown).toHaveLength(width);
  expect(LINE.startsWith(shown.trimEnd())).toBe(true);
  expect(`${LINE} · `.startsWith(`${shown.trimEnd()} · `)).toBe(true);
});

test('a row of a slot is as wide as the terminal, with its cost whole', () => {
  const state = newState();
  const label = { trialId: 1, instanceId: 'scikit-learn__scikit-learn-14894', arm: 'a', epoch: 1 };
  apply(state, { type: 'trial_started', slot: 1, trial: label } as never);
  for (const width of [58, 78]) {
    const [row] = slotRows(state, { now: state.startedAt, idle: true, rows: 4, width });
    expect(row!.length).toBeLessThanOrEqual(width);
    expect(row).toMatch(/-14894 step {3}0 start 0:00 +\$0\.00$/);
  }
});

test('a trial whose grading is open is half done', () => {
  const state = { ...newState(), decided: 3, planned: 5 };
  expect(workDone(state)).toBe(6);
  expect(workDone({ ...state, grading: { workers: 1, open: 2, durations: [] } })).toBe(4);
});

const HEAD = ['run', 'status', 'created', 'planned', 'resolved', 'by class', 'cost'];
const ROW = [
  ...['run-20261126-155855-ro7b', 'complete', '11-26 15:58', '14'],
  ...['9/14 = 64.3 % [38.8, 83.7]', 'agent 12 limit 2', '$0.00'],
];

const words = (text: string) => text.split(/\s+/).filter(Boolean).toSorted();

test('at 80 columns no word of a table is cut: a cell goes on in the next line', () => {
  const lines = table(HEAD, [ROW], 80, undefined, true).split('\n');
  const rule = lines.findIndex((line) => line.startsWith('---'));
  for (const line of lines) expect(line.length).toBeLessThanOrEqual(80);
  expect(words(lines.slice(rule + 1).join(' '))).toEqual(words(ROW.join(' ')));
  expect(words(lines.slice(0, rule).join(' '))).toEqual(words(HEAD.join(' ')));
});

test('at 60 columns, where its columns do not fit, each cell has a line', () => {
  const lines = table(HEAD, [ROW, ROW], 60, undefined, true).split('\n');
  for (const line of lines) expect(line.length).toBeLessThanOrEqual(60);
  const once = words([...ROW, ...HEAD.slice(1)].join(' '));
  expect(words(lines.join(' '))).toEqual([...once, ...once].toSorted());
});

test('in a pipe a row is a line, and whole', () => {
  const [, , row, ...more] = table(HEAD, [ROW], 60, undefined, false).split('\n');
  expect(more).toEqual([]);
  expect(words(row!)).toEqual(words(ROW.join(' ')));
});

test('a sentence that is wider than the terminal goes on in the next line, indented', () => {
  const sentence = `ok   every instance, arm and epoch has its trial (planned = arms x instances x epochs)\n  ${'x'.repeat(70)}`;
  const lines = fitted(sentence, 60).split('\n');
  for (const line of lines) expect(line.length).toBeLessThanOrEqual(60);
  expect(lines[0]).toBe('ok   every instance, arm and epoch has its trial (planned =');
  expect(lines[1]).toBe('  arms x instances x epochs)');
});

test('whole words stay together with their blanks, a number with its unit, and no line is wider than it may be', () => {
  const text = '  resolved  64.3 % [38.8, 83.7] of valid';
  expect(wrapped(text, 24, '    ')).toEqual(['  resolved  64.3 %', '    [38.8, 83.7] of', '    valid']);
  expect(wrapped('abcdefgh ij', 4)).toEqual(['abcd', 'efgh', 'ij']);
  expect(wrapped('', 4)).toEqual(['']);
  const word = fc.stringMatching(/^[a-z%[\]漢]{1,12}$/);
  fc.assert(
    fc.property(fc.array(word), fc.integer({ min: 4, max: 60 }), (words, width) => {
      for (const line of wrapped(words.join(' '), width, '  '))
        expect(columns(line)).toBeLessThanOrEqual(width);
    }),
  );
});

test('a line of anything is broken to its end at every width, and nothing but spaces goes', () => {
  const without = (text: string) => text.replaceAll(/[ \n]+/g, '');
  const unit = fc.constantFrom(' ', '  ', 'a', 'word', '漢', '👩‍👩‍👧', 'e\u0301', '\u0301', '[');
  const text = fc.array(unit, { maxLength: 200 }).map((parts) => parts.join(''));
  fc.assert(
    fc.property(text, fc.integer({ min: 1, max: 90 }), (line, width) => {
      expect(without(fitted(line, width))).toBe(without(line));
      expect(without(wrapped(line, width).join(''))).toBe(without(line));
    }),
  );
});

test.each([
  [undefined, 80],
  [0, 80],
  [12, 40],
  [132, 132],
])('a terminal that says %s columns has %i', (columns, width) => {
  expect(widthOf({ columns: columns as number })).toBe(width);
});
