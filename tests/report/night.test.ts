// A night in real containers: run --baseline measures again what newly broke, as a run of its own, and gives the exit code of the verdict.
import { cpSync, existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { cli, REPO, tempDir } from '../support/cli.ts';
import { dockerAvailable } from '../support/docker.ts';

const DATASET = 'datasets/demo/demo.jsonl';
const dir = tempDir('swebatch-night-');
const root = join(dir, 'out');
const replies = join(dir, 'replies');
const ready = await dockerAvailable();
afterAll(() => rmSync(dir, { recursive: true, force: true }));

const night = (id: string, ...more: string[]) =>
  cli([
    'run',
    '--subset',
    DATASET,
    '-c',
    'demo',
    '--model',
    `scripted:${replies}`,
    '--instance',
    'swebatch__cronwheel-23,swebatch__cronwheel-25',
    '-o',
    root,
    '--run-id',
    id,
    '--evaluate',
    '-w',
    '2',
    ...more,
  ]);

describe.skipIf(!ready)('run --baseline', () => {
  beforeAll(async () => {
    cpSync(join(REPO, 'datasets/demo/replies'), replies, { recursive: true });
    const first = await night('night-1', '--baseline', 'last');
    expect([first.code, first.stderr]).toEqual([0, expect.stringContaining('no comparable baseline')]);
    // The same model name answers worse now: it submits another instance's patch.
    cpSync(join(replies, 'swebatch__cronwheel-27.json'), join(replies, 'swebatch__cronwheel-23.json'));
  });

  test('a regression is measured again and fails the night', async () => {
    const found = await night('night-2', '--baseline', 'last', '--max-drop', '2%', '--remeasure', '2');
    expect(found.code, found.stderr).toBe(1);
    expect(found.stdout.trimStart().startsWith('Broken (1): swebatch__cronwheel-23')).toBe(true);
    expect(found.stderr).toContain('matched 2: broken 1, flaky 0, fixed 0');
    const { gate } = JSON.parse(readFileSync(join(root, 'night-2', 'gate.json'), 'utf8'));
    expect(gate).toMatchObject({ verdict: 'regressed', remeasured: true, unconfirmed: [] });
    expect(existsSync(join(root, 'night-2', 'junit.xml'))).toBe(true);
    const runs = JSON.parse((await cli(['ls', '-o', root, '--json'])).stdout) as {
      name?: string;
      run?: string;
    }[];
    expect(runs.map((r) => r.name ?? r.run)).toContain('night-2.again-1');
    // What was measured again is not the newest night.
    expect(JSON.parse((await cli(['report', 'last', '-o', root, '--json'])).stdout).run).toBe('night-2');
  });

  test('the same fault on the next night is held against the night before it, not against the regression', async () => {
    const found = await night('night-2b', '--baseline', 'last', '--max-drop', '2%', '--remeasure', '1');
    expect(found.code, found.stderr).toBe(1);
    expect(found.stdout).toContain('FAILED: regressed (night-2b against night-1)');
    expect(found.stdout.replaceAll(/\s+/g, ' ')).toContain(
      '1 newer night is no baseline: night-2 (its gate failed: max-drop)',
    );
    const { gate } = JSON.parse(readFileSync(join(root, 'night-2b', 'gate.json'), 'utf8'));
    expect(gate.passed_over).toEqual([{ run: 'night-2', why: 'its gate failed: max-drop' }]);
  });

  test('a night that is whole becomes a leaderboard entry, with the scripts that judged it', async () => {
    const to = join(dir, 'entry');
    const found = await cli([
      'export',
      'night-1',
      'submission',
      '--split',
      'verified',
      '-o',
      root,
      '--to',
      to,
    ]);
    expect(found.code, found.stderr).toBe(0);
    const files = ['patch.diff', 'test_output.txt', 'report.json', 'eval.sh'];
    for (const file of files)
      expect(existsSync(join(found.stdout.trim(), 'logs', 'swebatch__cronwheel-23', file)), file).toBe(true);
    const results = JSON.parse(readFileSync(join(found.stdout.trim(), 'results', 'results.json'), 'utf8'));
    expect(results.resolved).toEqual(['swebatch__cronwheel-23', 'swebatch__cronwheel-25']);
  });

  test('one that recovers is flaky and passes', async () => {
    const again = join(REPO, 'datasets/demo/replies/swebatch__cronwheel-23.json');
    const broken = await night('night-3', '--baseline', 'night-1', '--remeasure', '0');
    // Two instances cannot show a significant loss: unconfirmed, said, and no failure by itself.
    expect([broken.code, broken.stderr]).toEqual([0, expect.stringContaining('inconclusive')]);
    cpSync(again, join(replies, 'swebatch__cronwheel-23.json'));
    const found = await cli(['compare', 'night-1', 'night-3', '--gate', '--remeasure', '1', '-o', root]);
    expect(found.code, found.stderr).toBe(0);
    expect(found.stderr).toContain('gate: flaky; matched 2: broken 0, flaky 1, fixed 0');
  });
});
