// The circuit breaker: a systemic failure pauses or stops, ordinary trouble does not.
import { describe, expect, test } from 'vitest';
import { createBreaker, fingerprint, type JudgedAttempt } from '../../../src/run/control/breaker.ts';

const config = { consecutive: 3, fraction: 0.5, window: 6, emptyPatches: 4 };
const infra = (n: number, message = 'pull of image 12ab34cd56 failed'): JudgedAttempt => ({
  instanceId: `i-${n}`,
  reason: 'env_image_pull_failed',
  class: 'infra',
  message,
  patchBytes: 0,
});
const good = (n: number, patchBytes = 10): JudgedAttempt => ({
  instanceId: `i-${n}`,
  reason: 'submitted',
  class: 'agent',
  message: null,
  patchBytes,
});

describe('breaker', () => {
  test('the same error on three different instances in a row pauses', () => {
    const breaker = createBreaker(config);
    expect(breaker.note(infra(1)).do).toBe('go');
    expect(breaker.note(infra(2)).do).toBe('go');
    expect(breaker.note(infra(3))).toMatchObject({ do: 'pause' });
  });

  const rejected = (n: number, message = 'request rejected (400)', arm = 'a'): JudgedAttempt => ({
    ...infra(n, message),
    reason: 'model_rejected',
    beforeAnyAnswer: true,
    arm,
  });

  test('first requests that two instances of an arm see rejected alike stop the run', () => {
    const breaker = createBreaker(config);
    expect(breaker.note(rejected(1)).do).toBe('go');
    expect(breaker.note(rejected(1)).do).toBe('go');
    expect(breaker.note(rejected(2, 'something else')).do).toBe('go');
    expect(breaker.note(rejected(3, undefined, 'b')).do).toBe('go');
    expect(breaker.note(rejected(4))).toMatchObject({ do: 'stop', as: 'config_invalid' });
    expect(createBreaker({ ...config, instances: 1 }).note(rejected(1))).toMatchObject({ do: 'stop' });
    const later = createBreaker(config);
    for (const n of [1, 2]) expect(later.note({ ...rejected(n), beforeAnyAnswer: false }).do).toBe('go');
  });

  test('what a module of the user throws stops the run at the second instance, and what a configuration lacks at the first', () => {
    const thrown = (n: number): JudgedAttempt => ({
      ...infra(n, 'your agent ./x.ts threw at line 2: no'),
      ...{ reason: 'config_invalid', class: 'config', ofModule: true },
    });
    const breaker = createBreaker(config);
    expect(breaker.note(thrown(1)).do).toBe('go');
    expect(breaker.note(good(2)).do).toBe('go');
    expect(breaker.note(thrown(1)).do).toBe('go');
    expect(breaker.note(thrown(3))).toMatchObject({ do: 'stop', reason: thrown(3).message });
    expect(createBreaker({ ...config, instances: 1 }).note(thrown(1))).toMatchObject({ do: 'stop' });
    expect(createBreaker(config).note({ ...thrown(1), ofModule: false })).toMatchObject({ do: 'stop' });
  });

  test('two attempts in a row that find nobody at the address of the model pause, also of one instance; a good end between them does not', () => {
    const gone: JudgedAttempt = {
      ...infra(1, 'cannot connect'),
      reason: 'model_unavailable',
      unreachable: true,
    };
    const breaker = createBreaker(config);
    expect(breaker.note(gone).do).toBe('go');
    expect(breaker.note(good(2)).do).toBe('go');
    expect(breaker.note(gone).do).toBe('go');
    expect(breaker.note(gone)).toMatchObject({ do: 'pause', reason: expect.stringMatching(/is gone/) });
    const off = createBreaker({ ...config, consecutive: 0, fraction: 0 });
    for (let n = 0; n < 9; n++) expect(off.note(gone).do).toBe('go');
  });

  const malformed = (n: number): JudgedAttempt => ({
    ...good(n, 0),
    reason: 'format_errors_exceeded',
    class: 'limit',
  });

  test('a run that begins with malformed replies alone pauses, and its probes must do better', () => {
    const breaker = createBreaker(config);
    expect(breaker.note(malformed(1)).do).toBe('go');
    expect(breaker.note(malformed(2)).do).toBe('go');
    expect(breaker.note(malformed(3))).toMatchObject({
      do: 'pause',
      reason: expect.stringMatching(/agent\.protocol/),
    });
    breaker.probe();
    expect(breaker.note(malformed(4)).do).toBe('pause');
    breaker.probe();
    expect(breaker.note(good(5)).do).toBe('resume');
  });

  test('an instance that was under way as it paused, and ends as malformed too, does not resume it', () => {
    const breaker = createBreaker(config);
    for (const n of [1, 2, 3]) breaker.note(malformed(n));
    expect(breaker.note(malformed(4)).do).toBe('go');
    expect(breaker.state).toBe('open');
    expect(breaker.note(good(5)).do).toBe('resume');
  });

  test('malformed replies after a good ending are the instances own', () => {
    const breaker = createBreaker(config);
    breaker.note(good(0));
    for (let n = 1; n < 6; n++) expect(breaker.note(malformed(n)).do).toBe('go');
  });

  test('retries of one instance are not three instances', () => {
    const breaker = createBreaker({ ...config, fraction: 0 });
    for (let i = 0; i < 5; i++) expect(breaker.note(infra(1)).do).toBe('go');
  });

  test('a good ending between them resets the row', () => {
    const breaker = createBreaker(config);
    breaker.note(infra(1));
    breaker.note(infra(2));
    breaker.note(good(3));
    expect(breaker.note(infra(4)).do).toBe('go');
  });

  test('different errors count by share of the window', () => {
    const breaker = createBreaker(config);
    const messages = ['alpha', 'beta', 'gamma', 'delta'];
    const decisions = messages.map((m, i) => breaker.note(infra(i, m)).do);
    expect(decisions).toEqual(['go', 'go', 'go', 'go']);
    breaker.note(good(5));
    expect(breaker.note(infra(6, 'epsilon')).do).toBe('pause');
  });

  test('a config error stops at once, with its message', () => {
    expect(
      createBreaker(config).note({ ...infra(1), reason: 'auth_failed', class: 'config', message: 'bad key' }),
    ).toEqual({ do: 'stop', reason: 'bad key' });
  });

  test('no patch among the first finished pauses with a diagnosis', () => {
    const breaker = createBreaker(config);
    for (let i = 0; i < 3; i++) expect(breaker.note(good(i, 0)).do).toBe('go');
    expect(breaker.note(good(3, 0))).toMatchObject({
      do: 'pause',
      reason: expect.stringContaining('first 4'),
    });
  });

  test('a probe that fails opens it again, one that ends well closes it', () => {
    const breaker = createBreaker(config);
    for (let i = 0; i < 3; i++) breaker.note(infra(i));
    breaker.probe();
    expect(breaker.note(infra(9)).do).toBe('pause');
    breaker.probe();
    expect(breaker.note(good(10)).do).toBe('resume');
    expect(breaker.state).toBe('closed');
  });

  test('cancelled and not-run endings say nothing', () => {
    const breaker = createBreaker({ ...config, consecutive: 1 });
    expect(breaker.note({ ...infra(1), class: 'cancelled', reason: 'cancelled' }).do).toBe('go');
  });

  test('digits and ids do not make a new fingerprint', () => {
    expect(fingerprint(infra(1, 'pull of deadbeef01 took 12 s'))).toBe(
      fingerprint(infra(2, 'pull of cafebabe99 took 7 s')),
    );
  });

  test('a wrong environment in three instances pauses, with the package and how many images were seen', () => {
    const breaker = createBreaker({ ...config, consecutive: 0, fraction: 0 });
    const wrong = (n: number, missingPackage = 'flask'): JudgedAttempt => ({
      ...infra(n),
      reason: 'env_start_failed',
      image: `img-${n}`,
      missingPackage,
    });
    expect(breaker.note(wrong(1)).do).toBe('go');
    expect(breaker.note(wrong(1)).do).toBe('go');
    expect(breaker.note(wrong(2)).do).toBe('go');
    expect(breaker.note(wrong(3))).toEqual({
      do: 'pause',
      reason: 'python package "flask" not importable in 3/3 images',
    });
    const mixed = createBreaker({ ...config, consecutive: 0, fraction: 0 });
    mixed.note({ ...good(9), image: 'img-9' });
    mixed.note(wrong(1));
    mixed.note(wrong(2, 'django'));
    expect(mixed.note(wrong(3))).toMatchObject({
      reason: 'python packages "flask", "django" not importable in 3/4 images',
    });
  });
});
