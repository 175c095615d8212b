// `swebatch ls`: a run whose process died says so, because it could not write that itself.
import { execFile } from 'node:child_process';
import { globSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, expect, test } from 'vitest';
import { table } from '../../src/cli/terminal/table.ts';
import { lockFolder } from '../../src/run/control/lock.ts';
import { statement } from '../../src/store/open.ts';
import { cli, REPO, tempDir } from '../support/cli.ts';
import { addRun, openFixture } from '../viewer/fixture.ts';

let dir: string;
afterEach(() => rmSync(dir, { recursive: true, force: true }));

/** A run that was working on its last trial when it last wrote something. */
function workedOn(lastSignMs: number): void {
  dir = tempDir();
  const store = openFixture(dir);
  addRun(store, { name: 'night', instances: 3, steps: 2, doneUntil: 2, status: 'running' });
  statement(
    store,
    `UPDATE trials SET state = 'leased', lease_owner = 'x', lease_at_ms = ? WHERE state <> 'sealed'`,
  ).run(lastSignMs);
  store.close();
}

/** The process that held the run was killed. */
const release = () => rmSync(lockFolder(dir, 'night'), { recursive: true });

test('a run that is silent for long names the command that goes on', async () => {
  const last = Date.now() - 47 * 60_000;
  workedOn(last);
  const { stdout, stderr, code } = await cli(['ls', '-o', dir]);
  expect(code).toBe(0);
  expect(stdout).toContain('running');
  expect(stderr).toMatch(
    /night gave no sign of life for 4[78] minutes; if its process is gone, "swebatch resume night -o \S+" goes on/,
  );
  const [row] = JSON.parse((await cli(['ls', '--json', '-o', dir])).stdout);
  expect(row).toMatchObject({ status: 'running', last_sign_at: new Date(last).toISOString() });
});

test('a run whose process is gone is called interrupted, with its trials, and says what goes on with it', async () => {
  workedOn(Date.now());
  release();
  const { stdout } = await cli(['ls', '-o', dir]);
  expect(stdout).toContain('interrupted');
  expect(stdout).not.toContain('running');
  expect((await cli(['ls', 'night', '-o', dir])).stdout).not.toContain('running');
  const shown = await cli(['show', 'night', '-o', dir]);
  expect(shown.stdout).toMatch(/night \(interrupted: its process is gone\)/);
  expect(shown.stdout).toMatch(/swebatch resume night -o \S+ goes on with it/);
  expect(shown.stdout).not.toContain('running');
  expect((await cli(['report', 'night', '-o', dir])).stdout).not.toContain('running');
});

test('no report, table or export of such a run calls it or its trials running', async () => {
  workedOn(Date.now());
  release();
  const said = async (...words: string[]) => (await cli([...words, '-o', dir])).stdout;
  expect(await said('report', 'night', '--paper', '--json')).not.toContain('running');
  expect(await said('export', 'night', 'csv')).toMatch(/,pending,.*,interrupted,/);
  expect(await said('export', 'night', 'csv')).not.toMatch(/running|leased/);
  const to = join(dir, 'exported');
  await said('export', 'night', 'summary', '--to', to);
  expect(JSON.parse(readFileSync(join(to, 'summary.json'), 'utf8'))).toMatchObject({ status: 'interrupted' });
  expect(readFileSync(join(to, 'summary.md'), 'utf8')).not.toContain('running');
});

test('the record of a run is read for reports in one place, which knows of dead processes', () => {
  const readers = globSync(join(REPO, 'src/**/*.ts')).filter((path) =>
    /import[^;]*\bloadRunData\b[^;]*runData/.test(readFileSync(path, 'utf8')),
  );
  expect(readers.map((path) => relative(join(REPO, 'src'), path))).toEqual(['run/standing.ts']);
});

test('following a run whose process is gone ends with a word', async () => {
  workedOn(Date.now());
  release();
  const { stdout, stderr, code } = await cli(['ls', '--watch', '-o', dir]);
  expect([code, stdout]).toEqual([0, expect.stringContaining('run night (interrupted)')]);
  expect(stderr).toMatch(/^no process works on night any more; "swebatch resume night -o \S+" goes on$/m);
});

test('in a pipe a row is whole, however long it is; on a terminal a status and a date stay whole', () => {
  const head = ['run', 'status', 'created', 'planned', 'by class', 'cost'];
  const row = [
    ...['run-20261123-084002-3rzh', 'interrupted', '11-23 08:45', '42'],
    ...['agent 19 cancelled 20 limit 1', '≥ $0.00'],
  ];
  const [, , line = ''] = table(head, [row], 80).split('\n');
  expect(line.split(/ {2,}/)).toEqual(row);
  const shown = table(head, [row], 80, undefined, true);
  expect(shown).toContain('run-20261123-084002-3rzh  interrupted  11-23 08:45  42 ');
  expect(shown).not.toContain('…');
});

