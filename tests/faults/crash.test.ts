// kill -9 at named points and at random moments, then resume: nothing sealed runs again, nothing is lost, no container is left.
import { cpSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { CRASH_POINTS } from '../../src/run/control/crash.ts';
import { type CliResult, cli } from '../support/cli.ts';
import { dockerAvailable } from '../support/docker.ts';
import { random } from './random.ts';
import { type Bench, CANARY, expectOthersGood, expectSound, faultBench, GOOD } from './support.ts';

const docker = await dockerAvailable();
let bench: Bench;
afterEach(() => bench?.close());

/** Calls that the server answered for each instance; a resumed trial begins again, so only sealed ones are compared. */
const sealedIds = () =>
  (existsSync(join(bench.root, 'swebatch.db')) && bench.query('SELECT 1 FROM runs').length > 0
    ? bench.trials(bench.id)
    : []
  )
    .filter((t) => t.state === 'sealed')
    .map((t) => t.instance_id);

/** Points at which an engine has something that a killed process leaves behind; at the others the record alone is in question. */
const WITH_CONTAINER: readonly string[] = [
  ...['after_attempt_began', 'after_container_started', 'before_capture', 'before_seal'],
];

describe.skipIf(!docker)('SIGKILL and resume', () => {
  test.each(CRASH_POINTS.filter((p) => p !== 'graded').map((p) => [p]))('at %s [T-50]', async (point) => {
    bench = await faultBench(WITH_CONTAINER.includes(point) ? {} : { inTrees: true });
    const killed = await bench.run(bench.id, [], { SWEBATCH_CRASH_AT: `${point}:2` });
    // before_export is passed once only.
    const reached =
      point === 'before_export' ? await bench.run(bench.id, [], { SWEBATCH_CRASH_AT: point }) : killed;
    if (point !== 'before_export') expect(reached.signal).toBe('SIGKILL');
    const sealedBefore = sealedIds();
    const callsBefore = new Map(sealedBefore.map((id) => [id, bench.server.count(id)]));
    const resumed = await bench.resume(bench.id);
    expect(resumed.code).toBe(0);
    for (const [id, calls] of callsBefore) expect(bench.server.count(id), `${id} ran again`).toBe(calls);
    expect(bench.trials(bench.id).map((t) => t.exit_reason)).toEqual(Array(4).fill('submitted'));
    expect(Object.keys(bench.preds(bench.id)).length).toBe(4);
    const inFlight = bench.query<{ n: number }>(
      `SELECT count(*) AS n FROM model_calls WHERE notes LIKE '%possibly billed%'`,
    )[0]!.n;
    if (point === 'call_began') {
      expect(inFlight).toBeGreaterThanOrEqual(1);
      expect(resumed.stderr).toContain('possibly billed');
    }
    // At most one call a slot can be in flight.
    expect(inFlight).toBeLessThanOrEqual(2);
    await expectSound(bench, bench.id, 4, [killed, resumed]);
  });

  test('T-50 up to twenty times at a random moment: one run, killed and resumed until it is whole [M-65]', async () => {
    const ids = Array.from({ length: 12 }, (_, i) => `c__c-${String(i + 1).padStart(2, '0')}`);
    bench = await faultBench({ ids, config: { workers: 3 } });
    const results: CliResult[] = [];
    for (let kills = 0; kills < 20; kills++) {
      // A process killed in its first moments may have left a record without its tables.
      const before = results.some((r) => r.stderr.includes('trials to do')) ? sealedIds() : [];
      const paid = new Map(before.map((id) => [id, bench.server.count(id)]));
      // The containers of the one before are gone once the next has begun.
      const running = bench.start(bench.id);
      // Now and then while it starts, else once it works: how long a start takes depends on the machine.
      if (random() > 0.2) await Promise.race([running.said('trials to do'), running.done]);
      const moment = new Promise((resolve) => setTimeout(resolve, random() * 2500));
      await Promise.race([moment, running.done]);
      running.process.kill('SIGKILL');
      const result = await running.done;
      results.push(result);
      for (const [id, calls] of paid) expect(bench.server.count(id), `${id} ran again`).toBe(calls);
      if (result.code === 0) break;
    }
    const resumed = await bench.resume(bench.id);
    expect(resumed.code, resumed.stderr).toBe(0);
    expect(bench.trials(bench.id).map((t) => t.exit_reason)).toEqual(Array(12).fill('submitted'));
    expect(
      bench.query("SELECT 1 FROM trials t WHERE t.final_attempt_id IS NULL OR t.state <> 'sealed'"),
    ).toEqual([]);
    // What the server answered and the ledger does not have as answered is said to be possibly billed, at most one a slot and kill.
    const [ledger] = bench.query<{ ok: number; unseen: number }>(
      `SELECT sum(state = 'ok') AS ok, sum(notes LIKE '%possibly billed%') AS unseen FROM model_calls`,
    );
    expect(ledger!.unseen).toBeLessThanOrEqual(3 * results.length);
    expect(bench.server.requests.length).toBeLessThanOrEqual(ledger!.ok + ledger!.unseen);
    expect(bench.server.requests.length).toBeGreaterThanOrEqual(ledger!.ok);
    expectOthersGood(bench, bench.id, []);
    await expectSound(bench, bench.id, 12, [...results, resumed]);
  });
});

describe.skipIf(!docker)('two processes', () => {
  test('T-51 the second on the same run is refused and told who holds it', async () => {
    bench = await faultBench({ scripts: { 'a__a-1': [{ content: 'x', hang: true }] } });
    const first = bench.start(bench.id);
    await bench.server.waitForRequests(1);
    const second = await bench.run(bench.id);
    expect(second.code).toBe(2);
    expect(second.stderr).toMatch(/the run is locked by pid \d+ on .* since/);
    first.process.kill('SIGKILL');
    await first.done;
    bench.server.setScript('a__a-1', ['```bash\necho COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\n```']);
    const third = await bench.resume(bench.id);
    expect(third.stderr).toContain('took over the lock');
    expect(third.code).toBe(0);
    await expectSound(bench, bench.id, 4, [second, third]);
  });

  test('deleting the folder of a run that works lets no second process in [T-51]', async () => {
    const ids = ['a__a-1', 'a__a-2', 'a__a-3', 'a__a-4'];
    const hanging = ids.map((id) => [id, [{ content: 'x', hang: true }]] as const);
    bench = await faultBench({ scripts: Object.fromEntries(hanging) });
    const first = bench.start(bench.id);
    await bench.server.waitForRequests(2);
    rmSync(join(bench.root, bench.id), { recursive: true, force: true });
    const second = await bench.resume(bench.id);
    expect(second.code).toBe(2);
    expect(second.stderr).toContain(`the run is locked by pid ${first.process.pid}`);
    const lock = join(bench.root, '.locks', bench.id, 'run.lock');
    expect(second.stderr).toContain(`remove ${lock}`);
    first.process.kill('SIGKILL');
    await first.done;
    for (const id of ids) bench.server.setScript(id, GOOD);
    const last = await bench.resume(bench.id);
    expect(last.stderr).toContain(`took over the lock of pid ${first.process.pid}`);
    expect(last.code).toBe(0);
    expect(existsSync(lock)).toBe(false);
    expectOthersGood(bench, bench.id, []);
    await expectSound(bench, bench.id, 4, [last]);
  });

  test('T-51 a copy of the folder is locked like the original while its owner lives; the lock of a dead one is taken over', async () => {
    // Both slots stand still, so that nobody writes while the folder is copied.
    const ids = ['a__a-1', 'a__a-2', 'a__a-3', 'a__a-4'];
    const hanging = ids.map((id) => [id, [{ content: 'x', hang: true }]] as const);
    bench = await faultBench({ scripts: Object.fromEntries(hanging) });
    const first = bench.start(bench.id);
    await bench.server.waitForRequests(2);
    const copy = `${bench.root}-copy`;
    cpSync(bench.root, copy, { recursive: true });
    const second = await cli(['resume', bench.id, '-o', copy], { env: { FAKE_KEY: CANARY } });
    expect(second.code).toBe(2);
    expect(second.stderr).toContain(`the run is locked by pid ${first.process.pid} on ${hostname()} since`);
    first.process.kill('SIGKILL');
    await first.done;
    // A lock from before the machine started again, with a pid that somebody else has now.
    const path = join(bench.root, '.locks', bench.id, 'run.lock');
    const lock = JSON.parse(readFileSync(path, 'utf8')) as object;
    writeFileSync(path, JSON.stringify({ ...lock, pid: process.pid, bootId: 'another-boot' }));
    for (const id of ids) bench.server.setScript(id, GOOD);
    const third = await bench.resume(bench.id);
    expect(third.stderr).toContain(`took over the lock of pid ${process.pid}`);
    expect(third.code).toBe(0);
    expectOthersGood(bench, bench.id, []);
    await expectSound(bench, bench.id, 4, [third]);
  });
});
