// `swebatch ctl`: a run is changed while it works, by requests from another process.
import { afterEach, describe, expect, test } from 'vitest';
import { startCli } from '../support/cli.ts';
import { dockerAvailable } from '../support/docker.ts';
import { type Bench, bash, containersOf, faultBench, GOOD } from './support.ts';

const docker = await dockerAvailable();
let bench: Bench | undefined;
afterEach(() => bench?.close());

/** Far longer than all that is asked of the run meanwhile, however busy the machine is; nobody waits for its end. */
const SLOW = [bash('sleep 900'), ...GOOD];
const PATIENT = { environment: { timeout: 1000 } };

interface EventOf {
  type: string;
  data: string;
}

describe.skipIf(!docker)('a run that works', () => {
  test('takes pause, slots and cancel from another process, and each is in its record', async () => {
    bench = await faultBench({ ...PATIENT, scripts: { 'a__a-1': SLOW } });
    const { id, root: out } = bench;
    const ctl = (...words: string[]) => startCli(['ctl', id, ...words, '-o', out]).done;
    const running = bench.start(id, ['-w', '1']);
    await bench.server.waitForRequests(1);
    expect((await ctl('pause')).stderr).toContain('paused: nothing new starts');
    expect((await ctl('workers', '2')).stderr).toContain('2 slots, before 1');
    expect((await ctl('workers', 'many')).code).toBe(2);
    expect((await ctl('resume')).stderr).toContain('going on');
    // The three others pass through the second slot while the first trial still sleeps.
    await running.said(/a__a-4 submitted/);
    const cancelled = await ctl('cancel', 'a__a-1');
    expect(cancelled.stderr).toContain('a__a-1 is cancelled, and its container is gone');
    const ended = await running.done;
    expect(ended.code).toBe(3);
    expect(ended.stderr).toContain('1 cancelled');
    expect(containersOf(id)).toEqual([]);

    const lines = bench.trials(id).map((l) => [l.instance_id, l.state, l.exit_reason]);
    expect(lines).toContainEqual(['a__a-1', 'pending', 'cancelled']);
    const events = bench.query<EventOf>('SELECT type, data FROM events ORDER BY seq');
    const first = (type: string) => events.findIndex((one) => one.type === type);
    const second = events.findIndex((one, n) => one.type === 'trial_started' && n > first('trial_started'));
    expect(second).toBeGreaterThan(first('resumed'));
    const asked = events.filter((one) => one.type === 'control').map((one) => JSON.parse(one.data));
    expect(asked.map((one) => [one.command, one.done])).toEqual([
      ['pause', true],
      ['workers', true],
      ['resume', true],
      ['cancel', true],
    ]);
    expect(asked[0].by).toMatch(/^.+@.+ \(terminal\)$/);

    const top = await ctl();
    expect(top.stdout).toContain('\n2 slots\nmodel of fake-1 0 calls out\n');
    expect(top.stderr).toContain(`${id} has ended: incomplete`);

    const late = await ctl('pause');
    expect(late.code).toBe(2);
    expect(late.stderr).toContain(`no process works on ${id}; it is incomplete`);
    expect(late.stderr).toContain(`swebatch resume ${id}`);
    bench.server.setScript('a__a-1', GOOD);
    expect((await bench.resume(id)).code).toBe(0);
  });

  test('ends like a budget stop when its budget is lowered; a killed process leaves a sentence', async () => {
    bench = await faultBench({ ...PATIENT, scripts: { 'a__a-1': SLOW, 'a__a-2': SLOW } });
    const { id, root: out } = bench;
    const ctl = (...words: string[]) => startCli(['ctl', id, ...words, '-o', out]).done;
    const killed = bench.start(id, ['-w', '2']);
    await bench.server.waitForRequests(2);
    // It cannot answer, and then it never will.
    killed.process.kill('SIGSTOP');
    const asked = ctl('workers', '1');
    await expect.poll(() => bench!.query('SELECT 1 FROM controls').length).toBe(1);
    killed.process.kill('SIGKILL');
    const { code, stderr } = await asked;
    expect(code).toBe(2);
    expect(stderr).toContain('ended before it answered; nothing was done');

    bench.server.setScript('a__a-1', [bash('sleep 4'), ...GOOD]);
    bench.server.setScript('a__a-2', [bash('sleep 4'), ...GOOD]);
    const before = bench.server.requests.length;
    const resumed = bench.resume(id, ['-w', '2']);
    await bench.server.waitForRequests(before + 2);
    const lowered = await ctl('budget', '0');
    expect(lowered.stderr).toContain('the budget is $0.00, before none');
    expect(lowered.stderr).toContain('the run ends');
    const ended = await resumed;
    expect(ended.code).toBe(4);
    expect(ended.stderr).toContain('run budget $0.00 reached');
    expect(containersOf(id)).toEqual([]);
  });
});
