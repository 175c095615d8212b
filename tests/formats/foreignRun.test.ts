// Predictions with reports, entries of the leaderboard and ATIF: what each comes to, and the number that the source states beside ours.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { UserError } from '../../src/index.ts';
import { readSource } from '../../src/results/import/importResults.ts';

function folder(files: Readonly<Record<string, unknown>>): string {
  const dir = mkdtempSync(join(tmpdir(), 'read-source-'));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(dir, name)), { recursive: true });
    writeFileSync(join(dir, name), typeof content === 'string' ? content : JSON.stringify(content));
  }
  return dir;
}
const patch = 'diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n';
const predictions = (...ids: string[]) =>
  ids
    .map((id) =>
      JSON.stringify({
        instance_id: id,
        model_name_or_path: 'm',
        model_patch: id.endsWith('9') ? '' : patch,
      }),
    )
    .join('\n');
async function verdictsOf(source: string) {
  const imported = await readSource(source);
  const { verdicts } = imported;
  return {
    verdicts: Object.fromEntries([...verdicts].map(([id, { verdict }]) => [id, verdict])),
    said: imported.warnings.join('\n'),
    instances: imported.instances,
  };
}

test('an entry of the leaderboard: an empty prediction is a failure, one without logs is missing, the rate is of the dataset', async () => {
  const files = {
    'all_preds.jsonl': predictions('a__a-1', 'a__a-2', 'a__a-3', 'a__a-9'),
    'results/results.json': { resolved: ['a__a-1'], no_generation: ['a__a-9'], no_logs: ['a__a-3'] },
  };
  const { verdicts, said, instances } = await verdictsOf(folder(files));
  expect(verdicts).toEqual({
    'a__a-1': 'resolved',
    'a__a-2': 'unresolved',
    'a__a-3': 'error',
    'a__a-9': 'empty_patch',
  });
  expect(instances.map((i) => i.exitReason)).toEqual(Array(4).fill('submitted'));
  expect(said).toMatch(/its own number is 1 of 4 = 25\.0 %; here it is 1 of 3 = 33\.3 % \(\+8\.3 points/);
  const totals = { ...files, 'results/resolved_by_repo.json': { 'a/a': { resolved: 1, total: 10 } } };
  expect((await verdictsOf(folder(totals))).said).toMatch(/its own number is 1 of 10 = 10\.0 %/);
});

test('figures that are the same here are no warning', async () => {
  const { said, verdicts } = await verdictsOf(
    folder({
      'all_preds.jsonl': predictions('a__a-1', 'a__a-2'),
      'results/results.json': { resolved: ['a__a-1'] },
    }),
  );
  expect([verdicts['a__a-1'], verdicts['a__a-2'], said]).toEqual(['resolved', 'unresolved', '']);
});

test('an entry without predictions is no run in which everything is resolved', async () => {
  const dir = folder({ 'results/results.json': { resolved: ['a__a-1'] } });
  await expect(readSource(dir)).rejects.toThrow(UserError);
});

test('predictions have the verdicts of folders below, else of a run report beside; what the environment broke is missing', async () => {
  const report = {
    ...{ total_instances: 5, submitted_ids: ['a__a-1', 'a__a-2'], resolved_ids: ['a__a-1'] },
    ...{ unresolved_ids: ['a__a-2'], infra_failure_ids: ['a__a-2'] },
  };
  const beside = folder({ 'preds.jsonl': predictions('a__a-1', 'a__a-2', 'a__a-9'), 'm.r.json': report });
  const file = await verdictsOf(join(beside, 'preds.jsonl'));
  expect(file.verdicts).toMatchObject({ 'a__a-1': 'resolved', 'a__a-2': 'error' });
  expect(file.said).toMatch(/its own number is 1 of 5 = 20\.0 %; here it is 1 of 2 = 50\.0 %/);
  expect(file.instances).toHaveLength(3);
  const below = {
    'predictions.jsonl': predictions('a__a-1', 'a__a-2'),
    'logs/r/m/a__a-1/report.json': { 'a__a-1': { resolved: true } },
    'logs/r/m/a__a-2/report.json': { 'a__a-2': { resolved: false, infra_failure: true } },
    'logs/r/m/a__a-8/report.json': { 'a__a-8': { resolved: true } },
  };
  expect((await verdictsOf(folder(below))).verdicts).toEqual({ 'a__a-1': 'resolved', 'a__a-2': 'error' });
});

test('a folder of mini-swe-agent has the verdicts of the harness that lie in it', async () => {
  const trajectory = (id: string) => ({
    ...{ info: { exit_status: 'Submitted', submission: patch, config: {} }, messages: [] },
    ...{ trajectory_format: 'mini-swe-agent-1.1', instance_id: id },
  });
  const dir = folder({
    'a__a-1/a__a-1.traj.json': trajectory('a__a-1'),
    'logs/run_evaluation/r/m/a__a-1/report.json': { 'a__a-1': { resolved: true } },
  });
  expect((await verdictsOf(dir)).verdicts).toEqual({ 'a__a-1': 'resolved' });
});

const atif = (cost: number) => ({
  schema_version: 'ATIF-v1.8',
  ...{ session_id: 's', agent: { name: 'mini', version: '2', model_name: 'p/m' } },
  steps: [
    { step_id: 1, source: 'user', message: 'do it' },
    {
      ...{ step_id: 2, source: 'agent', message: 'done', timestamp: '2026-01-01T00:00:00Z' },
      metrics: {
        ...{ prompt_tokens: 100, cached_tokens: 40, completion_tokens: 7, cost_usd: cost },
        extra: { cache_write_tokens: 10, reasoning_tokens: 2 },
      },
    },
  ],
});

test('ATIF: conversation, tokens and cost; files of one instance are epochs; a damaged file is a problem with its name', async () => {
  const dir = folder({
    'epoch-1/a__a-1.atif.json': atif(0.5),
    'epoch-2/a__a-1.atif.json': atif(1),
    'epoch-2/a__a-1.attempt-1.atif.json': atif(9),
  });
  const { instances } = await verdictsOf(dir);
  expect(instances.map((i) => [i.instanceId, i.epoch, i.model, i.costNano, i.modelPatch])).toEqual([
    ['a__a-1', 1, 'p/m', 500_000_000, null],
    ['a__a-1', 2, 'p/m', 1_000_000_000, null],
  ]);
  expect(instances[0]?.calls).toMatchObject([
    { inputTokens: 50, cacheReadTokens: 40, cacheWriteTokens: 10, outputTokens: 7, reasoningTokens: 2 },
  ]);
  writeFileSync(join(dir, 'b.atif.json'), '{"schema_version": "ATIF-v1.8", "steps": 3}');
  expect((await readSource(dir)).problems.join()).toMatch(/b\.atif\.json: line 1: steps/);
});
