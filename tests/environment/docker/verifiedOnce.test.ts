// What a sealed image holds does not change: one container of it is looked at, and those after it start without.
import Docker from 'dockerode';
import { describe, expect, test } from 'vitest';
import { createSealer } from '../../../src/environment/docker/seal.ts';
import { environmentConfigSchema } from '../../../src/environment/environments.ts';

const config = environmentConfigSchema.parse({});
const sealed = { image: 'sha256:one', fingerprint: 'f1' };
const first = { baseCommit: 'b1', untouched: true };

/** A sealer, and what the scripts of its containers say, one after the other. */
function asked(...said: readonly string[]) {
  const { verify } = createSealer(new Docker());
  let looks = 0;
  const run = async () => {
    const output = said[Math.min(looks++, said.length - 1)]!;
    return { output, code: 0, raw: Buffer.from(output), timedOut: false, omittedBytes: 0 };
  };
  return {
    looks: () => looks,
    verify: (of = first, image = sealed) => verify(run, config, image, of),
  };
}

describe('a sealed image', () => {
  test('is looked at in its first container alone, and what was noted there is said of each', async () => {
    const { verify, looks } = asked("note HEAD is the image builder's commit\nsealed f1");
    const notes = ["HEAD is the image builder's commit"];
    expect(await verify()).toEqual({ reason: undefined, notes });
    expect(await verify()).toEqual({ reason: undefined, notes });
    expect(looks()).toBe(1);
  });

  test('is looked at again for another base commit, and another image too', async () => {
    const { verify, looks } = asked('sealed f1');
    await verify();
    await verify({ ...first, baseCommit: 'b2' });
    await verify(first, { ...sealed, image: 'sha256:two' });
    expect(looks()).toBe(3);
  });

  test('is looked at in each container in which more than the image was at work', async () => {
    const { verify, looks } = asked('sealed f1', 'sealed f2');
    await verify();
    const reason = 'the repository differs from the sealed one';
    expect(await verify({ ...first, untouched: false })).toMatchObject({ reason });
    expect(looks()).toBe(2);
  });

  test('that could not be verified is looked at again', async () => {
    const { verify, looks } = asked('failed still there: ref refs/tags/v9', 'sealed f1');
    expect(await verify()).toMatchObject({ reason: 'still there: ref refs/tags/v9' });
    expect(await verify()).toMatchObject({ reason: undefined });
    expect(looks()).toBe(2);
  });
});
