// mini-swe-agent's folders become plain data in our words, from both formats, without inventing anything.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readForeignRun } from '../../src/formats/formats.ts';
import { reasonOf } from '../../src/formats/miniSweAgent/miniSweAgent.ts';
import { trajectoryJson } from '../../src/formats/miniSweAgent/writeTrajectory.ts';
import { exitClassOf } from '../../src/outcome.ts';
import { attemptRecords } from '../../src/store/records/attemptBodies.ts';
import { openMemory, recordRun } from '../report/recordedRun.ts';

const home = mkdtempSync(join(tmpdir(), 'swebatch-import-'));
afterAll(() => rmSync(home, { recursive: true }));

const write = (path: string, value: unknown) => {
  mkdirSync(join(home, path, '..'), { recursive: true });
  writeFileSync(join(home, path), typeof value === 'string' ? value : JSON.stringify(value));
};

describe('a folder of version 2', () => {
  beforeAll(() => {
    write('v2/preds.json', {
      'a-1': { model_name_or_path: 'm', instance_id: 'a-1', model_patch: 'diff\n' },
      'a-2': { model_name_or_path: 'm', instance_id: 'a-2', model_patch: '' },
      'a-3': { model_name_or_path: 'm', instance_id: 'a-3', model_patch: null },
    });
    write('v2/a-1/a-1.traj.json', {
      info: {
        model_stats: { instance_cost: 0.5, api_calls: 2 },
        config: { agent: { step_limit: 250 }, model: { model_name: 'm' } },
        mini_version: '2.4.6',
        exit_status: 'Submitted',
        submission: 'diff\n',
      },
      messages: [
        { role: 'system', content: 's' },
        {
          role: 'assistant',
          content: null,
          extra: {
            timestamp: 10.5,
            cost: 0.25,
            response: {
              id: 'r1',
              model: 'm-snapshot',
              choices: [{ finish_reason: 'tool_calls' }],
              usage: {
                prompt_tokens: 100,
                completion_tokens: 7,
                prompt_tokens_details: { cached_tokens: 60 },
              },
            },
          },
        },
        { role: 'exit', content: 'diff\n', extra: { exit_status: 'Submitted', submission: 'diff\n' } },
      ],
      trajectory_format: 'mini-swe-agent-1.1',
      instance_id: 'a-1',
    });
    write('v2/a-2/a-2.traj.json', {
      info: {
        model_stats: { instance_cost: 3, api_calls: 40 },
        config: {},
        exit_status: 'LimitsExceeded',
        submission: '',
      },
      messages: [],
      trajectory_format: 'mini-swe-agent-1.1',
    });
    write('v2/broken/broken.traj.json', '{');
  });

  test('gives exit reasons, money and tokens', async () => {
    const { instances, warnings } = await readForeignRun(join(home, 'v2'));
    expect(
      instances.map((i) => [i.instanceId, i.exitReason, exitClassOf(i.exitReason), i.modelPatch, i.costNano]),
    ).toEqual([
      ['a-1', 'submitted', 'agent', 'diff\n', 5e8],
      ['a-2', 'limit_cost', 'limit', '', 3e9],
      // No trajectory: the environment never started, and nothing is known of its cost.
      ['a-3', 'env_start_failed', 'infra', '', null],
      // Somebody ran it and its file is damaged: it is not lost, and nothing is claimed of it.
      ['broken', 'cancelled', 'cancelled', '', null],
    ]);
    expect(instances[0]!.calls).toEqual([
      {
        step: 1,
        model: 'm-snapshot',
        responseId: 'r1',
        finishReason: 'tool_calls',
        rawUsage: { prompt_tokens: 100, completion_tokens: 7, prompt_tokens_details: { cached_tokens: 60 } },
        inputTokens: 40,
        cacheReadTokens: 60,
        outputTokens: 7,
        reasoningTokens: null,
        costNano: 2.5e8,
        at: 10.5,
      },
    ]);
    expect(warnings.join()).toContain('broken.traj.json cannot be read');
  });
});

test('version 1 wrote the exception as the patch of a failed instance: it is none', async () => {
  write('v1/preds.json', {
    'a-1': { model_name_or_path: 'm', instance_id: 'a-1', model_patch: 'RetryError[...]' },
  });
  write('v1/a-1/a-1.traj.json', {
    info: { exit_status: 'RetryError', submission: 'RetryError[...]', config: {} },
    messages: [],
    trajectory_format: 'mini-swe-agent-1',
  });
  expect((await readForeignRun(join(home, 'v1'))).instances[0]).toMatchObject({
    exitReason: 'model_unavailable',
    modelPatch: '',
    submission: null,
  });
});

