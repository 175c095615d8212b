// Limits a minute that processes share: as much as is allowed, and what a killed process had reserved is free again after a minute.
import { join } from 'node:path';
import { expect, test } from 'vitest';
import {
  correctRate,
  learnedRates,
  learnRates,
  pauseRate,
  ratePausedUntil,
  takeRate,
  waitFor,
} from '../../src/store/live/rates.ts';
import { tempDir } from '../support/cli.ts';
import { freshStore } from './storeFixtures.ts';

const T0 = Date.UTC(2026, 0, 1);
const TPM = 600_000;

/** A provider that counts the last minute and the last six seconds, on what it gets, when it gets it. */
function provider(tpm: number) {
  const calls: { at: number; tokens: number }[] = [];
  let admitted = 0;
  let refused = 0;
  return {
    ask(at: number, tokens: number): void {
      const within = (ms: number) =>
        calls.reduce((sum, one) => sum + (one.at > at - ms ? one.tokens : 0), tokens);
      if (within(60_000) > tpm || within(6_000) > tpm / 5) {
        refused += 1;
        return;
      }
      calls.push({ at, tokens });
      admitted += tokens;
      if (calls.length > 2_000) calls.splice(0, 1_000);
    },
    counts: () => ({ admitted, refused, calls: calls.length }),
  };
}

/** Numbers that look random and are the same each time. */
function randoms(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    return state / 2 ** 31;
  };
}

test('two processes on one key use at least 90 % of the tokens, and fewer than 1 % of their calls are refused', () => {
  const path = join(tempDir(), 'swebatch.db');
  const stores = [freshStore(path), freshStore(path)];
  const random = randoms(7);
  const server = provider(TPM);
  let calls = 0;
  const minutes = 5;
  for (let ms = 0; ms < minutes * 60_000; ms += 100)
    for (const store of stores)
      for (let more = 0; more < 20; more++) {
        const at = T0 + ms + Math.floor(random() * 50);
        const wait = takeRate(store, { account: 'k', at, rpm: null, tpm: TPM, tokens: 4_000 });
        if (wait > 0) break;
        // The estimate is the mean of what calls take.
        const tokens = Math.round(2_000 + random() * 4_000);
        correctRate(store, 'k', at, tokens - 4_000);
        server.ask(at + Math.floor(random() * 300), tokens);
        calls += 1;
      }
  const { admitted, refused } = server.counts();
  expect(admitted).toBeGreaterThan(0.9 * TPM * minutes);
  expect(refused / calls).toBeLessThan(0.01);
  for (const store of stores) store.close();
});

test('requests a minute are kept, also where they are few', () => {
  const store = freshStore();
  const starts: number[] = [];
  for (let ms = 0; ms < 180_000; ms += 250)
    if (takeRate(store, { account: 'k', at: T0 + ms, rpm: 5, tpm: null, tokens: 1 }) === 0) starts.push(ms);
  expect(starts.length).toBeGreaterThanOrEqual(14);
  for (const start of starts)
    expect(starts.filter((one) => one > start - 60_000 && one <= start).length).toBeLessThanOrEqual(5);
  expect(starts[1]! - starts[0]!).toBeGreaterThanOrEqual(6_000);
});

test('what a killed process had reserved is free again after a minute; another key has its own limits', () => {
  const store = freshStore();
  const ask = (at: number, account = 'k') =>
    takeRate(store, { account, at, rpm: null, tpm: 1_000, tokens: 1_000 });
  expect(ask(T0)).toBe(0);
  const wait = ask(T0 + 1_000);
  expect(wait).toBeGreaterThan(55_000);
  expect(wait).toBeLessThan(61_000);
  expect(ask(T0 + 1_000, 'other')).toBe(0);
  expect(ask(T0 + 1_000 + wait)).toBe(0);
  expect(store.prepare(`SELECT count(*) FROM rate_uses WHERE account = 'k'`).pluck().get()).toBe(1);
});

test('a call that is larger than its limit goes when nothing else counts; a clock of the future holds up nobody', () => {
  const store = freshStore();
  const ask = (at: number, tokens: number) =>
    takeRate(store, { account: 'k', at, rpm: null, tpm: 1_000, tokens });
  expect(ask(T0 + 3_600_000, 1_000)).toBe(0);
  expect(ask(T0, 50_000)).toBe(0);
  expect(ask(T0 + 30_000, 1)).toBeGreaterThan(0);
  expect(waitFor([], { account: 'k', at: T0, rpm: 1, tpm: 1, tokens: 9 })).toBe(0);
});

test('limits that one process learned are known to all for an hour', () => {
  const store = freshStore();
  expect(learnedRates(store, 'k', T0)).toEqual({ rpm: null, tpm: null });
  learnRates(store, 'k', { rpm: 50, tpm: null }, T0);
  learnRates(store, 'k', { rpm: null, tpm: 30_000 }, T0);
  expect(learnedRates(store, 'k', T0 + 1_000)).toEqual({ rpm: 50, tpm: 30_000 });
  expect(learnedRates(store, 'k', T0 + 3_700_000)).toEqual({ rpm: null, tpm: null });
});

test('the later of two pauses holds, and one that only a wrong clock can have written holds nobody', () => {
  const store = freshStore();
  expect(ratePausedUntil(store, 'k', T0)).toBe(0);
  pauseRate(store, 'k', T0 + 20_000, T0);
  pauseRate(store, 'k', T0 + 5_000, T0);
  expect(ratePausedUntil(store, 'k', T0)).toBe(T0 + 20_000);
  expect(ratePausedUntil(store, 'other', T0)).toBe(0);
  expect(ratePausedUntil(store, 'k', T0 + 20_000)).toBe(0);
  const ahead = T0 + 86_400_000;
  pauseRate(store, 'k', ahead + 60_000, ahead);
  expect(ratePausedUntil(store, 'k', T0)).toBe(0);
  pauseRate(store, 'k', T0 + 9_000, T0);
  expect(ratePausedUntil(store, 'k', T0)).toBe(T0 + 9_000);
  learnRates(store, 'k', { rpm: 7, tpm: null }, T0);
  expect(ratePausedUntil(store, 'k', T0)).toBe(T0 + 9_000);
});
