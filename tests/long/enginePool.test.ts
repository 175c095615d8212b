// Three engines of the test's own under 60 trials: one is killed and comes back.
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type LeaseRow, leasesOfRun } from '../../src/store/live/leases.ts';
import { openStore, type Store } from '../../src/store/open.ts';
import { runByName } from '../../src/store/records/runs.ts';
import { attemptsOf, trialsOf } from '../../src/store/records/trials.ts';
import { rawRow } from '../dataset/rows.ts';
import { baseCommit, loadBase, SUBMITS, says } from '../support/baseRuns.ts';
import { type RunningCli, startCli, tempDir } from '../support/cli.ts';
import { dockerAvailable } from '../support/docker.ts';
import { BASE_IMAGE } from '../support/dockerEnvironment.ts';
import { type SecondEngine, secondEngineAvailable, startSecondEngine } from '../support/secondEngine.ts';

const TRIALS = 60;
const SLOTS = 4;
const WITHIN = 1.15;
const ready = secondEngineAvailable() && (await dockerAvailable());

/** Slots of one engine: a trial may begin there from `from` until `until`. */
interface Offered {
  readonly from: number;
  readonly until: number;
  /** What runs there at `until` is lost and known to be lost at this moment; undefined: it goes on to its end. */
  readonly lostAt?: number;
}

/** When the last trial ends, if each slot takes the next one as soon as it is free. */
function listScheduled(durations: readonly number[], offered: readonly Offered[]): number {
  const slots = offered.flatMap((one) => Array.from({ length: SLOTS }, () => ({ ...one, free: one.from })));
  const open = durations.map((duration) => ({ duration, from: 0 }));
  let last = 0;
  while (open.length > 0) {
    const [slot] = slots.filter(({ free, until }) => free < until).toSorted((a, b) => a.free - b.free);
    if (!slot) return Number.POSITIVE_INFINITY;
    const first = open.findIndex(({ from }) => from <= slot.free);
    if (first < 0) {
      slot.free = Math.min(...open.map(({ from }) => from));
      continue;
    }
    const [trial] = open.splice(first, 1);
    const end = slot.free + trial!.duration;
    slot.free = end;
    if (slot.lostAt !== undefined && end > slot.until) open.push({ ...trial!, from: slot.lostAt });
    else last = Math.max(last, end);
  }
  return last;
}

test('the bound is that of list scheduling over slots that come and go', () => {
  const always = { from: 0, until: Number.POSITIVE_INFINITY };
  expect(listScheduled(Array(8).fill(10), [always])).toBe(20);
  expect(listScheduled(Array(8).fill(10), [always, { from: 5, until: 6 }])).toBe(15);
  // Four are lost at 5 and run again from 30 on.
  expect(listScheduled(Array(8).fill(10), [always, { from: 0, until: 5, lostAt: 30 }])).toBe(40);
});