describe('a folder that is damaged or half there', () => {
  const submitted = (id: string, submission: string) => ({
    info: {
      model_stats: { instance_cost: 1, api_calls: 1 },
      config: {},
      exit_status: 'Submitted',
      submission,
    },
    messages: [],
    trajectory_format: 'mini-swe-agent-1.1',
    instance_id: id,
  });
  const read = async (folder: string) => {
    const { instances, warnings } = await readForeignRun(join(home, folder));
    return { rows: instances.map((i) => [i.instanceId, i.exitReason, i.modelPatch]), warnings, instances };
  };

  test('a preds.json that ends in the middle costs no trajectory: their submissions are taken, and it is said', async () => {
    write('torn/preds.json', '{"a-1": {"model_name_or_path": "m", "inst');
    write('torn/a-1/a-1.traj.json', submitted('a-1', 'diff --git a/x b/x\n'));
    const { rows, warnings } = await read('torn');
    expect(rows).toEqual([['a-1', 'submitted', 'diff --git a/x b/x\n']]);
    expect(warnings.join()).toMatch(/torn\/preds\.json cannot be read .*submissions of the trajectories/);
  });
  test('a line of all_preds.jsonl that is none is left out by its number', async () => {
    write(
      'lines/all_preds.jsonl',
      '{"instance_id": "a-1", "model_patch": "diff --git a/x b/x\\n"}\n{"instance_id": "a-2", "mod\n{"model_patch": ""}\n',
    );
    const { rows, warnings } = await read('lines');
    expect(rows).toEqual([['a-1', 'submitted', 'diff --git a/x b/x\n']]);
    expect(warnings.join('\n')).toContain('all_preds.jsonl:2 cannot be read');
    expect(warnings.join('\n')).toContain('a prediction cannot be used: instance_id');
  });
  test('a list of predictions is read as the harness reads it, and rows without an id have their key', async () => {
    write('list/preds.json', [{ instance_id: 'a-1', model_patch: 'diff --git a/x b/x\n' }]);
    write('keys/preds.json', { 'a-1': { model_patch: 'diff --git a/x b/x\n' } });
    for (const folder of ['list', 'keys'])
      expect((await read(folder)).rows).toEqual([['a-1', 'submitted', 'diff --git a/x b/x\n']]);
  });
  test('a damaged trajectory keeps its prediction; without one nothing is claimed of it; a whole copy wins', async () => {
    write('half/preds.json', {
      'a-1': { instance_id: 'a-1', model_patch: 'diff --git a/x b/x\n' },
      'a-2': { instance_id: 'a-2', model_patch: '' },
    });
    for (const id of ['a-1', 'a-2', 'a-3']) write(`half/${id}/${id}.traj.json`, '{"info": {');
    write('half/backup/a-3.traj.json', submitted('a-3', 'diff --git a/y b/y\n'));
    const { rows, instances } = await read('half');
    expect(rows).toEqual([
      ['a-1', 'submitted', 'diff --git a/x b/x\n'],
      ['a-2', 'cancelled', ''],
      ['a-3', 'submitted', 'diff --git a/y b/y\n'],
    ]);
    expect(instances[1]!.errorMessage).toContain('the trajectory cannot be read');
  });
  test('a trajectory saved in mid-run never said how it ended', async () => {
    write('mid/a-1/a-1.traj.json', { ...submitted('a-1', ''), info: { exit_status: '', submission: '' } });
    expect((await read('mid')).rows).toEqual([['a-1', 'cancelled', '']]);
  });
  test('a prediction that is not what the trajectory submitted is told; that of a limit is kept where it is a patch', async () => {
    write('other/preds.json', {
      'a-1': { instance_id: 'a-1', model_patch: 'diff --git a/new b/new\n' },
      'a-2': { instance_id: 'a-2', model_patch: 'diff --git a/kept b/kept\n' },
    });
    write('other/a-1/a-1.traj.json', submitted('a-1', 'diff --git a/old b/old\n'));
    const limit = submitted('a-2', '');
    write('other/a-2/a-2.traj.json', { ...limit, info: { ...limit.info, exit_status: 'LimitsExceeded' } });
    const { rows, warnings } = await read('other');
    expect(rows).toEqual([
      ['a-1', 'submitted', 'diff --git a/new b/new\n'],
      ['a-2', 'limit_cost', 'diff --git a/kept b/kept\n'],
    ]);
    expect(warnings).toEqual([
      'the predictions of 1 instances (a-1) differ from what their trajectories submitted; the predictions are used',
    ]);
  });
});

