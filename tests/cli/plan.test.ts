// What a dry run promises: the worst that limits allow, and the disk that images will take.
import { expect, test } from 'vitest';
import { agentConfigSchema } from '../../src/agent/agentConfig.ts';
import { diskRows } from '../../src/cli/terminal/printPlan.ts';
import { runConfigSchema } from '../../src/config/configSchema.ts';
import { parsePolicy } from '../../src/environment/places/imagesConfig.ts';
import { modelConfigSchema } from '../../src/model/modelConfig.ts';
import { countImages, worstDollars, worstSeconds } from '../../src/run/plan/dryRun.ts';
import { diskPlanOf } from '../../src/run/plan/planDisk.ts';
import type { RunRequest } from '../../src/run/plan/planRecord.ts';

interface Arm {
  readonly model?: string;
  readonly prices?: 'free';
  readonly cost?: number;
  readonly wall?: number;
}
/** Only what the two functions read. */
const request = (instances: number, run: object, ...arms: Arm[]): RunRequest =>
  ({
    selected: Array.from({ length: instances }, () => ({})),
    run: runConfigSchema.parse(run),
    arms: arms.map(({ model = 'gpt', prices, cost = 3, wall = 0 }) => ({
      model: modelConfigSchema.parse({ model_name: model, prices }),
      agent: agentConfigSchema.parse({ cost_limit: cost, wall_time_limit_seconds: wall }),
    })),
  }) as unknown as RunRequest;

test('the worst cost is the sum of all limits, under the budget of the run; replies that are written down are free, and a server of one’s own [M-61]', () => {
  expect(worstDollars(request(10, { epochs: 2 }, { cost: 3 }, { cost: 1 }))).toBe(80);
  expect(worstDollars(request(10, { cost_limit: 5 }, { cost: 3 }))).toBe(5);
  expect(worstDollars(request(10, {}, { cost: 0 }))).toBeNull();
  expect(worstDollars(request(10, { cost_limit: 5 }, { cost: 0 }))).toBe(5);
  expect(worstDollars(request(10, {}, { model: 'scripted:x', cost: 0 }))).toBe(0);
  expect(worstDollars(request(10, {}, { model: 'replay:r1', cost: 0 }, { cost: 1 }))).toBe(10);
  expect(worstDollars(request(10, {}, { prices: 'free' }, { cost: 1 }))).toBe(10);
});

test('the worst time fills the slots with trials that take all their time', () => {
  expect(worstSeconds(request(10, { workers: 4 }, { wall: 60 }))).toBe(180);
  expect(worstSeconds(request(1, { workers: 4, epochs: 8 }, { wall: 60 }, { wall: 30 }))).toBe(180);
  expect(worstSeconds(request(10, { workers: 4 }, { wall: 60 }, {}))).toBeNull();
});

test.each([
  ['none', [], 0],
  ['names that two have', ['a', 'b', 'a'], 2],
  ['names of one checksum', ['plumless', 'buckeroo', 'plumless', 'c'], 3],
  [
    'the same name, derived and said',
    [undefined, 'docker.io/swebench/sweb.eval.x86_64.x_1776_x-0:latest'],
    1,
  ],
])('different images are counted: %s', (_, images, count) => {
  const rows = images.map((image, i) => ({
    instance: { instance_id: `x__x-${i}`, repo: '', difficulty: '', ...(image && { image }) },
  }));
  expect(countImages(rows as unknown as RunRequest['selected'])).toBe(count);
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
  const room = (policy: string, freeBytes: number | undefined = 5e9) => ({
    freeBytes,
    floorBytes: 1e9,
    policy: parsePolicy(policy),
  });
  const rows = diskRows(5, diskPlanOf(plan, room('keep')));
  expect(rows.map(([, text]) => text)).toEqual([
    '5: 2 here, 1 to pull, 2 not known',
    'gone: x and 1 more',
    '2.0 GB to download, about 6.0 GB unpacked, without those not known; 5.0 GB free',
    expect.stringMatching(/images do not fit and images.policy is "keep".*1\.0 GB free.*remove-after/),
  ]);
  expect(diskPlanOf(plan, { ...room('keep'), freeBytes: undefined })).toMatchObject({
    freeBytes: null,
    fits: true,
  });
  // The floor counts, and so does what the policy will remove.
  expect(diskPlanOf(plan, room('keep', 6.5e9)).fits).toBe(false);
  expect(diskPlanOf(plan, room('keep', 7e9)).fits).toBe(true);
  expect(diskPlanOf(plan, room('remove-after')).fits).toBe(true);
  expect(diskPlanOf(plan, room('lru:3')).fits).toBe(true);
  expect(diskPlanOf(plan, room('lru:5')).tooMuch).toContain('keep less');
  expect(diskPlanOf(plan, room('remove-after', 0.5e9)).tooMuch).toContain('images.disk_low');
  const many = { ...plan, toPull: 250 };
  const budget = { pulls: 100, seconds: 21_600 };
  expect(diskPlanOf(plan, room('keep'), budget).pullSeconds).toBeNull();
  expect(diskPlanOf(many, room('keep'), budget).pullSeconds).toBe(2 * 21_600);
  expect(diskRows(5, diskPlanOf(many, room('keep'), budget)).at(-1)).toEqual([
    'pulls',
    expect.stringContaining('at least 12 h'),
  ]);
  expect(diskRows(5, null)[0]![1]).toContain('none needed');
  expect(diskRows(5, { problem: 'the engine does not answer' })[0]![1]).toContain('does not answer');
});