describe.skipIf(!ready)('an engine that dies and comes back (needs root and dockerd)', () => {
  let engines: SecondEngine[];
  let dir: string;
  beforeAll(async () => {
    dir = tempDir('swebatch-pool-');
    engines = [];
    for (let i = 0; i < 3; i++) {
      const engine = await startSecondEngine(1500);
      engines.push(engine);
      await loadBase(engine, dir, BASE_IMAGE);
    }
  }, 300_000);
  afterAll(async () => {
    for (const engine of engines ?? []) await engine.close();
    rmSync(dir, { recursive: true });
  });

  const address = ({ socket }: SecondEngine) => `unix://${socket}`;
  const out = () => join(dir, 'out');
  function reading<T>(work: (store: Store, runId: number) => T): T {
    const store = openStore(join(out(), 'swebatch.db'), { readonly: true });
    try {
      return work(store, runByName(store, 'r1')!.id);
    } finally {
      store.close();
    }
  }

  async function start(): Promise<RunningCli> {
    const base_commit = await baseCommit();
    const rows = Array.from({ length: TRIALS }, (_, i) =>
      JSON.stringify(rawRow(`x__x-${i + 1}`, { image: BASE_IMAGE, base_commit })),
    );
    writeFileSync(join(dir, 'd.jsonl'), rows.join('\n'));
    const replies = [says('echo hi > new.txt; sleep 20'), SUBMITS];
    writeFileSync(join(dir, 'replies.json'), JSON.stringify({ replies }));
    const hosts = engines.map((engine) => ({ host: address(engine), slots: SLOTS }));
    const config = {
      agent: { step_limit: 8, cost_limit: 0 },
      environment: { pull: 'never', memory: '128m', seal_history: false, hosts },
      images: { disk_low: '0', disk_high: '0' },
      run: {
        ...{ workers: 3 * SLOTS, disk_floor: '0', retry: { attempts: 1, backoff_s: 0 } },
        breaker: { consecutive: 0, fraction: 0 },
      },
    };
    writeFileSync(join(dir, 'config.yaml'), JSON.stringify(config));
    const args = ['run', '--subset', join(dir, 'd.jsonl'), '-c', join(dir, 'config.yaml')];
    const model = ['-m', `scripted:${join(dir, 'replies.json')}`, '--progress', 'plain'];
    return startCli([...args, ...model, '-o', out(), '--run-id', 'r1'], { env: { DOCKER_CONFIG: dir } });
  }

  /** Resolves when so many trials are sealed. */
  async function sealed(running: RunningCli, count: number): Promise<void> {
    const now = () =>
      reading((store, id) => trialsOf(store, id).filter(({ state }) => state === 'sealed').length);
    while (now() < count) {
      expect(running.process.exitCode).toBeNull();
      await new Promise((turn) => setTimeout(turn, 250));
    }
  }

  /** Resolves when a container of the engine is in this command. */
  async function inCommand({ docker }: SecondEngine, command: string): Promise<void> {
    for (;;) {
      const tops = (await docker.listContainers()).map(({ Id }) =>
        docker
          .getContainer(Id)
          .top()
          .catch(() => ({ Processes: [] as string[][] })),
      );
      if ((await Promise.all(tops)).some(({ Processes }) => JSON.stringify(Processes).includes(command)))
        return;
      await new Promise((turn) => setTimeout(turn, 100));
    }
  }

  test('no trial is lost or sealed twice, no container stays, and the slots that are there are used [T-35]', async () => {
    const [killed] = engines as [SecondEngine, SecondEngine, SecondEngine];
    const running = await start();
    await running.said('x__x-1 submitted');
    await sealed(running, 20);
    await inCommand(killed, 'sleep 20');
    const killedAt = Date.now();
    await killed.kill();
    await running.said(`engine ${address(killed)} is lost`);
    await expect
      .poll(() => reading((store, id) => leasesOfRun(store, id)).filter(({ how }) => how === 'lost').length, {
        timeout: 90_000,
      })
      .toBeGreaterThan(0);
    // Its containers are no longer tried one by one: what it still holds is removed because it is back.
    await running.said(/container \S+ is still there/);
    await killed.start();
    await running.said(`engine ${address(killed)} is back; removed`);
    const backAt = Date.now();
    const result = await running.done;
    expect(result.code, result.stderr).toBe(0);

    const attempts = reading((store, id) => trialsOf(store, id).map((trial) => attemptsOf(store, trial.id)));
    expect(attempts).toHaveLength(TRIALS);
    for (const of of attempts) expect(of.filter((a) => a.exit_reason === 'submitted')).toHaveLength(1);
    const cut = attempts.flat().filter((a) => a.exit_reason !== 'submitted');
    expect(cut.length).toBeGreaterThan(0);
    expect(cut.length).toBeLessThanOrEqual(SLOTS);
    for (const one of cut) {
      expect(one).toMatchObject({ exit_reason: 'env_died', exit_detail: 'daemon_lost' });
      expect(JSON.parse(one.error_evidence!)).toMatchObject({ engine: address(killed) });
    }
    expect(reading((store, id) => trialsOf(store, id).map(({ state }) => state))).toEqual(
      Array(TRIALS).fill('sealed'),
    );
    for (const engine of engines) expect(await engine.docker.listContainers({ all: true })).toEqual([]);

    const leases = reading((store, id) => leasesOfRun(store, id));
    const began = Math.min(...leases.map(({ began_at }) => Date.parse(began_at)));
    const at = (time: number) => (time - began) / 1000;
    const ms = ({ began_at, ended_at }: LeaseRow) => Date.parse(ended_at!) - Date.parse(began_at);
    const durations = leases.filter(({ how }) => how === 'closed').map((lease) => ms(lease) / 1000);
    expect(durations).toHaveLength(TRIALS);
    const cutOff = leases.filter(
      ({ how, engine }) => how === 'lost' || (how === 'moved' && engine === address(killed)),
    );
    const lost = cutOff.map(({ ended_at }) => at(Date.parse(ended_at!)));
    const bound = listScheduled(durations, [
      { from: 0, until: at(killedAt), lostAt: Math.max(...lost) },
      { from: at(backAt), until: Number.POSITIVE_INFINITY },
      { from: 0, until: Number.POSITIVE_INFINITY },
      { from: 0, until: Number.POSITIVE_INFINITY },
    ]);
    const wall = at(Math.max(...leases.map(({ ended_at }) => Date.parse(ended_at!))));
    const mean = durations.reduce((a, b) => a + b, 0) / TRIALS;
    console.info(
      `60 trials of ${mean.toFixed(1)} s: killed at ${at(killedAt).toFixed(0)} s, ` +
        `lost ${Math.max(...lost).toFixed(0)} (${cut.length} attempts), back ${at(backAt).toFixed(0)}; wall ${wall.toFixed(1)} s, bound ${bound.toFixed(1)} s, ` +
        `${((wall / bound - 1) * 100).toFixed(1)} % above`,
    );
    expect(wall / bound).toBeLessThan(WITHIN);
  }, 900_000);
});
