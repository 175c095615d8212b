// Results of another tool become a run from a program: nothing is printed, what is odd is told, what is wrong rejects.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { importResults, openResults, UserError } from '../../../src/index.ts';
import { openStore } from '../../../src/store/open.ts';

function folder() {
  const root = mkdtempSync(join(tmpdir(), 'import-results-'));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  return root;
}
const quiet = { env: {}, tell: () => undefined };

test('predictions of another tool are a run that can be opened', async () => {
  const root = folder();
  const source = join(root, 'preds.json');
  writeFileSync(
    source,
    JSON.stringify({
      'a__a-1': { instance_id: 'a__a-1', model_name_or_path: 'm', model_patch: 'diff --git a/f b/f\n' },
    }),
  );
  const results = join(root, 'results');
  const answer = await importResults({ source: root, results, name: 'theirs' }, quiet);
  expect(answer).toEqual({ run: 'theirs', instances: 1, verdicts: { found: 0, judged: 0 } });
  const opened = openResults(results);
  expect(opened.runs().map((run) => run.name)).toEqual(['theirs']);
  opened.close();
});

test('a patch that is not UTF-8 is one prediction that is invalid; its bytes are kept and the others go on', async () => {
  const root = folder();
  const patch = (body: string) => `diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+${body}\n`;
  const bytes = Buffer.from(patch('\xe9'), 'latin1');
  for (const [id, content] of [
    ['a__a-1', bytes],
    ['a__a-2', patch('b')],
  ] as const) {
    const at = join(root, 'logs', 'run_evaluation', 'r', 'm', id);
    mkdirSync(at, { recursive: true });
    writeFileSync(join(at, 'patch.diff'), content);
    writeFileSync(join(at, 'report.json'), JSON.stringify({ [id]: { resolved: true } }));
  }
  const told: string[] = [];
  const results = join(root, 'results');
  const answer = await importResults(
    { source: join(root, 'logs'), results, name: 'theirs' },
    { env: {}, tell: ({ text }) => void told.push(text) },
  );
  expect(answer).toMatchObject({ instances: 2, verdicts: { found: 2, judged: 2 } });
  expect(told.join()).toMatch(/a__a-1\/patch\.diff \(a__a-1\): line 6 is not UTF-8/);
  const store = openStore(join(results, 'swebatch.db'), { readonly: true });
  const attempts = store
    .prepare('SELECT patch_state, submission, model_patch, notes FROM attempts ORDER BY id')
    .all();
  store.close();
  expect(attempts).toMatchObject([
    { patch_state: 'invalid', submission: bytes, notes: expect.stringContaining('not UTF-8') },
    { patch_state: 'ok', model_patch: patch('b') },
  ]);
});

test('the same name again, and a source that is not there, reject with a sentence', async () => {
  const root = folder();
  writeFileSync(
    join(root, 'preds.json'),
    JSON.stringify([{ instance_id: 'a__a-1', model_name_or_path: 'm', model_patch: '' }]),
  );
  const results = join(root, 'results');
  await importResults({ source: root, results, name: 'x' }, quiet);
  await expect(importResults({ source: root, results, name: 'x' }, quiet)).rejects.toThrow(UserError);
  await expect(importResults({ source: join(root, 'none'), results }, quiet)).rejects.toThrow(/there is no/);
});

test('what was imported without calls has an unknown cost in listings too, and not $0', async () => {
  const root = folder();
  writeFileSync(join(root, 'map.json'), JSON.stringify({ 'a__a-1': true, constructor: false }));
  const results = join(root, 'results');
  await importResults({ source: join(root, 'map.json'), results, name: 'x' }, quiet);
  const opened = openResults(results);
  onTestFinished(() => opened.close());
  expect(opened.trials('x').map(({ cost_nano }) => cost_nano)).toEqual([null, null]);
});
