// What a dry run promises: the worst that limits allow, and the disk that images will take.
import { expect, test } from 'vitest';
import { agentConfigSchema } from '../../src/agent/config.ts';
import { diskPlanOf, diskRows } from '../../src/cli/planDisk.ts';
import { worstDollars, worstSeconds } from '../../src/cli/printPlan.ts';
import { runConfigSchema } from '../../src/config/run.ts';
import { modelConfigSchema } from '../../src/model/config.ts';
import type { RunRequest } from '../../src/runner/plan.ts';

interface Arm {
  readonly model?: string;
  readonly cost?: number;
  readonly wall?: number;
}
/** Only what the two functions read. */
const request = (instances: number, run: object, ...arms: Arm[]): RunRequest =>
  ({
    selected: Array.from({ length: instances }, () => ({})),
    run: runConfigSchema.parse(run),
    arms: arms.map(({ model = 'gpt', cost = 3, wall = 0 }) => ({
      model: modelConfigSchema.parse({ model_name: model }),
      agent: agentConfigSchema.parse({ cost_limit: cost, wall_time_limit_seconds: wall }),
    })),
  }) as unknown as RunRequest;

test('the worst cost is the sum of all limits, under the budget of the run; replies that are written down are free', () => {
  expect(worstDollars(request(10, { epochs: 2 }, { cost: 3 }, { cost: 1 }))).toBe(80);
  expect(worstDollars(request(10, { cost_limit: 5 }, { cost: 3 }))).toBe(5);
  expect(worstDollars(request(10, {}, { cost: 0 }))).toBeNull();
  expect(worstDollars(request(10, { cost_limit: 5 }, { cost: 0 }))).toBe(5);
  expect(worstDollars(request(10, {}, { model: 'scripted:x', cost: 0 }))).toBe(0);
  expect(worstDollars(request(10, {}, { model: 'replay:r1', cost: 0 }, { cost: 1 }))).toBe(10);
});

test('the worst time fills the slots with trials that take all their time', () => {
  expect(worstSeconds(request(10, { workers: 4 }, { wall: 60 }))).toBe(180);
  expect(worstSeconds(request(1, { workers: 4, epochs: 8 }, { wall: 60 }, { wall: 30 }))).toBe(180);
  expect(worstSeconds(request(10, { workers: 4 }, { wall: 60 }, {}))).toBeNull();
});

test('images that do not fit the disk are said, with what to do', () => {
  const plan = {
    images: [{ image: 'a', state: 'to_pull', layers: [], problem: undefined }] as const,
    here: 2,
    toPull: 1,
    estimated: 0,
    downloadBytes: 2e9,
    diskBytes: 6e9,
    unknown: [
      { image: 'x', problem: 'gone' },
      { image: 'y', problem: 'gone' },
    ],
  };
  const rows = diskRows(5, diskPlanOf(plan, 5e9));
  expect(rows.map(([, text]) => text)).toEqual([
    '5: 2 here, 1 to pull, 2 not known',
    'gone: x and 1 more',
    '2.0 GB to download, about 6.0 GB unpacked, without those not known; 5.0 GB free',
    'that does not fit: take fewer, or images.policy remove-after or lru:<GB>',
  ]);
  expect(diskPlanOf(plan, undefined)).toMatchObject({ freeBytes: null, fits: true });
  expect(diskRows(5, null)[0]![1]).toContain('none needed');
  expect(diskRows(5, { problem: 'the engine does not answer' })[0]![1]).toContain('does not answer');
});
