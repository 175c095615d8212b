// An agent that ends its own container: the first time it has a fresh one, the second time that is its result. Who is ended from outside is
// infra as often as it happens.
import { afterEach, describe, expect, test } from 'vitest';
import { docker, dockerAvailable } from '../support/docker.ts';
import {
  type Bench,
  bash,
  containersOf,
  expectOthersGood,
  expectSound,
  faultBench,
  GOOD,
} from './support.ts';

const available = await dockerAvailable();
let bench: Bench;
afterEach(() => bench?.close());

interface Row {
  readonly exit_reason: string;
  readonly exit_class: string;
  readonly exit_detail: string | null;
  readonly flags: string;
}
const attempts = () =>
  bench.query<Row>(
    `SELECT exit_reason, exit_class, exit_detail, (SELECT coalesce(group_concat(json_extract(value, '$.rule')), '') FROM json_each(suspicion)) AS flags
     FROM attempts a JOIN trials t ON t.id = a.trial_id JOIN instances i ON i.id = t.instance_pk WHERE i.instance_id = 'a__a-1' ORDER BY a.id`,
  );
const infra = (exit_reason: string, exit_detail: string | null) => ({
  exit_reason,
  exit_class: 'infra',
  exit_detail,
  flags: 'ended_environment',
});
const own = (exit_detail: string) => ({
  exit_reason: 'env_ended_by_agent',
  exit_class: 'agent',
  exit_detail,
  flags: 'ended_environment',
});
/** One attempt by the policy, and breakers that would pause at the first infra: neither is touched. */
const STRICT = { config: { retry: { attempts: 1, backoff_s: 0 }, breaker: { consecutive: 1 } } };
/** The wrapper of plain exec tells the end on a stream that a process of the same user can open. */
const FORGE = String.raw`for p in /proc/[0-9]*; do case "$(tr '\0' ' ' <$p/cmdline)" in *swebatch-exec*) printf '\036end NaN\036' >$p/fd/2;; esac; done; sleep 5`;
/** The kernel's victim is what holds the container together, not the one that took the memory. */
const OOM = `echo 1000 >/proc/1/oom_score_adj; echo 0 >/proc/self/oom_score_adj; for i in 1 2 3 4 5 6 7 8; do python3 -c 'import time; x = bytearray(60 * 10**6); time.sleep(30)' & done; wait`;

describe.skipIf(!available)('an agent that ends its own container', () => {
  test.each([true, false])(
    'who kills whatever it can works on and submits, supervisor %s [T-61]',
    async (supervisor) => {
      const kills = [
        'sleep 1000 & kill -9 -1',
        'kill -TERM 1',
        '(sleep 0.3; kill -9 -1) & sleep 0.1; sleep 2',
      ];
      bench = await faultBench({
        ids: ['a__a-1'],
        scripts: { 'a__a-1': [...kills.map(bash), ...GOOD] },
        environment: { supervisor },
        ...STRICT,
      });
      const result = await bench.run(bench.id);
      expect(result.code, result.stderr).toBe(0);
      expect(attempts()).toEqual([
        { exit_reason: 'submitted', exit_class: 'agent', exit_detail: null, flags: '' },
      ]);
      expectOthersGood(bench, bench.id, []);
    },
  );

  test.each([
    [
      'fills the disk',
      'head -c 60M /dev/zero > /big; sleep 20',
      { disk: '30m' },
      'disk_full',
      null,
      'disk_full',
    ],
    ['makes the kernel end it', OOM, { memory: '256m' }, 'env_died', 'oom', 'oom'],
    ['forges the end of a command', FORGE, { supervisor: false }, 'env_died', 'forged', 'forged'],
  ])(
    '%s: once more in a fresh container, then that is its result [T-62]',
    async (_what, command, environment, reason, first, second) => {
      bench = await faultBench({
        ids: ['a__a-1', 'a__a-2'],
        scripts: { 'a__a-1': [bash(command), ...GOOD] },
        environment,
        ...STRICT,
      });
      const result = await bench.run(bench.id);
      expect(attempts()).toEqual([infra(reason, first), own(second)]);
      expect(result.code, result.stderr).toBe(0);
      expect(result.stderr).not.toContain('paused');
      expect(bench.preds(bench.id)['a__a-1']).toMatchObject({ model_patch: '' });
      expectOthersGood(bench, bench.id);
      await expectSound(bench, bench.id, 2, [result]);
    },
  );

  test('who does it once and then works has its work [T-62]', async () => {
    bench = await faultBench({
      ids: ['a__a-1'],
      scripts: { 'a__a-1': [bash('head -c 60M /dev/zero > /big; sleep 20'), ...GOOD] },
      environment: { disk: '30m' },
      ...STRICT,
    });
    const running = bench.start(bench.id);
    await running.said(/disk_full/);
    bench.server.setScript('a__a-1', GOOD);
    expect((await running.done).code).toBe(0);
    expect(attempts()).toEqual([
      infra('disk_full', null),
      { exit_reason: 'submitted', exit_class: 'agent', exit_detail: null, flags: '' },
    ]);
  });

  test('an end from outside between two of its own stays infra, also in a later sitting [T-62]', async () => {
    bench = await faultBench({
      ids: ['a__a-1'],
      scripts: { 'a__a-1': [bash('sleep 271830')] },
      environment: { disk: '30m' },
      config: { retry: { attempts: 1, backoff_s: 0 } },
    });
    const killed = async (start: () => Promise<{ code: number | null }>) => {
      const before = new Set(containersOf(bench.id));
      const running = start();
      for (;;) {
        const busy = await Promise.all(
          containersOf(bench.id)
            .filter((id) => !before.has(id))
            .map(async (id) => {
              const top = await docker
                .getContainer(id)
                .top()
                .catch(() => ({ Processes: [] as string[][] }));
              return (top.Processes as string[][]).some((p) => p.join(' ').includes('271830')) ? id : '';
            }),
        );
        const id = busy.find(Boolean);
        if (id) {
          await docker.getContainer(id).kill();
          break;
        }
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
      return running;
    };
    const outside = { exit_reason: 'env_died', exit_class: 'infra', exit_detail: 'killed', flags: '' };
    const first = await killed(() => bench.run(bench.id));
    expect(first.code).toBe(3);
    expect((await killed(() => bench.resume(bench.id, ['--retry', 'infra']))).code).toBe(3);
    expect(attempts()).toEqual([outside, outside]);
    bench.server.setScript('a__a-1', [bash('head -c 60M /dev/zero > /big; sleep 20')]);
    expect((await bench.resume(bench.id, ['--retry', 'infra'])).code).toBe(0);
    expect(attempts()).toEqual([outside, outside, infra('disk_full', null), own('disk_full')]);
    await expectSound(bench, bench.id, 1);
  });
});
