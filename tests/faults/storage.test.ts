// The disk and the record under a run (T-33, T-53), through the whole program: nothing is lost or dropped without a word, and what
// can go on goes on. Small file systems in memory stand for full and read-only disks.
import { execFileSync, spawn } from 'node:child_process';
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statfsSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterEach, describe, expect, test } from 'vitest';
import { cli, tempDir } from '../support/cli.ts';
import { dockerAvailable } from '../support/docker.ts';
import {
  type Bench,
  bash,
  containersOf,
  expectOthersGood,
  expectSound,
  faultBench,
  GOOD,
} from './support.ts';

const docker = await dockerAvailable();
const MIB = 2 ** 20;
let bench: Bench;
let mounted: string[] = [];
afterEach(async () => {
  await bench?.close();
  for (const dir of mounted) execFileSync('umount', ['-l', dir]);
  mounted = [];
});

function smallDisk(mib: number): string {
  const dir = join(tempDir('swebatch-disk-'), 'results');
  mkdirSync(dir);
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${mib}m`, 'tmpfs', dir]);
  mounted.push(dir);
  return dir;
}
const mountable = process.getuid?.() === 0;
if (!mountable && process.env.SWEBATCH_REQUIRE_DOCKER === '1') throw new Error('a small disk needs root');

const freeOf = (dir: string) => {
  const { bavail, bsize } = statfsSync(dir);
  return bavail * bsize;
};
/** Takes all of a disk but `leave` bytes. */
function fill(dir: string, leave: number): string {
  const path = join(dir, 'somebody-elses-file');
  const file = openSync(path, 'w');
  const block = Buffer.alloc(256 * 1024, 1);
  try {
    for (let left = freeOf(dir) - leave; left > 0; left -= block.length)
      writeSync(file, block, 0, Math.min(left, block.length));
  } catch {
    // The run wrote meanwhile: there is nothing left to take.
  }
  closeSync(file);
  return path;
}
const ids = ['a__a-1', 'a__a-2', 'a__a-3', 'a__a-4'];
const database = () => join(bench.root, 'swebatch.db');

describe.skipIf(!docker || !mountable)('a disk that fills up', () => {
  const WORKING = [bash('echo work >> README.md'), bash('sleep 20'), ...GOOD];

  test('T-33 below the floor the run is paused, what ran is stopped and captured, and it goes on when there is room', async () => {
    const disk = smallDisk(256);
    bench = await faultBench({
      output: disk,
      scripts: Object.fromEntries(ids.map((id) => [id, WORKING])),
      config: { disk_floor: '64m' },
    });
    const running = bench.start(bench.id);
    await bench.server.waitForRequests(4);
    expect(existsSync(join(disk, '.reserve'))).toBe(true);
    const filler = fill(disk, 50 * MIB);
    await running.said(/paused: disk_full \d[\d.]* MiB < 64 MiB floor/);
    await running.said(/disk_full.*host_floor.*will run again|a__a-\d disk_full/);
    expect(existsSync(join(disk, '.reserve'))).toBe(false);
    expect((await cli(['ls', '-o', disk])).stdout).toContain('paused');
    await until(() => containersOf(bench.id).length === 0);
    const captured = bench.query<{ reason: string; detail: string; patch: string; state: string }>(
      `SELECT a.exit_reason AS reason, a.exit_detail AS detail, CAST(a.captured_patch AS TEXT) AS patch, t.state
       FROM attempts a JOIN trials t ON t.id = a.trial_id WHERE a.exit_reason = 'disk_full'`,
    );
    expect(captured).toHaveLength(2);
    for (const attempt of captured) {
      expect(attempt).toMatchObject({ detail: 'host_floor', state: 'pending' });
      expect(attempt.patch).toContain('+work');
    }
    for (const id of ids) bench.server.setScript(id, GOOD);
    const before = bench.server.requests.length;
    rmSync(filler);
    const result = await running.done;
    expect(result.stderr).toContain('resumed: the disk has room again');
    expect(result.code).toBe(0);
    // The two that were stopped begin again; the stop used up none of their attempts.
    expect(bench.server.requests.length - before).toBe(4 * 3);
    expect(existsSync(join(disk, '.reserve'))).toBe(false);
    expectOthersGood(bench, bench.id, []);
    await expectSound(bench, bench.id, 4, [result]);
  });

  test('T-33 a write that finds no room at all is done with what was kept in reserve', async () => {
    const disk = smallDisk(256);
    bench = await faultBench({
      output: disk,
      scripts: { 'a__a-1': [bash('head -c 3000000 /dev/urandom | base64 -w0'), ...GOOD] },
      config: { disk_floor: '64m' },
      environment: { max_output_bytes: 20_000_000 },
    });
    const running = bench.start(bench.id);
    await bench.server.waitForRequests(1);
    // Quicker than anybody looks: nothing is left for the output of the first command.
    const filler = fill(disk, 0);
    await running.said(/paused: disk_full/);
    rmSync(filler);
    const result = await running.done;
    expect(result.code, result.stderr).toBe(0);
    expectOthersGood(bench, bench.id, []);
    await expectSound(bench, bench.id, 4, [result]);
  });

  test('T-53 without a floor a full disk stops the run with words and exit 5, and what is sealed stays', async () => {
    const disk = smallDisk(64);
    // One after the other, each with more output than is left once the disk is filled.
    const large = [bash('head -c 2000000 /dev/urandom | base64 -w0'), ...GOOD];
    bench = await faultBench({
      inTrees: true,
      output: disk,
      scripts: Object.fromEntries([1, 2, 3, 4].map((n) => [`a__a-${n}`, large])),
      config: { disk_floor: '0', workers: 1 },
    });
    const running = bench.start(bench.id);
    await running.said(/a__a-\d submitted/);
    const filler = fill(disk, 0);
    const result = await running.done;
    expect(result.code).toBe(5);
    expect(result.stderr).toMatch(
      /cannot write .*swebatch\.db: the disk is full \(\d+ MB free\); free some space there/,
    );
    expect(result.stderr).not.toContain('SQLITE_FULL');
    rmSync(filler);
    const sealed = bench.trials(bench.id).filter((t) => t.state === 'sealed');
    const calls = new Map(sealed.map((t) => [t.instance_id, bench.server.count(t.instance_id)]));
    expect(sealed.length).toBeGreaterThan(0);
    const resumed = await bench.resume(bench.id);
    expect(resumed.code).toBe(0);
    for (const [id, n] of calls) expect(bench.server.count(id)).toBe(n);
    expectOthersGood(bench, bench.id, []);
    await expectSound(bench, bench.id, 4, [result, resumed]);
  });

  test('a terminal log on a full disk ends no run; data that could not be written is told by the exit code [T-53]', async () => {
    bench = await faultBench({ inTrees: true });
    const env = { FAKE_KEY: 'none' };
    const log = await cli(bench.args(bench.id), { env, to: { stderr: '/dev/full' } });
    expect(log.code).toBe(0);
    await expectSound(bench, bench.id, 4);
    const id = `${bench.id}-data`;
    const data = await cli(bench.args(id, '--json'), { env, to: { stdout: '/dev/full' } });
    expect(data.code).toBe(5);
    expect(data.stderr).toMatch(/the output could not be written: .*no space left/i);
    await expectSound(bench, id, 4);
  });

  test('T-53 a read-only disk is told, with exit 2', async () => {
    const disk = smallDisk(64);
    bench = await faultBench({ inTrees: true, output: disk, config: { disk_floor: '0' } });
    // In a process of its own: one that lives on may have the disk open.
    expect((await bench.start(bench.id, ['--limit', '1']).done).code).toBe(0);
    execFileSync('mount', ['-o', 'remount,ro', disk]);
    for (const result of [await bench.resume(bench.id), await bench.run(`${bench.id}-2`)]) {
      expect(result.code).toBe(2);
      expect(result.stderr).toContain(`results cannot be kept in ${disk}: the file system is read-only`);
    }
    execFileSync('mount', ['-o', 'remount,rw', disk]);
    await expectSound(bench, bench.id, 1);
  });
});

describe.skipIf(!docker)('a record in trouble', () => {
  test('T-53 a damaged page is refused and the last backup named; put back, the run goes on', async () => {
    bench = await faultBench({ inTrees: true });
    expect((await bench.run(bench.id, ['--limit', '2'])).code).toBe(0);
    const backup = readdirSync(bench.root).find((name) => name.startsWith('swebatch.db.backup-'));
    expect(backup).toBeDefined();
    const file = openSync(database(), 'r+');
    writeSync(file, Buffer.alloc(4096, 0xab), 0, 4096, 8192);
    closeSync(file);
    const refused = await bench.resume(bench.id);
    expect(refused.code).toBe(5);
    expect(refused.stderr).toMatch(/swebatch\.db is damaged/);
    const way = /put it in place with "([^"]+)"/.exec(refused.stderr)![1]!;
    expect(way).toContain(backup);
    expect(bench.server.requests.length).toBe(2 * 3);
    execFileSync('sh', ['-c', way]);
    const resumed = await bench.resume(bench.id);
    expect(resumed.code).toBe(0);
    expect(bench.server.requests.length).toBe(2 * 3);
    expectOthersGood(bench, bench.id, []);
    await expectSound(bench, bench.id, 2, [refused, resumed]);
  });

  test('T-53 another process that holds the database for 10 s delays the run and loses nothing', async () => {
    bench = await faultBench({ inTrees: true });
    const running = bench.start(bench.id);
    await bench.server.waitForRequests(2);
    const holder = spawn(process.execPath, [
      '-e',
      `const db = require('better-sqlite3')(${JSON.stringify(database())}, { timeout: 10000 });
       db.exec('BEGIN IMMEDIATE'); console.log('held');
       setTimeout(() => { db.exec('ROLLBACK'); db.close(); }, 10_000);`,
    ]);
    const began = performance.now();
    await new Promise((resolve) => holder.stdout.once('data', resolve));
    const result = await running.done;
    expect(performance.now() - began).toBeGreaterThan(9_000);
    expect(result.code).toBe(0);
    expect(bench.server.requests.length).toBe(4 * 3);
    expectOthersGood(bench, bench.id, []);
    await expectSound(bench, bench.id, 4, [result]);
  });

  test('T-53 a record of a newer version is refused and left alone', async () => {
    bench = await faultBench({ inTrees: true });
    expect((await bench.run(bench.id, ['--limit', '1'])).code).toBe(0);
    const db = new Database(database());
    const version = db.pragma('user_version', { simple: true }) as number;
    db.exec(`UPDATE runs SET manifest = json_set(manifest, '$.program.version', '99.1.0')`);
    db.pragma('user_version = 9999');
    db.close();
    for (const result of [await bench.resume(bench.id), await cli(['ls', '-o', bench.root])]) {
      expect(result.code).toBe(5);
      expect(result.stderr).toMatch(/was created by version 99\.1\.0 \(schema 9999.*\), please upgrade/);
    }
    const back = new Database(database());
    back.pragma(`user_version = ${version}`);
    back.close();
    expect(bench.server.requests.length).toBe(3);
    await expectSound(bench, bench.id, 1);
  });

  test('T-53 a write-ahead log deleted after a kill is noticed: nothing is run and paid again without a word', async () => {
    bench = await faultBench({ config: { workers: 2 } });
    const first = bench.start(bench.id);
    await bench.server.waitForRequests(1);
    first.process.kill('SIGINT');
    expect((await first.done).code).toBe(130);
    const kept = bench.trials(bench.id).filter((t) => t.state === 'sealed').length;
    expect(kept).toBeLessThan(3);
    const pending = bench.trials(bench.id).flatMap((t) => (t.state === 'pending' ? [t.instance_id] : []));
    const last = pending.at(-1)!;
    const folder = (id: string) => join(bench.root, bench.id, 'trajectories', id);
    const exported = () => pending.filter((id) => existsSync(join(folder(id), `${id}.traj.json`)));
    // The run is not over when it is killed: one works on, and those before it are recorded in the log alone.
    bench.server.setScript(last, [bash('sleep 60'), ...GOOD]);
    const second = bench.start(bench.id);
    await until(() => exported().length > 0);
    second.process.kill('SIGKILL');
    await second.done;
    const done = exported();
    const before = bench.server.requests.length;
    renameSync(`${database()}-wal`, `${database()}-elsewhere`);
    const lost = await bench.resume(bench.id);
    expect(lost.code).toBe(5);
    expect(lost.stderr).toMatch(
      new RegExp(
        `${done.length} trial\\(s\\) of ${bench.id} have a trajectory but no record \\(${done.join(', ')}\\)`,
      ),
    );
    expect(lost.stderr).toMatch(/The last backup is .*swebatch\.db\.backup-/);
    expect(bench.server.requests.length).toBe(before);
    // Paid again only when somebody says so, by moving the trajectory away.
    bench.server.setScript(last, GOOD);
    for (const id of done) renameSync(folder(id), join(bench.root, `moved-away-${id}`));
    const resumed = await bench.resume(bench.id);
    expect(resumed.code).toBe(0);
    expectOthersGood(bench, bench.id, []);
    await expectSound(bench, bench.id, 4, [lost, resumed]);
  });

  test('T-53 files of the record taken away while a run works stop it with exit 5', async () => {
    bench = await faultBench({
      scripts: { 'a__a-1': [bash('sleep 15'), ...GOOD] },
      config: { heartbeat_s: 1 },
    });
    const running = bench.start(bench.id);
    await bench.server.waitForRequests(1);
    rmSync(`${database()}-wal`);
    const result = await running.done;
    expect(result.code).toBe(5);
    expect(result.stderr).toContain('-wal was deleted while it was in use');
    expect(containersOf(bench.id)).toEqual([]);
    bench.server.setScript('a__a-1', GOOD);
    const resumed = await bench.resume(bench.id);
    expect(resumed.code).toBe(0);
    expectOthersGood(bench, bench.id, []);
    await expectSound(bench, bench.id, 4, [result, resumed]);
  });

  test('a disk that is no disk for a results root is told before anything starts', async () => {
    const parent = tempDir('swebatch-file-');
    writeFileSync(join(parent, 'file'), '');
    bench = await faultBench({ output: join(parent, 'file', 'results') });
    const result = await bench.run(bench.id);
    // A mistake of the person, not a fault of the storage.
    expect(result.code).toBe(2);
    expect(result.stderr).toMatch(
      /results cannot be kept in .*results: .*file is a file\n {2}name another results root with -o/,
    );
  });
});

/** Looks every now and then; what is waited for happens in another process. */
async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 50));
}
