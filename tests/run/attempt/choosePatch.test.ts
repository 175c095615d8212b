// Which patch a prediction carries under each policy, and its source and state.
import { describe, expect, test } from 'vitest';
import type { CapturedPatch } from '../../../src/environment/environment.ts';
import { choosePatch } from '../../../src/run/exit.ts';

const bytes = (s: string) => new TextEncoder().encode(s);
const captured = (text: string, state: CapturedPatch['state'] = text ? 'ok' : 'empty'): CapturedPatch => ({
  patch: bytes(text),
  state,
  warnings: [],
});
const PATCH = 'diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n';

describe('the patch of a prediction', () => {
  test('submitted: what was submitted, byte for byte, nothing after a limit', () => {
    expect(choosePatch('submitted', bytes(PATCH), captured('other'))).toMatchObject({
      modelPatch: PATCH,
      source: 'submitted',
      state: 'ok',
    });
    expect(choosePatch('submitted', null, captured(PATCH))).toMatchObject({
      modelPatch: '',
      source: 'captured_at_exit',
      state: 'ok',
    });
  });

  test('captured and submitted-else-captured', () => {
    expect(choosePatch('captured', bytes('x'), captured(PATCH)).modelPatch).toBe(PATCH);
    expect(choosePatch('submitted-else-captured', bytes(''), captured(PATCH)).modelPatch).toBe(PATCH);
    expect(choosePatch('submitted-else-captured', bytes(PATCH), captured('')).modelPatch).toBe(PATCH);
  });

  test('no change at all is an empty patch [T-47]', () => {
    expect(choosePatch('submitted', bytes(''), captured(''))).toMatchObject({
      modelPatch: '',
      source: 'none',
      state: 'empty',
    });
  });

  test('a submission that is no diff is invalid', () => {
    expect(choosePatch('submitted', bytes('I am done'), captured('')).state).toBe('invalid');
  });

  test.each(['submitted', 'captured'] as const)(
    'bytes that JSON cannot hold make a %s prediction invalid, and say why',
    (policy) => {
      const latin1 = Buffer.from(PATCH.replace('+b', '+\xe9'), 'latin1');
      const of = (patch: Buffer) =>
        choosePatch(policy, policy === 'submitted' ? patch : null, { patch, state: 'ok', warnings: [] });
      expect(of(latin1).state).toBe('invalid');
      expect(of(latin1).notes).toEqual([expect.stringContaining('not UTF-8')]);
      expect(of(Buffer.from(PATCH))).toMatchObject({ state: 'ok', notes: [] });
    },
  );
});