test('a run whose process was killed is not called running by who asks something of it', async () => {
  workedOn(Date.now());
  release();
  const gone = 'no process works on night; the one that did was killed while the run was running';
  const asked = await cli(['ctl', 'night', 'pause', '-o', dir]);
  expect([asked.code, asked.stderr]).toEqual([2, expect.stringContaining(gone)]);
  expect(asked.stderr).toContain('go on with "swebatch resume night');
  expect((await cli(['ctl', 'night', 'stop', '-o', dir])).stderr).toContain(gone);
});

test('a running trial shows the steps that it has taken', async () => {
  dir = tempDir();
  const store = openFixture(dir);
  addRun(store, { name: 'night', instances: 2, steps: 3, doneUntil: 2, status: 'running' });
  statement(
    store,
    `UPDATE attempts SET state = 'running', exit_reason = NULL, exit_class = NULL, steps = 0 WHERE id = (SELECT max(id) FROM attempts)`,
  ).run();
  statement(
    store,
    `UPDATE trials SET state = 'running', final_attempt_id = NULL WHERE id = (SELECT trial_id FROM attempts WHERE state = 'running')`,
  ).run();
  store.close();
  const lines = JSON.parse((await cli(['ls', 'night', '--json', '-o', dir])).stdout) as {
    state: string;
    steps: number;
  }[];
  expect(lines.map(({ state, steps }) => [state, steps])).toContainEqual(['running', 3]);
});

test('a run that works says nothing of the kind', async () => {
  workedOn(Date.now());
  expect((await cli(['ls', '-o', dir])).stderr).toBe('');
});

test.each([
  ['ls', 'outcome'],
  ['show', 'see also'],
])('a plain %s loads nothing that takes longer than its answer', async (verb, said) => {
  workedOn(Date.now());
  const sayLoaded = join(import.meta.dirname, 'fixtures', 'sayLoaded.mjs');
  const bin = join(REPO, 'src', 'cli', 'bin.ts');
  const { stdout, stderr } = await promisify(execFile)(
    process.execPath,
    ['--import', sayLoaded, bin, verb, 'last', '-o', dir],
    { cwd: REPO },
  );
  expect(stdout).toContain(said);
  const loaded = [...stderr.matchAll(/^loaded (.*)$/gm)].map((m) => m[1]!);
  expect(loaded.filter((url) => /verbs\/(ls|show)\.ts$|node_modules\/better-sqlite3/.test(url))).not.toEqual(
    [],
  );
  expect(
    loaded.filter((url) => /node_modules\/(zod|undici|dockerode|yargs)\/|^node:https?$/.test(url)),
  ).toEqual([]);
});

test('the version loads no verb and no parser', async () => {
  dir = tempDir();
  const sayLoaded = join(import.meta.dirname, 'fixtures', 'sayLoaded.mjs');
  const bin = join(REPO, 'src', 'cli', 'bin.ts');
  const { stdout, stderr } = await promisify(execFile)(
    process.execPath,
    ['--import', sayLoaded, bin, '--version'],
    { cwd: REPO },
  );
  expect(stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
  expect(stderr).toContain('cli/main.ts');
  expect(stderr).not.toMatch(/cli\/verbs\/|node_modules\/yargs/);
});

test('a run that cannot go on after it was recorded is not left as one that runs', async () => {
  dir = tempDir();
  writeFileSync(
    join(dir, 'env.mjs'),
    `export const createEnvironmentFactory = () => { throw new Error('no licence for this machine'); };`,
  );
  const row = { instance_id: 'a__a-1', repo: 'a/a', base_commit: 'x', problem_statement: 'p', image: 'x' };
  writeFileSync(join(dir, 'd.jsonl'), JSON.stringify({ ...row, patch: '', test_patch: '' }));
  writeFileSync(join(dir, 'replies.json'), JSON.stringify({ replies: [{ content: 'x' }] }));
  const config = { environment: { environment_class: './env.mjs' } };
  writeFileSync(join(dir, 'c.yaml'), JSON.stringify(config));
  const args = ['--subset', 'd.jsonl', '-m', 'scripted:replies.json', '-c', 'c.yaml', '-o', 'out'];
  const run = await cli(['run', ...args, '--run-id', 'r1', '--progress', 'plain'], { cwd: dir });
  expect(run.code).not.toBe(0);
  expect(run.stderr).toContain('no licence for this machine');
  const [line] = JSON.parse((await cli(['ls', '--json', '-o', 'out'], { cwd: dir })).stdout);
  expect(line).toMatchObject({ run: 'r1', status: 'failed' });
  expect((await cli(['ls', 'r1', '--watch', '-o', 'out'], { cwd: dir })).code).toBe(0);
});
