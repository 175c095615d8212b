// Slips of a new user: the answer names what was most likely meant.
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openStore } from '../../../src/store/open.ts';
import { recordRun } from '../../report/recordedRun.ts';
import { cli, tempDir } from '../../support/cli.ts';

test.each([
  [['run', '--subset', 'demo', '-m', 'opnai/gpt-5.4', '--dry-run'], 'did you mean openai/gpt-5.4?'],
  [['run', '--subset', 'demo', '-m', 'gtp-5.4', '--dry-run'], 'did you mean gpt-5.4?'],
  [['run', '--subset', 'demo', '-m', 'claude-opus-45', '--dry-run'], 'did you mean claude-opus-4-5?'],
  [['models', 'vertex/gemini-2.5-pro'], 'did you mean vertex_ai/gemini-2.5-pro?'],
])('%j', async (args, said) => {
  const answer = await cli(args, { cwd: tempDir() });
  expect(answer.code).toBe(2);
  expect(answer.stderr).toContain(said);
});

test('a run that is almost named', async () => {
  const out = tempDir();
  using store = openStore(join(out, 'swebatch.db'));
  recordRun(store, { name: 'nightly-0821', ids: ['a__a-1'], happened: () => [] });
  const answer = await cli(['report', 'nigtly-0821', '-o', out]);
  expect(answer.code).toBe(2);
  expect(answer.stderr).toContain('did you mean "nightly-0821"?');
});

test('a model that is almost named has no price that is known, and its row says which one was meant', async () => {
  const answer = await cli(['models', 'claude-opsu-4-5']);
  expect(answer.stdout).toMatch(/did you mean +claude-opus-4-5\?/);
  expect(JSON.parse((await cli(['models', 'claude-opus-4-5', '--json'])).stdout).did_you_mean).toBeNull();
});
