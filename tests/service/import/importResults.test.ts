// Results of another tool become a run from a program: nothing is printed, what is odd is told, what is wrong rejects.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { importResults, openResults, UserError } from '../../../src/index.ts';

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
