// Which attempts are followed by another one.
import { expect, test } from 'vitest';
import type { ExitReason } from '../../../src/outcome.ts';
import { FREE_OUTAGES, settlementOf } from '../../../src/run/exit.ts';

const policy = (reasons: Record<string, number> = {}) => ({
  attempts: 3,
  reasons,
  made: new Map(),
  outages: new Map(),
});
const pull = (detail: string | null) => ({ reason: 'env_image_pull_failed' as ExitReason, detail });

test('a pull that a registry will refuse again ends its trial; what another try may mend is tried again', () => {
  for (const detail of ['no_access', 'wrong_platform'])
    expect(settlementOf(policy(), 1, pull(detail))).toBe('seal');
  for (const detail of ['stalled', 'interrupted', 'unreachable', 'rate_limited', 'unknown', null])
    expect(settlementOf(policy(), 1, pull(detail))).toBe('again');
});

test('a build that failed ends its trial: the same recipe would fail again', () => {
  const built = { reason: 'env_image_build_failed' as ExitReason, detail: 'build_failed' };
  expect(settlementOf(policy(), 1, built)).toBe('seal');
});

test('a number of attempts that was asked for counts more', () => {
  expect(settlementOf(policy({ env_image_pull_failed: 2 }), 1, pull('no_access'))).toBe('again');
});

test('a rejected request is tried again once where nobody has an answer yet, and never later', () => {
  const rejected = { reason: 'model_rejected' as ExitReason, detail: 'UNKNOWN' };
  const given = policy();
  expect(settlementOf(given, 1, { ...rejected, beforeAnyAnswer: true })).toBe('again');
  expect(settlementOf(given, 1, { ...rejected, beforeAnyAnswer: true })).toBe('seal');
  expect(settlementOf(given, 2, rejected)).toBe('seal');
});

test('where another attempt followed in a recording, one follows in its replay, and uses up none of this run', () => {
  const died = { reason: 'env_died' as ExitReason, detail: 'killed' };
  const given = { ...policy(), attempts: 1 };
  for (let i = 0; i < 3; i++) expect(settlementOf(given, 1, { ...died, recordedAgain: true })).toBe('again');
  expect(settlementOf(given, 1, { ...died, recordedAgain: false })).toBe('seal');
});

test('what the agent did to its own container uses up no attempt, and is never sealed as infra', () => {
  const ended = { reason: 'env_died' as ExitReason, detail: 'killed', byAgent: true };
  const once = { ...policy(), attempts: 1 };
  expect(settlementOf(once, 1, ended)).toBe('again');
  expect(settlementOf(once, 1, { ...ended, reason: 'env_ended_by_agent' })).toBe('seal');
  expect(settlementOf({ ...policy(), attempts: 1 }, 1, { ...ended, byAgent: false })).toBe('seal');
});

test('an outage of the engine uses up no attempt, but a trial that it comes with every time does', () => {
  const lost = { reason: 'env_died' as ExitReason, detail: 'daemon_lost' };
  const once = { ...policy(), attempts: 1 };
  for (let i = 0; i < FREE_OUTAGES; i++) expect(settlementOf(once, 1, lost)).toBe('again');
  expect(settlementOf(once, 1, lost)).toBe('seal');
  expect(settlementOf(once, 2, lost)).toBe('again');
  // The attempts of the trial are all still there.
  const two = { ...policy(), attempts: 2 };
  expect(settlementOf(two, 1, lost)).toBe('again');
  expect(settlementOf(two, 1, { reason: 'env_died', detail: 'killed' })).toBe('again');
});

test('a server of the model that nobody can reach uses up no attempt, but a trial that it goes away with every time does', () => {
  const gone = {
    reason: 'model_unavailable' as ExitReason,
    detail: 'NETWORK_ERROR',
    unreachable: true,
  };
  const once = { ...policy(), attempts: 1 };
  for (let i = 0; i < FREE_OUTAGES; i++) expect(settlementOf(once, 1, gone)).toBe('again');
  expect(settlementOf(once, 1, gone)).toBe('seal');
  // An answer of the server, whatever it says, is an attempt.
  expect(settlementOf({ ...policy(), attempts: 1 }, 1, { ...gone, unreachable: false })).toBe('seal');
});
