// What lies in the folder of another program may be no file: a pipe would be waited for, and a device never ends.
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { readForeignFile } from '../../src/formats/foreignFile.ts';
import { readForeignRun } from '../../src/formats/formats.ts';

function folder(): string {
  const dir = mkdtempSync(join(tmpdir(), 'foreign-file-'));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}
const pipe = (path: string): string => {
  execFileSync('sh', ['-c', 'mkfifo "$1"', 'sh', path]);
  return path;
};

test('pipes, devices and folders are refused by name, a file behind a link is read', () => {
  const dir = folder();
  for (const path of [pipe(join(dir, 'pipe')), '/dev/zero', dir])
    expect(() => readForeignFile(path)).toThrow(`${path} is not a file`);
  writeFileSync(join(dir, 'file'), 'text');
  symlinkSync('file', join(dir, 'link'));
  expect(readForeignFile(join(dir, 'link')).toString()).toBe('text');
});

test('no reader waits for a pipe', async () => {
  const dir = folder();
  await expect(readForeignRun(pipe(join(dir, 'preds.json')))).rejects.toThrow('is not a file');
  const packed = join(dir, 'packed');
  mkdirSync(packed);
  pipe(join(packed, 'a-1.atif.json'));
  await expect(readForeignRun(packed)).rejects.toThrow('is not a file');
  const logs = join(dir, 'logs');
  mkdirSync(logs);
  pipe(join(logs, 'a.eval'));
  pipe(join(logs, 'b.json'));
  expect(JSON.stringify(await readForeignRun(logs))).toContain('a.eval is not a file');
  const job = join(dir, 'job');
  mkdirSync(join(job, 'trial', 'agent'), { recursive: true });
  writeFileSync(
    join(job, 'result.json'),
    JSON.stringify({ id: 'x', n_total_trials: 1, stats: { evals: {} } }),
  );
  writeFileSync(
    join(job, 'trial', 'result.json'),
    JSON.stringify({
      id: 'x',
      task_name: 'a',
      trial_name: 'a__1',
      task_checksum: '',
      trial_uri: '',
      config: {},
      agent_info: { name: 'mini', version: '2', model_info: { name: 'm', provider: 'p' } },
      verifier_result: { rewards: { reward: 1 } },
    }),
  );
  pipe(join(job, 'trial', 'agent', 'trajectory.json'));
  await expect(readForeignRun(job)).rejects.toThrow('trajectory.json is not a file');
});
