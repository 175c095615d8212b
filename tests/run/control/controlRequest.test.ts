// What may be asked of a run while it works, and what is refused with a sentence.
import { describe, expect, test } from 'vitest';
import { ControlRefusal, readControl } from '../../../src/run/control/controlRequest.ts';

describe('a request to a live run', () => {
  test.each([
    ['pause', null, null],
    ['resume', null, null],
    ['workers', '16', 16],
    ['budget', '12.50', 12_500_000_000],
    ['budget', '$3', 3_000_000_000],
    ['budget', '0', 0],
    ['budget', 'none', null],
    ['cancel', ' a__a-1 ', 'a__a-1'],
  ])('%s %s', (command, argument, value) => {
    expect(readControl(command, argument)).toEqual({ command, value });
  });

  test.each([
    ['pause', 'now'],
    ['workers', null],
    ['workers', '0'],
    ['workers', '-3'],
    ['workers', '2.5'],
    ['workers', '1e3'],
    ['workers', '10001'],
    ['workers', 'NaN'],
    ['budget', null],
    ['budget', ''],
    ['budget', '-1'],
    ['budget', 'Infinity'],
    ['budget', '9999999'],
    ['cancel', '  '],
    ['cancel', null],
    ['drain', 'lab2'],
    ['constructor', null],
    ['__proto__', null],
    ['toString', 'x'],
    ['', null],
  ])('%s %s is refused', (command, argument) => {
    expect(() => readControl(command, argument)).toThrow(ControlRefusal);
  });
});
