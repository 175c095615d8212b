// `swebatch show RUN INSTANCE`: what a person reads of an attempt, and what a program gets of its patch.
import { rmSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { statement } from '../../src/store/open.ts';
import { cli, tempDir } from '../support/cli.ts';
import { addRun, openFixture } from '../viewer/fixture.ts';

const ID = 'django__django-10000';
const OTHER = 'sympy__sympy-10001';
const PATCH =
  'diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\r\n+b\u001b[31m\r\n\\ No newline at end of file';
let dir: string;
const show = (...more: string[]) => cli(['show', 'nightly', ...more, '-o', dir]);

beforeAll(() => {
  dir = tempDir();
  const store = openFixture(dir);
  addRun(store, { name: 'nightly', instances: 2, steps: 3 });
  addRun(store, { name: 'two-arms', instances: 1, steps: 2, day: 1, arms: ['short', 'openai/x@1'] });
  const id = addRun(store, { name: 'programs', instances: 1, steps: 2, day: 2, arms: ['short'] });
  statement(store, 'UPDATE arms SET config = ? WHERE run_id = ?').run(
    '{"agent":{"agent_class":"codex@0.1.0"}}',
    id,
  );
  const ended = 'SELECT final_attempt_id FROM trials WHERE run_id = ?';
  statement(store, `UPDATE attempts SET oom_kills = 2 WHERE id IN (${ended})`).run(id);
  const tool = (name: string, args: string) => ({
    id: name,
    type: 'function',
    function: { name, arguments: args },
  });
  const said = {
    role: 'assistant',
    content: '',
    tool_calls: [tool('bash', '{"command":"cat a.py"}'), tool('python', '{}')],
  };
  const first = `(SELECT seq FROM messages WHERE attempt_id = 1 AND role = 'assistant' ORDER BY seq LIMIT 1)`;
  statement(store, `UPDATE messages SET content = '', data = ? WHERE attempt_id = 1 AND seq = ${first}`).run(
    JSON.stringify(said),
  );
  statement(store, 'UPDATE attempts SET model_patch = ? WHERE id = 1').run(PATCH);
  // What an attempt that submitted ends with.
  const last = '(SELECT max(seq) FROM messages WHERE attempt_id = 1)';
  statement(store, `UPDATE messages SET content = ? WHERE attempt_id = 1 AND seq = ${last}`).run(PATCH);
  const long = Array.from({ length: 500 }, (_, i) => `+line ${i}`).join('\n');
  statement(store, 'UPDATE attempts SET model_patch = ? WHERE id = 2').run(long);
  statement(
    store,
    `INSERT INTO leases (attempt_id, engine, began_at, ended_at, how)
     VALUES (1, 'tcp://a:2375', '2026-01-01T00:00:00.000Z', '2026-01-01T00:00:01.000Z', 'moved'), (1, ?, '2026-01-01T00:00:02.000Z', NULL, 'lost')`,
  ).run('tcp://b:2375\u001b[2J');
  const cut = addRun(store, { name: 'cut-short', instances: 1, steps: 2, day: 3 });
  statement(store, 'DELETE FROM evaluations WHERE trial_id IN (SELECT id FROM trials WHERE run_id = ?)').run(
    cut,
  );
  statement(
    store,
    `UPDATE attempts SET model_patch = '', submission = NULL, captured_patch = ?, patch_source = 'captured_at_exit', exit_reason = 'limit_steps',
     exit_class = 'limit' WHERE trial_id IN (SELECT id FROM trials WHERE run_id = ?)`,
  ).run(Buffer.from(`${PATCH}\xff`, 'latin1'), cut);
  store.close();
});
afterAll(() => rmSync(dir, { recursive: true, force: true }));

test('calls of tools are shown with their commands, each message with its step, time and cost', async () => {
  const { stdout, code } = await show(ID);
  expect(code).toBe(0);
  expect(stdout).toMatch(
    /── assistant · step 1 · [\d.]+ s · \$0\.0\d+ ─+\n {2}\$ cat a\.py\n {2}python \{\}\n/,
  );
  expect(stdout).toMatch(/── user · step 1 · 0\.\d s/);
  expect(stdout).not.toContain('\u001b');
});

test('the patch comes once, and what is long loses its middle without --full', async () => {
  expect((await show(ID)).stdout.split('diff --git a/x b/x')).toHaveLength(2);
  const short = (await show(OTHER)).stdout;
  expect(short).toMatch(/\+line 1\n(?:.*\n)* {2}… 440 lines left out …\n(?:.*\n)*\+line 499/);
  expect(short).not.toContain('+line 250');
  expect((await show(OTHER, '--full')).stdout).toContain('+line 250');
});

test('work that was captured and not submitted is shown, and said to be that', async () => {
  const on = ['cut-short', ID, '-o', dir];
  const { stdout } = await cli(['show', ...on]);
  expect(stdout).toContain('It submitted no patch; its work (');
  expect(stdout).toContain('── patch, captured when the attempt ended, not submitted ──');
  expect(stdout).toContain('diff --git a/x b/x');
  expect(stdout).not.toContain('left no patch');
  const patch = await cli(['show', ...on, '--patch']);
  expect(patch.stdout).toContain('diff --git a/x b/x');
  expect(patch.stderr).toMatch(/^\d+ bytes, captured when the attempt ended, not submitted/);
  expect((await cli(['report', 'cut-short', '-o', dir])).stdout).toMatch(
    /Submitted nothing.*captured[^:]*: django/s,
  );
});

test('a run names the agents of its arms, and how many processes the memory limit killed', async () => {
  const { stdout, stderr } = await cli(['show', 'programs', '-o', dir]);
  expect(stderr).toBe('');
  expect(stdout).toMatch(/^arms +short \(.*, codex@0\.1\.0\)$/m);
  expect(stdout).toMatch(/^memory +2 processes killed by the limit \(environment\.memory\) in 1 trial$/m);
  expect((await cli(['show', 'two-arms', '-o', dir])).stdout).not.toMatch(/^memory/m);
});

test('--patch gives a program the patch to the byte', async () => {
  expect((await show(ID, '--patch')).stdout).toBe(PATCH);
});

test('the engines of an attempt are told in their order, with why it left them; an attempt without says nothing', async () => {
  const { stdout } = await show(ID);
  expect(stdout).toContain('engine: tcp://a:2375 (nothing had run there yet), tcp://b:2375');
  expect(stdout).toContain('(the engine was lost)');
  expect(stdout).not.toContain('\u001b');
  expect((await show(OTHER)).stdout).not.toContain('engine:');
  const told = JSON.parse((await show(ID, '--json')).stdout);
  expect(told.engines).toMatchObject([
    { engine: 'tcp://a:2375', how: 'moved' },
    { how: 'lost', endedAt: null },
  ]);
  expect(JSON.parse((await show(OTHER, '--json')).stdout)).not.toHaveProperty('engines');
});

test('of several trials of an instance RUN/ARM@EPOCH chooses one, and the others are named', async () => {
  const one = (selector: string) => cli(['show', selector, ID, '-o', dir]);
  const last = await one('two-arms');
  expect(last.stdout).toContain('arm openai/x@1, epoch 1');
  expect(last.stderr).toContain('1 more trial of this instance, for example');
  expect(last.stderr).toContain('show two-arms/short@1');
  for (const short of ['two-arms/short', 'two-arms/short@1', 'two-a/short'])
    expect((await one(short)).stdout).toContain('arm short, epoch 1');
  for (const slashes of ['two-arms/openai/x@1', 'two-arms/openai/x@1@1'])
    expect((await one(slashes)).stdout).toContain('arm openai/x@1, epoch 1');
  expect((await one('two-arms/long')).stderr).toContain('has no arm "long"; it has short, openai/x@1');
  expect((await one('two-arms@7')).stderr).toContain('has no epoch 7');
  expect((await one('nightly@1')).stderr).not.toContain('more trial');
});
