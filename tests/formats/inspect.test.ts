// Logs of Inspect as runs. The logs in inspectLogs/ were written by Inspect itself, by makeLogs.py beside them.
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { deflateRawSync } from 'node:zlib';
import { expect, onTestFinished, test } from 'vitest';
import { readForeignRun, recogniseSource } from '../../src/formats/formats.ts';
import { importResults, openResults } from '../../src/index.ts';
import { openStore } from '../../src/store/open.ts';
import { zipBytes } from '../support/foreign/zipBytes.ts';

const LOGS = join(import.meta.dirname, 'inspectLogs');

function folder(): string {
  const dir = mkdtempSync(join(tmpdir(), 'inspect-'));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

async function imported(source: string) {
  const told: string[] = [];
  const results = join(folder(), 'results');
  const answer = await importResults(
    { source, results, name: 'theirs' },
    { env: {}, tell: ({ text }) => void told.push(text) },
  );
  return { answer, told: told.join('\n'), results };
}

test.each(['made.eval', 'older.eval', 'made.json'])(
  '%s: epochs, scores, patches, limits, tokens and cost are taken; samples with errors are missing',
  async (name) => {
    const { answer, told, results } = await imported(join(LOGS, name));
    expect(answer).toMatchObject({ instances: 5, trials: 10, verdicts: { found: 10, judged: 10 } });
    expect(told).toMatch(
      /Inspect's mean is 0\.375 .* here it is 0\.375 over 4 samples \(no difference\), and 3 of 7/,
    );
    expect(told).toMatch(
      /missing of 10 trials: 3 that ended by an error.*made__made-3, epoch 2 \(ConnectionError\('the sandbox is gone'\)\)/,
    );
    const opened = openResults(results);
    onTestFinished(() => opened.close());
    const trials = opened
      .trials('theirs')
      .map((t) => [t.instance_id.at(-1), t.epoch, t.exit_reason, t.outcome, t.cost_nano]);
    expect(trials).toEqual([
      ['1', 1, 'submitted', 'resolved', 10_000_000],
      ['2', 1, 'submitted', 'resolved', 10_000_000],
      ['3', 1, 'submitted', 'unresolved', 10_000_000],
      ['4', 1, 'env_died', 'infra', 10_000_000],
      ['5', 1, 'limit_steps', 'unresolved', 30_000_000],
      ['1', 2, 'submitted', 'resolved', 10_000_000],
      ['2', 2, 'submitted', 'unresolved', 10_000_000],
      ['3', 2, 'env_died', 'infra', 10_000_000],
      ['4', 2, 'env_died', 'infra', 10_000_000],
      ['5', 2, 'limit_steps', 'unresolved', 30_000_000],
    ]);
    expect(opened.report('theirs').arms[0]).toMatchObject({ valid: 7, estimate: { mean: 0.375, n: 4 } });
    const store = openStore(join(results, 'swebatch.db'), { readonly: true });
    const patch = store.prepare('SELECT model_patch, patch_state FROM attempts ORDER BY id').all() as {
      model_patch: string;
      patch_state: string;
    }[];
    const [used] = store
      .prepare('SELECT input_tokens, cache_read_tokens, output_tokens, reasoning_tokens FROM model_calls')
      .all();
    const said = store.prepare('SELECT role, content FROM messages WHERE attempt_id = 1 ORDER BY seq').all();
    store.close();
    expect(patch[0]).toEqual({
      model_patch: 'diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-a = 1\n+a = 1\n',
      patch_state: 'ok',
    });
    expect(used).toEqual({
      input_tokens: 100,
      cache_read_tokens: 30,
      output_tokens: 20,
      reasoning_tokens: 5,
    });
    expect(said).toEqual([
      { role: 'system', content: 'You repair.' },
      { role: 'user', content: 'repair number 1' },
      { role: 'assistant', content: 'I changed `a.py`.' },
    ]);
  },
);

const header = (more: Record<string, unknown> = {}) => ({
  ...{ version: 2, status: 'success' },
  eval: {
    task: 't',
    task_id: 'x',
    model: 'm',
    dataset: { sample_ids: ['a__a-1', 'a__a-2'] },
    config: { epochs: 2 },
  },
  results: { scores: [{ name: 'swe_bench_scorer', metrics: { mean: { name: 'mean', value: 1 } } }] },
  ...more,
});
const sample = (id: string, more: Record<string, unknown> = {}) => ({
  ...{ id, epoch: 1, messages: [{ role: 'user', content: 'attachment://k' }], attachments: { k: 'long' } },
  scores: { swe_bench_scorer: { value: 'C', metadata: { model_patch: '' } } },
  ...more,
});
const part = (name: string, value: unknown) => {
  const plain = Buffer.from(typeof value === 'string' ? value : JSON.stringify(value));
  return { name, stored: deflateRawSync(plain), method: 8, plain };
};
function log(parts: ReturnType<typeof part>[], name = 'log.eval', dir = folder()): string {
  writeFileSync(join(dir, name), zipBytes(parts));
  return join(dir, name);
}

test('planned samples that are not there are missing; a broken sample has the verdict of its summary and no patch', async () => {
  const path = log([
    part('header.json', header()),
    part('samples/a__a-1_epoch_1.json', '{"id": "a__a-1", "epoch"'),
    part('summaries.json', [
      sample('a__a-1', {
        messages: undefined,
        scores: { swe_bench_scorer: { value: 1, metadata: { model_patch: 'diff --git joined' } } },
      }),
    ]),
  ]);
  const read = await readForeignRun(path);
  expect(read?.warnings.join('\n')).toMatch(
    /samples\/a__a-1_epoch_1\.json: it is not JSON: .*; its summary is used\n.*1 of 1 trials.*\nmissing of 4 trials: 3 that never ran/,
  );
  expect(read?.instances).toMatchObject([{ instanceId: 'a__a-1', modelPatch: null, messages: [] }]);
  expect(read?.verdicts.get('a__a-1')?.verdict).toBe('resolved');
  expect(read?.neverRun).toHaveLength(3);
});

test('a log that was never finished is read from its journal; scores are words, limits and attachments are read', async () => {
  const read = await readForeignRun(
    log([
      part('_journal/start.json', { version: 2, eval: header().eval }),
      part('samples/a__a-1_epoch_1.json', sample('a__a-1', { limit: { type: 'token', limit: 5 } })),
      part('samples/a__a-2_epoch_1.json', sample('a__a-2', { scores: { other: { value: 'I' } } })),
      part(
        'samples/a__a-2_epoch_2.json',
        sample('a__a-2', { epoch: 2, scores: { other: { value: Number.NaN } } }),
      ),
    ]),
  );
  expect(read?.warnings.join('\n')).toMatch(
    /never finished.*\n.*no number of Inspect's own: its status is started/,
  );
  expect(read?.instances.map((i) => i.exitReason)).toEqual(['limit_tokens', 'submitted', 'submitted']);
  expect(read?.instances[0]?.messages).toEqual([{ role: 'user', content: 'long' }]);
  expect([...read!.verdicts.values()].map((v) => [v.verdict, v.reason])).toEqual([
    ['resolved', null],
    ['unresolved', null],
    ['error', 'no_score'],
  ]);
});

test('logs of a folder are arms; of a task that was repeated the newest counts; other files are not logs', async () => {
  const dir = folder();
  const of = (model: string, task_id: string, created: string) => ({
    ...header().eval,
    model,
    task_id,
    created,
  });
  const one = (is: unknown) => [
    part('header.json', header({ eval: is })),
    part('samples/a__a-1_epoch_1.json', sample('a__a-1')),
  ];
  log(one(of('a', '1', '2026-01-01')), '1.eval', dir);
  log(one(of('a', '1', '2026-01-02')), '2.eval', dir);
  log(one(of('b', '2', '2026-01-01')), '3.eval', dir);
  writeFileSync(join(dir, 'other.json'), '{}');
  const read = await readForeignRun(dir);
  expect(read?.warnings[0]).toMatch(/1\.eval is left out: a newer log repeats its task/);
  expect(read?.instances.map((i) => i.arm)).toEqual(['a', 'b']);
  expect(read?.problems).toEqual([]);
  expect(await recogniseSource(join(dir, 'other.json'))).toBeNull();
  copyFileSync(join(LOGS, 'made.json'), join(dir, 'plain.json'));
  expect((await readForeignRun(join(dir, 'plain.json')))?.instances).toHaveLength(10);
});

test.each<[string, (path: string) => void, RegExp]>([
  [
    'cut off',
    (path) => writeFileSync(path, readFileSync(join(LOGS, 'made.eval')).subarray(0, 9000)),
    /cut off/,
  ],
  [
    'no log',
    (path) => writeFileSync(path, zipBytes([part('a.txt', 'x')])),
    /no header\.json: it is no log of Inspect/,
  ],
  [
    'of another form',
    (path) => writeFileSync(path, zipBytes([part('header.json', { eval: { task: 1 } })])),
    /header\.json: line 1: eval/,
  ],
  [
    'with an id that is a path',
    (path) =>
      writeFileSync(
        path,
        zipBytes([part('header.json', header()), part('samples/x_epoch_1.json', sample('../../x'))]),
      ),
    /not an instance id/,
  ],
])('an archive that is %s is a problem with its name', async (_what, write, message) => {
  const path = join(folder(), 'x.eval');
  write(path);
  expect((await readForeignRun(path))?.problems.join()).toMatch(message);
});
