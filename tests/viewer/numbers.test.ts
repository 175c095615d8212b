import { describe, expect, test } from 'vitest';
import { cost, duration, integer, rate, short, tokensText } from '../../src/viewer/page/text/numbers.ts';

describe('numbers as the page writes them', () => {
  test.each([
    [null, '–'],
    [-2_000, '0 ms'],
    [999, '999 ms'],
    [9_940, '9.9 s'],
    [59_600, '1 min 0 s'],
    [119_999, '2 min 0 s'],
    [3_599_999, '1 h 0 min'],
    [50 * 3_600_000, '2 d 2 h'],
  ])('%s ms is %s', (ms, text) => {
    expect(duration(ms)).toBe(text);
  });

  test('a rate carries its Wilson interval, and nothing of nothing is no rate', () => {
    expect(rate(3, 10)).toBe('30.0 % [10.8, 60.3]');
    expect(rate(0, 10)).toBe('0.0 % [0.0, 27.8]');
    expect(rate(0, 0)).toBe('–');
  });

  test('an unknown part of a cost makes it a lower bound, and no known part makes it unknown', () => {
    expect(cost({ costNano: 1_500_000_000, unknownCalls: 1 })).toBe('≥ $1.50');
    expect(cost({ costNano: null, unknownCalls: 3 })).toBe('unknown');
  });

  test('large counts are short', () => {
    expect([999, 1_234, 12_345, 1_234_567].map(short)).toEqual(['999', '1.2k', '12k', '1.23M']);
  });

  test('an integer is grouped as the browser groups it', () => {
    for (const n of [0, 7, 999, 1000, 12_345, 999_999, 1_000_000, -1234, -999, 2 ** 53 - 1])
      expect(integer(n)).toBe(n.toLocaleString('en-US'));
    expect([integer(null), integer(undefined)]).toEqual(['–', '–']);
  });

  test('tokens say which share of what was sent a cache had', () => {
    const none = { costNano: null, unknownCalls: 0, calls: 1, failedCalls: 0, reasoningTokens: 0 };
    const counts = { inputTokens: 250, cacheReadTokens: 750, cacheWriteTokens: 0, outputTokens: 500 };
    expect(tokensText({ ...none, ...counts })).toBe('1.5k, 75.0 % from a cache');
    expect(tokensText({ ...none, ...counts, cacheReadTokens: 0 })).toBe('750');
  });
});
