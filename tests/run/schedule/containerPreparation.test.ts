// Which trial's container is begun while a slot is being emptied.
import { beforeAll, describe, expect, test } from 'vitest';
import { EnvironmentError, type StartRequest } from '../../../src/environment/environment.ts';
import type { StopLadder } from '../../../src/run/control/stop.ts';
import type { PlannedTrial } from '../../../src/run/plannedTrial.ts';
import { createContainerPreparation } from '../../../src/run/schedule/containerPreparation.ts';
import { loadSuite } from '../../../src/suites/suites.ts';
import { openedRun } from '../openedRun.ts';

beforeAll(() => loadSuite('swe-bench'));

function setUp(more: { startupCommand?: string } = {}) {
  const prepared: StartRequest[] = [];
  const state = { why: null as StopLadder['why'], spent: false };
  // Only what a preparation uses.
  const trial = (id: number) =>
    ({
      id,
      image: `image-${id}`,
      instance: { instance_id: `a__a-${id}`, base_commit: 'c0', extra: {} },
      arm: {
        environment: { startup_command: more.startupCommand },
        environmentFactory: { prepare: (request: StartRequest) => prepared.push(request) },
      },
    }) as unknown as PlannedTrial;
  const run = openedRun();
  const ahead = createContainerPreparation({
    ...run,
    budget: { ...run.budget, exhausted: () => state.spent },
    stop: {
      ...run.stop,
      get why() {
        return state.why;
      },
    },
  });
  return { ahead, trial, prepared, state };
}
const ids = (prepared: readonly StartRequest[]) => prepared.map((p) => p.instanceId);

describe('starting ahead', () => {
  test('nothing is begun before a slot is being emptied, then one for each', () => {
    const { ahead, trial, prepared } = setUp();
    for (const id of [1, 2, 3]) ahead.waits(trial(id), 0);
    ahead.taken(trial(1));
    expect(prepared).toEqual([]);
    ahead.slotEmptying();
    expect(ids(prepared)).toEqual(['a__a-2']);
    ahead.slotEmptying();
    ahead.slotEmptying();
    expect(ids(prepared)).toEqual(['a__a-2', 'a__a-3']);
    expect(prepared[0]).toMatchObject({
      image: 'image-2',
      owner: { run: 'r1', attempt: '2.1' },
      baseCommit: 'c0',
    });
  });

  test('what waits for a second attempt comes after what waits for its first, as in the queue', () => {
    const { ahead, trial, prepared } = setUp();
    ahead.waits(trial(1), -1);
    ahead.waits(trial(2), 0);
    ahead.slotEmptying();
    expect(ids(prepared)).toEqual(['a__a-2']);
  });

  test('not once the run stops or its budget is spent', () => {
    const { ahead, trial, prepared, state } = setUp();
    ahead.waits(trial(1), 0);
    state.spent = true;
    ahead.slotEmptying();
    state.spent = false;
    state.why = { reason: 'cancelled', message: '' };
    ahead.slotEmptying();
    expect(prepared).toEqual([]);
  });

  test('giving up fires the signal of what was begun, and it may be begun again', () => {
    const { ahead, trial, prepared } = setUp();
    ahead.waits(trial(1), 0);
    ahead.slotEmptying();
    ahead.giveUp();
    expect(prepared[0]?.signal?.aborted).toBe(true);
    ahead.slotEmptying();
    expect(prepared.map((p) => p.signal?.aborted)).toEqual([true, false]);
  });

  test('an image that could not be had, and a setup that cannot be rendered, are left to the slot', () => {
    const missing = setUp();
    const failure = new EnvironmentError('image_missing', 'no image');
    missing.ahead.waits(missing.trial(1), 0, { failure });
    missing.ahead.slotEmptying();
    const broken = setUp({ startupCommand: 'pip install {{ nobody.knows.this }}' });
    broken.ahead.waits(broken.trial(1), 0);
    broken.ahead.slotEmptying();
    expect([missing.prepared, broken.prepared]).toEqual([[], []]);
  });
});