test('exit statuses map to our reasons; a limit is told apart by the steps', () => {
  const config = { agent: { step_limit: 5 } };
  expect(reasonOf('LimitsExceeded', config, 5)).toBe('limit_steps');
  expect(reasonOf('LimitsExceeded', config, 4)).toBe('limit_cost');
  expect(reasonOf('Uncaught AuthenticationError', {}, 0)).toBe('auth_failed');
  expect(reasonOf('OpenRouterRateLimitError', {}, 0)).toBe('model_unavailable');
  expect(reasonOf('Uncaught RequestyAuthenticationError', {}, 0)).toBe('auth_failed');
  expect(reasonOf('SomethingNew', {}, 0)).toBe('internal_error');
  expect(reasonOf(null, {}, 0)).toBe('cancelled');
});

test('our own export reads back as it was', async () => {
  const db = openMemory();
  const runId = recordRun(db, {
    ids: ['a__a-1'],
    happened: () => [{ patch: 'p\n', messages: [{ role: 'user', content: 'u' }] }],
  });
  for (const attempt of attemptRecords(db, runId))
    write('own/trajectories/a__a-1/a__a-1.traj.json', await trajectoryJson(attempt));
  const [found] = (await readForeignRun(join(home, 'own'))).instances;
  expect(found).toMatchObject({
    instanceId: 'a__a-1',
    exitReason: 'submitted',
    submission: 'p\n',
    costNano: 1e9,
    steps: 5,
  });
});

const shared = join(import.meta.dirname, '..', '..', '..', '..', 'shared', 'data', 'trajectories');
test.skipIf(!existsSync(shared))(
  '100 published trajectories: statuses, patches and costs agree with their summary (needs the shared data folder)',
  async () => {
    const folder = join(home, 'published');
    mkdirSync(folder);
    execFileSync('tar', ['xzf', join(shared, 'mini-swe-agent-1.15.0-verified-100.tar.gz'), '-C', folder]);
    writeFileSync(join(folder, 'preds.json'), readFileSync(join(shared, 'preds.json')));
    const summary = JSON.parse(readFileSync(join(shared, 'summary.json'), 'utf8')) as Record<
      string,
      {
        exit_status: string;
        cost: number;
        api_calls: number;
        prompt_tokens: number;
        completion_tokens: number;
      }
    >;
    const { instances } = await readForeignRun(folder);
    const withFile = instances.filter((i) => i.file !== null);
    expect(withFile).toHaveLength(100);
    for (const i of withFile) {
      const expected = summary[i.instanceId]!;
      expect([i.instanceId, i.exitStatus, i.steps]).toEqual([
        i.instanceId,
        expected.exit_status,
        expected.api_calls,
      ]);
      expect(Math.abs(i.costNano! / 1e9 - expected.cost)).toBeLessThan(1e-9);
      const ledger = i.calls.reduce((s, c) => s + (c.costNano ?? 0), 0);
      expect(Math.abs(ledger - i.costNano!)).toBeLessThanOrEqual(100);
      expect(i.calls.reduce((s, c) => s + c.inputTokens! + c.cacheReadTokens!, 0)).toBe(
        expected.prompt_tokens,
      );
      expect(i.calls.reduce((s, c) => s + c.outputTokens!, 0)).toBe(expected.completion_tokens);
    }
  },
);

test('a prediction with a patch and no trajectory was submitted; without a patch its environment never started', async () => {
  write('alone/preds.json', {
    'a-1': { instance_id: 'a-1', model_patch: 'diff --git a/x b/x\n' },
    'a-2': { instance_id: 'a-2', model_patch: 'docker: no such image' },
  });
  expect(
    (await readForeignRun(join(home, 'alone'))).instances.map((i) => [
      i.instanceId,
      i.exitReason,
      i.modelPatch,
    ]),
  ).toEqual([
    ['a-1', 'submitted', 'diff --git a/x b/x\n'],
    ['a-2', 'env_start_failed', ''],
  ]);
});
