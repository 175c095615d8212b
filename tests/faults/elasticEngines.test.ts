// Engines join a run that works and are removed from it, by the verb and by the watched file; no trial is lost and no attempt used up.
import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { cli, tempDir } from '../support/cli.ts';
import { type CuttableDaemon, cuttableDaemon } from '../support/cuttableDaemon.ts';
import { dockerAvailable } from '../support/docker.ts';
import { type Bench, bash, containersOf, expectSound, faultBench, GOOD } from './support.ts';

const docker = await dockerAvailable();
/** Far longer than all that is asked of the run meanwhile; nobody waits for its end. */
const SLOW = [bash('sleep 900'), ...GOOD];
let bench: Bench | undefined;
const daemons: CuttableDaemon[] = [];
afterEach(async () => {
  for (const one of daemons.splice(0)) one.close();
  await bench?.close();
});

/** The same engine by another address. */
const engine = (): string => {
  const daemon = cuttableDaemon();
  daemons.push(daemon);
  return `unix://${daemon.path}`;
};
const ONCE = { workers: 3, retry: { attempts: 1, backoff_s: 0 } };
const attempts = (from: Bench) =>
  from.query<{ exit_reason: string; exit_detail: string | null; error_evidence: string | null }>(
    'SELECT exit_reason, exit_detail, error_evidence FROM attempts ORDER BY id',
  );

describe.skipIf(!docker)('the engines of a run that works', () => {
  test('one is added and the first is removed: its trial runs again on the other, at once and without a retry [T-35]', async () => {
    const [a, b] = [engine(), engine()];
    bench = await faultBench({
      scripts: { 'a__a-1': SLOW },
      config: ONCE,
      environment: { timeout: 1000, hosts: [{ host: a, slots: 1 }] },
    });
    const { id, root: out } = bench;
    const engines = (...words: string[]) => cli(['engines', words[0]!, id, ...words.slice(1), '-o', out]);
    const running = bench.start(id);
    await bench.server.waitForRequests(1);
    expect((await engines('remove', a)).stderr).toContain('is the last engine that takes trials');
    const nowhere = await engines('add', 'unix:///nowhere.sock');
    expect(nowhere.stderr).toMatch(/unix:\/\/\/nowhere.sock does not join: the engine does not answer/);
    expect(nowhere.code).toBe(2);
    const added = await engines('add', b, '--slots', '2', '--label', 'zone=late');
    expect(added.stderr).toContain(`${b} takes 2 trials at a time in this sitting`);
    await running.said(/a__a-4 submitted/);
    bench.server.setScript('a__a-1', GOOD);
    expect((await engines('remove', a)).stderr).toContain(
      'is removed; what ran on it ends and runs again elsewhere (1)',
    );
    const result = await running.done;
    expect(result.code, result.stderr).toBe(0);
    const cut = attempts(bench).filter((one) => one.exit_reason !== 'submitted');
    expect(cut).toMatchObject([{ exit_reason: 'env_died', exit_detail: 'daemon_lost' }]);
    expect(JSON.parse(cut[0]!.error_evidence!)).toEqual({ engine: a, removed: true });
    expect(bench.trials(id).map((line) => line.state)).toEqual(Array(4).fill('sealed'));
    expect(containersOf(id)).toEqual([]);
    const listed = JSON.parse((await engines('ls', '--json')).stdout);
    expect(listed).toMatchObject([
      { name: a, state: 'left', slots: 1, done: 0, lost: 1, active: 0, origin: 'config' },
      { name: b, state: 'left', slots: 2, done: 4, lost: 0, labels: { zone: 'late' }, origin: 'person' },
    ]);
    for (const { platform, memory_bytes } of listed) {
      expect(platform).toMatch(/^linux\//);
      expect(memory_bytes).toBeGreaterThan(0);
    }
    expect((await engines('ls')).stdout).toMatch(/ left +2 +0 +4 +0 .* person/);
    await expectSound(bench, id, 4, [result]);
  });

  test('a file brings the first engine after the start, then the next, and drains what vanishes from it', async () => {
    const [a, b] = [engine(), engine()];
    const path = join(tempDir('swebatch-engines-'), 'engines.txt');
    bench = await faultBench({ config: ONCE, environment: { timeout: 1000, engines_file: path } });
    const { id, root: out } = bench;
    const says = (text: string) => {
      writeFileSync(`${path}.new`, text);
      renameSync(`${path}.new`, path);
    };
    const running = bench.start(id);
    await running.said('it cannot be read, and the engines stay as they are');
    bench.server.setScript('a__a-2', SLOW);
    says(`${a} slots=2\nnonsense=1\n`);
    await running.said('line 2: the engine comes first, then slots=N; the other entries hold');
    await running.said(/a__a-1 submitted/);
    says(`${b} slots=2\n`);
    await running.said(/is not in .*engines\.txt any more/);
    const drained = await cli(['engines', 'ls', id, '-o', out, '--json']);
    expect(JSON.parse(drained.stdout)[0]).toMatchObject({ name: a, state: 'draining', origin: 'file' });
    // Before the removal: afterwards the trial may have asked again already.
    bench.server.setScript('a__a-2', GOOD);
    const ended = await cli(['engines', 'remove', id, a, '-o', out]);
    expect(ended.stderr).toContain('is removed');
    const result = await running.done;
    expect(result.code, result.stderr).toBe(0);
    expect(bench.trials(id).map((line) => line.state)).toEqual(Array(4).fill('sealed'));
    expect(containersOf(id)).toEqual([]);
  });
});
