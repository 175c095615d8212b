// `ctl RUN stop` is Ctrl-C from another terminal; `delete` takes a whole run out of the record, and nothing of another one.
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { openStore } from '../../src/store/open.ts';
import { recordRun } from '../report/recordedRun.ts';
import { cli, tempDir } from '../support/cli.ts';
import { dockerAvailable } from '../support/docker.ts';
import { type Bench, bash, containersOf, faultBench, GOOD } from './support.ts';

const docker = await dockerAvailable();
let bench: Bench | undefined;
afterEach(() => bench?.close());

describe.skipIf(!docker)('ctl stop', () => {
  test('lets running instances finish; with --now it cuts them short; a resume goes on', async () => {
    bench = await faultBench();
    const out = bench.root;
    const word = (...args: string[]) => cli([...args, '-o', out]);
    const first = bench.start(bench.id, ['-w', '1']);
    await bench.server.waitForRequests(1);
    const told = await word('ctl', bench.id, 'stop');
    expect(told.code).toBe(0);
    expect(told.stderr).toContain(`told pid ${first.process.pid} to stop ${bench.id}; what runs finishes`);
    expect((await first.done).code).toBe(130);

    const slow = [...GOOD.slice(0, 2), bash('sleep 60'), ...GOOD.slice(2)];
    for (const id of ['a__a-1', 'a__a-2', 'a__a-3', 'a__a-4']) bench.server.setScript(id, slow);
    const asked = bench.server.requests.length;
    const second = bench.start(bench.id, ['-w', '1']);
    await bench.server.waitForRequests(asked + 3);
    expect((await word('delete', bench.id, '--yes')).stderr).toContain(`works on ${bench.id}; stop it first`);
    expect((await word('ctl', bench.id, 'stop', '--now')).code).toBe(0);
    expect((await second.done).code).toBe(130);
    expect(containersOf(bench.id)).toEqual([]);

    const idle = await word('ctl', 'last', 'stop');
    expect(idle.code).toBe(0);
    expect(idle.stderr).toContain(`no process works on ${bench.id}; it is interrupted`);
  });
});

function twoRuns(): string {
  const out = tempDir();
  using store = openStore(join(out, 'swebatch.db'));
  for (const name of ['night-1', 'night-2'])
    recordRun(store, {
      name,
      ids: ['a__a-1', 'a__a-2'],
      happened: () => [
        { reason: 'submitted', patch: 'x', outcome: 'resolved', resolved: true, cost: 5, steps: 2 },
      ],
    });
  for (const name of ['night-1', 'night-2']) {
    mkdirSync(join(out, name));
    writeFileSync(join(out, name, 'preds.json'), '{}');
  }
  return out;
}

describe('delete', () => {
  test('removes rows and folder of that run alone, and says what is lost', async () => {
    const out = twoRuns();
    const done = await cli(['delete', 'night-1', '-y', '-o', out]);
    expect(done.stderr).toMatch(/^deleted night-1 of .*: agent 2; spent \$/);
    expect(done.code).toBe(0);
    expect(existsSync(join(out, 'night-1'))).toBe(false);
    expect(existsSync(join(out, 'night-2', 'preds.json'))).toBe(true);
    using store = openStore(join(out, 'swebatch.db'), { readonly: true });
    const tables = store
      .prepare(`SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE '%run_id INTEGER%'`)
      .pluck()
      .all() as string[];
    expect(tables.length).toBeGreaterThan(4);
    for (const table of tables)
      expect(store.prepare(`SELECT count(*) FROM ${table} WHERE run_id = 1`).pluck().get()).toBe(0);
    expect(store.prepare('SELECT count(*) FROM attempts').pluck().get()).toBe(2);
    expect(store.pragma('foreign_key_check')).toEqual([]);
    expect((await cli(['report', 'night-2', '-o', out])).code).toBe(0);
  });

  test('asks before it deletes: without a terminal and without --yes nothing happens', async () => {
    const out = twoRuns();
    const asked = await cli(['delete', 'night-1', '-o', out]);
    expect(asked.code).toBe(2);
    expect(asked.stderr).toMatch(/this would delete night-1 of .*\n.*add --yes/);
    expect(existsSync(join(out, 'night-1'))).toBe(true);
  });

  test('refuses a baseline, and a run that somebody holds on another machine', async () => {
    const out = twoRuns();
    await cli(['baseline', 'set', 'night-1', '-o', out]);
    const baseline = await cli(['delete', 'night-1', '-y', '-o', out]);
    expect(baseline.code).toBe(2);
    expect(baseline.stderr).toContain('night-1 is the baseline "default"');

    mkdirSync(join(out, '.locks', 'night-2'), { recursive: true });
    const holder = {
      pid: 77,
      pidStart: '1',
      bootId: 'b',
      host: `not-${hostname()}`,
      since: '2026-01-01T00:00:00Z',
    };
    writeFileSync(join(out, '.locks', 'night-2', 'run.lock'), JSON.stringify(holder));
    for (const words of [
      ['delete', 'night-2', '-y'],
      ['ctl', 'night-2', 'stop'],
    ]) {
      const held = await cli([...words, '-o', out]);
      expect(held.code).toBe(2);
      expect(held.stderr).toContain(`pid 77 on not-${hostname()} works on night-2`);
    }
  });
});
