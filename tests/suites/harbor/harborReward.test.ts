// The reward of a verifier: which number counts, and what is none.
import { describe, expect, test } from 'vitest';
import { completeEnvironment } from '../../../src/environment/capabilities.ts';
import type { Environment } from '../../../src/environment/environment.ts';
import type { RunLog } from '../../../src/grading/gradingFrame.ts';
import { rewardFromJson, rewardFromText, verify } from '../../../src/suites/harbor/verification.ts';

const found = (reward: number, rewards: Record<string, number>) => ({ ok: true, found: { reward, rewards } });

describe('reward.txt', () => {
  test.each([
    ['1\n', 1],
    ['0', 0],
    [' 0.5 \n', 0.5],
    ['1e-1', 0.1],
    ['1.', 1],
  ])('%j is %f', (text, value) => expect(rewardFromText(text)).toEqual(found(value, { reward: value })));

  test.each([
    '',
    '\n',
    'good',
    '1 2',
    '0x1',
    'nan',
    'NaN',
    'inf',
    'Infinity',
    '-0.1',
    '1.01',
    '1e999',
    'true',
    '1,0',
  ])('%j is refused', (text) => expect(rewardFromText(text)).toMatchObject({ ok: false }));
});

describe('reward.json', () => {
  test.each([
    ['{"reward": 0.25}', found(0.25, { reward: 0.25 })],
    // Other numbers are counts of anything.
    ['{"reward": 1, "f2p_passed": 12}', found(1, { reward: 1, f2p_passed: 12 })],
    ['{"score": 0.5}', found(0.5, { score: 0.5 })],
    ['{"a": 1, "b": 0}', found(0.5, { a: 1, b: 0 })],
    ['{"reward": true}', found(1, { reward: 1 })],
    ['0.75', found(0.75, { reward: 0.75 })],
  ])('%s', (text, expected) => expect(rewardFromJson(text)).toEqual(expected));

  test.each([
    ['', 'is not JSON'],
    ['{"reward": NaN}', 'is not JSON'],
    ['{}', 'names no reward'],
    ['[]', 'which is not a number'],
    ['null', 'which is not a number'],
    ['{"reward": "1"}', 'which is not a number'],
    ['{"reward": 1, "more": null}', 'which is not a number'],
    ['{"reward": 1e999}', 'which is not a number'],
    ['{"reward": 2}', 'not between 0 and 1'],
    ['{"a": 1, "b": -1}', 'the reward "b" is -1'],
    ['{"__proto__": 1, "reward": "x"}', 'which is not a number'],
  ])('%s is refused: %s', (text, message) =>
    expect(rewardFromJson(text)).toMatchObject({
      ok: false,
      message: expect.stringContaining(message) as string,
    }),
  );
});

describe('where the reward is read', () => {
  const result = {
    output: '',
    exitCode: 0,
    timedOut: false,
    durationMs: 1,
    omittedBytes: 0,
    oomKilled: false,
  };
  const file = (path: string, text: string) => ({ path, content: Buffer.from(text), mode: 0o644 });
  const graded = (files: readonly ReturnType<typeof file>[]) =>
    verify(
      completeEnvironment({
        execute: async () => result,
        getFiles: async (path: string) => files.filter((one) => one.path.startsWith(path)),
      } as unknown as Environment),
      { info() {}, warn() {}, error() {} } as unknown as RunLog,
      'a',
      { timeout_s: 5, env: {} },
      undefined,
      { patch: '' },
    );

  test('a file of that name is, and JSON goes first', async () => {
    expect(await graded([file('/logs/verifier/reward.txt', '0.5')])).toMatchObject({ reward: 0.5 });
    const both = [file('/logs/verifier/reward.txt', '0'), file('/logs/verifier/reward.json', '1')];
    expect(await graded(both)).toMatchObject({ outcome: 'resolved', reward: 1 });
  });

  test('a file in a folder of that name is not', async () => {
    expect(await graded([file('/logs/verifier/reward.txt/reward.txt', '1')])).toMatchObject({
      outcome: 'infra',
      infraReason: 'no_reward',
    });
  });
});
