// An import that cannot write all its files leaves nothing: no run in the database, no file in the results root or outside it.
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { cli, tempDir } from '../../support/cli.ts';

function twoInstances() {
  const home = tempDir();
  const out = join(home, 'out');
  const victim = join(home, 'victim');
  mkdirSync(join(home, 'mini'));
  for (const each of [out, victim]) mkdirSync(each);
  for (const id of ['a__a-1', 'a__a-2'])
    writeFileSync(
      join(home, 'mini', `${id}.traj.json`),
      JSON.stringify({
        info: { exit_status: 'Submitted', submission: 'diff --git a/x b/x\n', config: {} },
        messages: [],
        trajectory_format: 'mini-swe-agent-1.1',
        instance_id: id,
      }),
    );
  return { home, out, victim, importIt: () => cli(['import', join(home, 'mini'), '-o', out]) };
}

const runsIn = async (out: string): Promise<unknown> =>
  JSON.parse((await cli(['ls', '-o', out, '--json'])).stdout || '[]');

test('a run folder that is a link to somewhere else is refused', async () => {
  const { out, victim, importIt } = twoInstances();
  symlinkSync(victim, join(out, 'mini'));
  const { code, stderr } = await importIt();
  expect([code, stderr]).toEqual([2, expect.stringContaining('leads outside')]);
  expect(readdirSync(victim)).toEqual([]);
  expect(await runsIn(out)).toEqual([]);
});

test('a link in its folder is refused before or after other files; the run is taken back', async () => {
  const { out, victim, importIt } = twoInstances();
  mkdirSync(join(out, 'mini', 'trajectories'), { recursive: true });
  symlinkSync(victim, join(out, 'mini', 'trajectories', 'a__a-2'));
  const { code, stderr } = await importIt();
  expect([code, stderr]).toEqual([2, expect.stringContaining('leads outside')]);
  expect(readdirSync(victim)).toEqual([]);
  expect(await runsIn(out)).toEqual([]);
});

test('a link to a device is not read', async () => {
  const { home, importIt } = twoInstances();
  symlinkSync('/dev/zero', join(home, 'mini', 'a__a-4.traj.json'));
  const { code, stderr } = await importIt();
  expect([code, stderr]).toEqual([
    0,
    expect.stringContaining('a__a-4.traj.json cannot be read: it is not a file'),
  ]);
});

test('what cannot be written takes the run back, and the next import under the name works', async () => {
  const { out, home, importIt } = twoInstances();
  writeFileSync(join(out, 'mini'), 'mine');
  expect((await importIt()).code).not.toBe(0);
  expect(readFileSync(join(out, 'mini'), 'utf8')).toBe('mine');
  expect(await runsIn(out)).toEqual([]);
  const { code, stderr } = await cli(['import', join(home, 'mini'), '-o', out, '--run-id', 'other']);
  expect(code, stderr).toBe(0);
  expect((await cli(['verify', 'other', '-o', out])).code).toBe(0);
});
