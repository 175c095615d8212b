// What containers and the daemon do to attempts, through the whole program: what the model is shown, what the record says, what is left.
import { afterEach, describe, expect, test } from 'vitest';
import { LABELS } from '../../src/environment/owner.ts';
import { docker, dockerAvailable, watchDocker } from '../support/docker.ts';
import { type Bench, bash, containersOf, expectSound, faultBench, GOOD, SUBMIT } from './support.ts';

const available = await dockerAvailable();
let bench: Bench;
afterEach(() => bench?.close());

/** Everything the model was ever sent, as one text. */
const shown = () => JSON.stringify(bench.server.requests.map((r) => r.body));
const attempts = (columns: string) =>
  bench.query<Record<string, unknown>>(`SELECT ${columns} FROM attempts ORDER BY id`);
const ONE = { ids: ['a__a-1'] };
/** Resolves when the container of the run runs `marker`: its command is then under way. */
async function runningWith(runId: string, marker: string): Promise<string> {
  for (;;) {
    for (const id of containersOf(runId)) {
      const top = await docker
        .getContainer(id)
        .top()
        .catch(() => ({ Processes: [] as string[][] }));
      if ((top.Processes as string[][]).some((p) => p.join(' ').includes(marker))) return id;
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

describe.skipIf(!available)('environment faults', () => {
  test('T-23 a command over the memory limit is told to the model and counted, and the agent goes on', async () => {
    bench = await faultBench({
      ...ONE,
      scripts: { 'a__a-1': [bash('exec python3 -c "x = bytearray(10**9)"'), ...GOOD] },
      environment: { memory: '256m' },
    });
    const result = await bench.run(bench.id);
    expect(result.code).toBe(0);
    expect(shown()).toContain('command killed: memory limit 256 MiB reached (rc 137)');
    expect(attempts('exit_reason, oom_kills')).toEqual([{ exit_reason: 'submitted', oom_kills: 1 }]);
    await expectSound(bench, bench.id, 1, [result]);
  });

  test('T-24 a container removed in mid-command: no word of it to the model, no call after it, one more attempt [M-67]', async () => {
    bench = await faultBench({
      ...ONE,
      scripts: {
        'a__a-1': [bash('[ -e /tmp/again ] || sleep 271828'), ...GOOD.slice(1)],
      },
    });
    const running = bench.start(bench.id);
    const id = await runningWith(bench.id, '271828');
    const calls = bench.server.count('a__a-1');
    // The second attempt passes the same command at once.
    bench.server.setScript('a__a-1', GOOD);
    await docker.getContainer(id).remove({ force: true });
    const result = await running.done;
    expect(result.code).toBe(0);
    expect(calls).toBe(1);
    // The three calls of the second attempt and none between.
    expect(bench.server.count('a__a-1')).toBe(1 + 3);
    expect(shown()).not.toMatch(/No such container|is not running|was removed|Error response/);
    const [first, second] = attempts('exit_reason, exit_detail, error_evidence, container_id, steps');
    expect(first).toMatchObject({ exit_reason: 'env_died', exit_detail: 'killed' });
    // The daemon kills first and forgets a moment later: either may be what is found.
    const { state } = JSON.parse(first!.error_evidence as string) as { state: unknown };
    if (state !== 'removed') expect(state).toMatchObject({ Running: false, ExitCode: 137 });
    expect(second).toMatchObject({ exit_reason: 'submitted' });
    expect(second!.container_id).not.toBe(first!.container_id);
    await expectSound(bench, bench.id, 1, [result]);
  });

  test('T-24 a killed PID 1 twice: state and exit code are in the record, and the policy is used up after one retry', async () => {
    bench = await faultBench({ ...ONE, scripts: { 'a__a-1': [bash('sleep 271829')] } });
    const running = bench.start(bench.id);
    const first = await runningWith(bench.id, '271829');
    await docker.getContainer(first).kill();
    let second = first;
    while (second === first) second = await runningWith(bench.id, '271829');
    await docker.getContainer(second).kill();
    const result = await running.done;
    expect(result.code).toBe(3);
    const rows = attempts('exit_reason, error_evidence');
    expect(rows.map((r) => r.exit_reason)).toEqual(['env_died', 'env_died']);
    for (const row of rows)
      expect(JSON.parse(row.error_evidence as string)).toMatchObject({
        state: { Status: 'exited', ExitCode: 137 },
      });
    expect(bench.server.count('a__a-1')).toBe(2);
    await expectSound(bench, bench.id, 1, [result]);
  });

  test('T-25 a lifetime that ends is expired, not output', async () => {
    bench = await faultBench({
      ...ONE,
      scripts: { 'a__a-1': [bash('sleep 60')] },
      environment: { container_timeout: 20, timeout: 50 },
      config: { retry: { attempts: 1, backoff_s: 0 } },
    });
    const result = await bench.run(bench.id);
    expect(result.code).toBe(3);
    expect(attempts('exit_reason, exit_detail')).toEqual([
      { exit_reason: 'env_died', exit_detail: 'expired' },
    ]);
    expect(bench.server.count('a__a-1')).toBe(1);
  });

  test('T-26 a timeout is told to the model with what was printed until then', async () => {
    bench = await faultBench({
      ...ONE,
      scripts: { 'a__a-1': [bash('echo partial; sleep 9999 & setsid sleep 9999 & sleep 9999'), ...GOOD] },
      environment: { timeout: 5 },
    });
    const result = await bench.run(bench.id);
    expect(result.code).toBe(0);
    // In the words of the seeds' template; the record says it too.
    expect(shown()).toContain(
      'timed out and has been killed.\\nThe output of the command was:\\n <output>\\npartial',
    );
    expect(
      bench.query('SELECT exit_code, CAST(output AS TEXT) AS output FROM commands WHERE timed_out = 1'),
    ).toEqual([{ exit_code: -1, output: 'partial\n' }]);
    await expectSound(bench, bench.id, 1, [result]);
  });

  test('T-38 a setup that fails: its end is in the record, the model is never called, nothing is paid [M-47]', async () => {
    bench = await faultBench({
      ...ONE,
      environment: { startup_command: 'echo "building {{ instance_id }}"; echo no compiler; exit 1' },
      config: { retry: { attempts: 1, backoff_s: 0 } },
    });
    const result = await bench.run(bench.id);
    expect(result.code).toBe(3);
    expect(attempts('exit_reason, error_message, steps')).toEqual([
      {
        exit_reason: 'env_start_failed',
        error_message: 'setup failed (rc 1): building a__a-1\nno compiler',
        steps: 0,
      },
    ]);
    expect(bench.server.requests.length).toBe(0);
    expect(
      bench.query('SELECT count(*) AS calls, coalesce(sum(cost_nano), 0) AS cost FROM model_calls'),
    ).toEqual([{ calls: 0, cost: 0 }]);
    await expectSound(bench, bench.id, 1, [result]);
  });

  test('T-38 a setup that hangs ends with environment.start_timeout', async () => {
    bench = await faultBench({
      ...ONE,
      environment: { startup_command: 'sleep 600', start_timeout: 1 },
      config: { retry: { attempts: 1, backoff_s: 0 } },
    });
    const result = await bench.run(bench.id);
    expect(result.code).toBe(3);
    expect(attempts('exit_reason, error_message')).toEqual([
      {
        exit_reason: 'env_start_failed',
        error_message: expect.stringMatching(/^setup failed .*timed out after 1s/),
      },
    ]);
    expect(bench.server.requests.length).toBe(0);
  });

  test('what a setup that succeeds did is there for the agent and is not its work [M-47]', async () => {
    bench = await faultBench({
      ...ONE,
      scripts: { 'a__a-1': [bash('cat made-by-setup; echo mine > mine'), SUBMIT] },
      environment: { startup_command: 'echo "for {{ instance_id }}" > made-by-setup' },
      config: { patch: 'captured' },
    });
    const result = await bench.run(bench.id);
    expect(result.code).toBe(0);
    expect(shown()).toContain('for a__a-1');
    const patch = bench.preds(bench.id)['a__a-1']!.model_patch;
    expect(patch).toContain('+++ b/mine');
    expect(patch).not.toContain('made-by-setup');
    await expectSound(bench, bench.id, 1, [result]);
  });

  test('T-49 an attempt to reach the network fails fast, is flagged with its count, and ends nothing', async () => {
    bench = await faultBench({
      ...ONE,
      scripts: {
        'a__a-1': [
          bash('curl -sS https://github.com 2>&1; git clone https://github.com/x/y /tmp/y 2>&1'),
          bash(
            'pip download flask==3.0 2>&1; python3 -c "import socket; socket.create_connection((\'example.com\', 80))" 2>&1',
          ),
          ...GOOD,
        ],
      },
      environment: { timeout: 40 },
    });
    const result = await bench.run(bench.id);
    expect(result.code).toBe(0);
    expect(bench.query('SELECT 1 FROM commands WHERE timed_out = 1')).toEqual([]);
    const [row] = attempts('exit_reason, suspicion');
    expect(row!.exit_reason).toBe('submitted');
    const flags = JSON.parse(row!.suspicion as string) as { rule: string; count: number }[];
    expect(flags.map((f) => f.rule).sort()).toEqual([
      'downloads_package',
      'fetches_upstream',
      'network_attempt',
    ]);
    expect(flags.find((f) => f.rule === 'network_attempt')!.count).toBe(2);
  });
});

describe.skipIf(!available)('containers of a slot', () => {
  test('the next one is created while the last one is being removed; none is left, none has a network of its own [T-37]', async () => {
    bench = await faultBench({ ids: ['a__a-1', 'a__a-2', 'a__a-3'], config: { workers: 1 } });
    const containers = await watchDocker({
      type: ['container'],
      event: ['create', 'destroy'],
      label: [`swebatch.run=${bench.id}`],
    });
    const networks = await watchDocker({ type: ['network'], event: ['connect'] });
    const result = await bench.run(bench.id, ['-w', '1']);
    expect(result.code).toBe(0);
    const count = (action: string) => containers.seen.filter((e) => e.Action === action).length;
    await containers.until(() => count('destroy') > 0 && count('destroy') === count('create'));
    for (const watch of [containers, networks]) watch.close();
    const order = containers.seen.map((e) => `${e.Action} ${e.Actor.Attributes['swebatch.attempt']}`);
    // The first makes the sealed image where it was not there yet: only what belongs to attempts counts.
    const at = (what: string) => order.lastIndexOf(what);
    const names = [...new Set(order.map((line) => line.split(' ')[1]!))];
    expect(names.length).toBe(3);
    for (const [i, name] of names.entries()) {
      expect(at(`destroy ${name}`)).toBeGreaterThan(at(`create ${name}`));
      const next = order.indexOf(`create ${names[i + 1]}`);
      if (next < 0) continue;
      // When it was asked for: an engine may take longer to create one than to remove one.
      const asked = Date.parse(containers.seen[next]!.Actor.Attributes[LABELS.started]!);
      expect(asked).toBeLessThan(containers.seen[at(`destroy ${name}`)]!.timeNano / 1e6);
    }
    // Of all networks, also of those that other runs make meanwhile, ours know none, or the one that is called so.
    const ours = new Set(containers.seen.map((e) => e.Actor.ID));
    const joined = networks.seen.filter((e) => ours.has(e.Actor.Attributes.container ?? ''));
    expect(joined.map((e) => e.Actor.Attributes.name).filter((name) => name !== 'none')).toEqual([]);
    await expectSound(bench, bench.id, 3, [result]);
  });
});
