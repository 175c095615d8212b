// Results of other runners read from the cache: once, again when they changed, and never into the results root of a person.
import {
  chmodSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { openResults, UserError } from '../../../src/index.ts';
import { foreignRun, openSource } from '../../../src/results/import/openSource.ts';

const LOGS = join(import.meta.dirname, '..', '..', 'formats', 'inspectLogs');

function setUp() {
  const home = mkdtempSync(join(tmpdir(), 'open-source-'));
  onTestFinished(() => rmSync(home, { recursive: true, force: true }));
  const told: string[] = [];
  const caller = {
    env: { XDG_CACHE_HOME: join(home, 'cache') },
    tell: ({ level, text }: { level: string; text: string }) => void told.push(`${level}: ${text}`),
  };
  const cached = () => {
    const folder = join(home, 'cache', 'swebatch', 'read');
    return existsSync(folder) ? readdirSync(folder) : [];
  };
  return { home, told, caller, cached };
}

test('a log is read once, says the same again, and is read anew when it changed; nothing is written beside it', async () => {
  const { home, told, caller, cached } = setUp();
  mkdirSync(join(home, 'logs'));
  const log = join(home, 'logs', 'made.eval');
  copyFileSync(join(LOGS, 'made.eval'), log);
  const first = await openSource(log, caller);
  const said = told.splice(0);
  expect(said[0]).toMatch(
    /^info: .*made\.eval: read as a log of Inspect: 10 trials of 5 instances; 3 of 7 resolved = 42\.9 %; missing 3 \(lost by infrastructure\): made__made-4/,
  );
  expect(said[1]).toMatch(/^warning: .*Inspect's mean is 0\.375/);
  expect(await openSource(log, caller)).toEqual(first);
  expect(told.splice(0)).toEqual(said);
  writeFileSync(join(home, 'logs', 'other.json'), '{}');
  expect(await openSource(log, caller)).toEqual(first);
  rmSync(join(home, 'logs', 'other.json'));
  told.length = 0;
  expect(cached()).toHaveLength(1);
  const opened = openResults(first!.root);
  expect(opened.report(first!.run).arms[0]?.valid).toBe(7);
  opened.close();
  copyFileSync(join(LOGS, 'older.eval'), log);
  expect((await openSource(log, caller))?.root).not.toBe(first!.root);
  expect(readdirSync(join(home, 'logs'))).toEqual(['made.eval']);
});

test('a file of predictions is read anew when a report comes below it', async () => {
  const { home, caller, told } = setUp();
  const file = join(home, 'preds', 'all_preds.jsonl');
  mkdirSync(join(home, 'preds', 'logs', 'a__a-1'), { recursive: true });
  writeFileSync(
    file,
    JSON.stringify({ instance_id: 'a__a-1', model_name_or_path: 'm', model_patch: 'diff --git a/f b/f' }),
  );
  await openSource(file, caller);
  expect(told.splice(0).join()).toMatch(/read as predictions: 1 instance; no verdicts/);
  writeFileSync(
    join(home, 'preds', 'logs', 'a__a-1', 'report.json'),
    JSON.stringify({ 'a__a-1': { resolved: true } }),
  );
  await openSource(file, caller);
  expect(told.join()).toMatch(/1 of 1 resolved/);
});

test('what nobody looked at for a month goes; a damaged entry is read again', async () => {
  const { caller, cached, told } = setUp();
  const made = (await openSource(join(LOGS, 'made.json'), caller))!;
  const long = new Date(Date.now() - 40 * 86_400_000);
  utimesSync(join(made.root, 'read.json'), long, long);
  await openSource(join(LOGS, 'older.eval'), caller);
  expect(cached()).toHaveLength(1);
  const again = (await openSource(join(LOGS, 'made.json'), caller))!;
  rmSync(join(again.root, 'read.json'));
  told.length = 0;
  await expect(openSource(join(LOGS, 'made.json'), caller)).resolves.not.toBeNull();
  expect(told[0]).toMatch(/read as a log of Inspect/);
});

test('without a cache that can be written the folder for temporary files does', async () => {
  const { home, caller } = setUp();
  writeFileSync(join(home, 'cache'), 'a file');
  const opened = await openSource(join(LOGS, 'made.json'), caller);
  expect(opened?.root.startsWith(tmpdir())).toBe(true);
  onTestFinished(() => rmSync(opened!.root, { recursive: true, force: true }));
});

test('what cannot be read is an error and leaves no entry; what is nothing of others is null', async () => {
  const { home, caller, cached } = setUp();
  writeFileSync(join(home, 'x.eval'), 'PK no zip');
  await expect(openSource(join(home, 'x.eval'), caller)).rejects.toThrow(UserError);
  expect(cached()).toEqual([]);
  writeFileSync(join(home, 'y.json'), '{}');
  expect(await openSource(join(home, 'y.json'), caller)).toBeNull();
  expect(await openSource(join(home, 'none'), caller)).toBeNull();
  mkdirSync(join(home, 'locked'));
  chmodSync(join(home, 'locked'), 0o700);
  expect(await openSource(join(home, 'locked'), caller)).toBeNull();
});

test('a run hides a folder of its name', async () => {
  const { home, caller } = setUp();
  const { root, run } = (await openSource(join(LOGS, 'made.json'), caller))!;
  cpSync(root, join(home, 'results'), { recursive: true });
  const before = process.cwd();
  process.chdir(home);
  onTestFinished(() => process.chdir(before));
  mkdirSync(join(home, run));
  copyFileSync(join(LOGS, 'made.eval'), join(home, run, 'a.eval'));
  expect(await foreignRun(run, join(home, 'results'), caller)).toBeNull();
  expect(await foreignRun(run, join(home, 'other'), caller)).not.toBeNull();
});
