// SWE-agent, OpenHands and Terminal-Bench 1, in the forms that their versions wrote: as runs, with what is missing.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { recogniseSource } from '../../src/formats/formats.ts';
import { outputReasonOf, patchOfOutput } from '../../src/formats/openHandsOutput/openHandsOutput.ts';
import { sweReasonOf } from '../../src/formats/sweTraj/sweTraj.ts';
import { compareSources, importResults, openResults } from '../../src/index.ts';
import { readSource } from '../../src/results/import/importResults.ts';
import { openStore } from '../../src/store/open.ts';

function folder(files: Readonly<Record<string, unknown>>): string {
  const dir = mkdtempSync(join(tmpdir(), 'foreign-'));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(dir, name)), { recursive: true });
    writeFileSync(join(dir, name), typeof content === 'string' ? content : JSON.stringify(content));
  }
  return dir;
}
const lines = (...rows: unknown[]): string => rows.map((row) => `${JSON.stringify(row)}\n`).join('');
const PATCH = 'diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n';

async function imported(source: string) {
  const results = folder({});
  const told: string[] = [];
  await importResults(
    { source, results, name: 'theirs' },
    { env: {}, tell: ({ text }) => void told.push(text) },
  );
  const opened = openResults(results);
  onTestFinished(() => opened.close());
  const db = openStore(join(results, 'swebatch.db'), { readonly: true });
  onTestFinished(() => void db.close());
  const [arm] = opened.report('theirs').arms;
  return { arm: arm!, db, told: told.join('\n') };
}

describe('SWE-agent', () => {
  const trajectory = (more: object = {}, info: object = {}) => ({
    environment: 'swe_main',
    trajectory: [{ action: 'ls', observation: 'a.py', response: 'I look', thought: 'I look', state: '{}' }],
    history: [
      { role: 'system', content: 'You fix code.', agent: 'main' },
      { role: 'user', content: [{ type: 'text', text: 'It is broken.' }], agent: 'main' },
      {
        ...{ role: 'assistant', content: 'I look', agent: 'main', action: 'ls', message_type: 'action' },
        tool_calls: [
          { id: 'c', type: 'function', function: { name: 'bash', arguments: '{"command":"ls"}' } },
        ],
      },
      { role: 'tool', content: [{ type: 'text', text: 'a.py' }], tool_call_ids: ['c'] },
    ],
    info: {
      ...{ exit_status: 'submitted', submission: `\n${PATCH}`, swe_agent_version: '1.1.0' },
      model_stats: { instance_cost: 0.5, tokens_sent: 100, tokens_received: 7, api_calls: 3 },
      ...info,
    },
    replay_config: JSON.stringify({ agent: { model: { name: 'claude-x' } } }),
    ...more,
  });
  const run = {
    'a__a-1/a__a-1.traj': trajectory(),
    'a__a-2/a__a-2.traj': trajectory({}, { exit_status: 'submitted (exit_cost)' }),
    'a__a-3/a__a-3.traj': trajectory({}, { exit_status: 'exit_api', submission: null }),
    'a__a-4/a__a-4.traj': '{"trajectory": [',
    'a__a-1/attempt_0/a__a-1.traj': trajectory({}, { exit_status: 'exit_error' }),
    'preds.json': {
      'a__a-1': { instance_id: 'a__a-1', model_name_or_path: 'run', model_patch: PATCH },
      'a__a-5': { instance_id: 'a__a-5', model_name_or_path: 'run', model_patch: null },
    },
    'results.json': {
      ...{ resolved_ids: ['a__a-1'], unresolved_ids: ['a__a-2'], error_ids: ['a__a-3'], submitted_ids: [] },
      ...{ incomplete_ids: ['a__a-6'], pending_ids: [] },
    },
  };

  test('a folder: conversation, tokens, cost, ends and predictions; the verdicts of a report beside', async () => {
    const dir = folder(run);
    expect((await recogniseSource(dir))?.words).toBe('a folder of SWE-agent');
    const { instances, verdicts, neverRun, warnings } = await readSource(dir);
    expect(instances.map((i) => [i.instanceId, i.model, i.exitReason, i.modelPatch, i.steps])).toEqual([
      ['a__a-1', 'claude-x', 'submitted', PATCH, 3],
      ['a__a-2', 'claude-x', 'limit_cost', `\n${PATCH}`, 3],
      ['a__a-3', 'claude-x', 'model_unavailable', '', 3],
      ['a__a-4', 'unknown', 'cancelled', '', 0],
      ['a__a-5', 'run', 'cancelled', '', 0],
    ]);
    expect(instances[0]).toMatchObject({ costNano: 500_000_000, version: '1.1.0' });
    expect(instances[0]!.messages).toEqual([
      { role: 'system', content: 'You fix code.' },
      { role: 'user', content: 'It is broken.' },
      expect.objectContaining({ role: 'assistant', content: 'I look', tool_calls: [expect.anything()] }),
      { role: 'tool', content: 'a.py', tool_call_id: 'c' },
    ]);
    expect([...verdicts].map(([id, { verdict }]) => [id, verdict])).toContainEqual(['a__a-2', 'unresolved']);
    expect(neverRun).toEqual([{ instanceId: 'a__a-6' }]);
    expect(warnings.join('\n')).toMatch(/a__a-4\.traj cannot be read: it is not JSON/);
    const { arm } = await imported(dir);
    expect([arm.planned, arm.resolved.x, arm.resolved.n]).toEqual([6, 1, 2]);
    expect(arm.accounting.tokens.input).toBe(300);
  });

  test('a folder of several runs has an arm for each, with its own verdicts; shards of one run are one', async () => {
    const report = (resolved_ids: string[], unresolved_ids: string[]) => ({ resolved_ids, unresolved_ids });
    const runs = {
      'gpt/a__a-1.traj': trajectory(),
      'gpt/__proto__.traj': trajectory(),
      'gpt/results.json': report(['a__a-1'], ['__proto__']),
      'claude/a__a-1/a__a-1.traj': trajectory(),
      'claude/a__a-1/attempt_0/a__a-1.traj': trajectory(),
      'claude/results.json': report([], ['a__a-1']),
    };
    const source = folder(runs);
    const { verdicts, warnings } = await readSource(source);
    expect(warnings).toEqual([]);
    expect([...verdicts].map(([key, { verdict }]) => [key, verdict])).toEqual([
      ['a__a-1 1 claude', 'unresolved'],
      ['__proto__ 1 gpt', 'unresolved'],
      ['a__a-1 1 gpt', 'resolved'],
    ]);
    expect((await imported(source)).told).toMatch(/3 trials of 2 instances; 2 arms; 1 of 3 resolved/);
    await expect(readSource(source, join(source, 'gpt/results.json'))).rejects.toThrow(
      /holds 2 runs, and .* is of one/,
    );
    const shards = await readSource(folder({ 'x/a__a-1.traj': trajectory(), 'y/a__a-2.traj': trajectory() }));
    expect(shards.instances.map(({ arm }) => arm)).toEqual([undefined, undefined]);
  });

  test('a lone trajectory, of 0.x without a configuration too', async () => {
    const { replay_config: _, history: __, ...old } = trajectory();
    const dir = folder({
      'all_preds.jsonl': lines({ instance_id: 'b__b-1', model_name_or_path: 'gpt4', model_patch: PATCH }),
      'b__b-1.traj': old,
    });
    const { instances } = await readSource(join(dir, 'b__b-1.traj'));
    expect(instances).toMatchObject([{ instanceId: 'b__b-1', model: 'gpt4', modelPatch: PATCH }]);
    expect(instances[0]!.messages).toEqual([
      { role: 'assistant', content: 'I look' },
      { role: 'user', content: 'a.py' },
    ]);
    const one = await readSource(join(folder(run), 'a__a-2/a__a-2.traj'));
    expect([one.instances.length, one.verdicts.get('a__a-2')?.verdict]).toEqual([1, 'unresolved']);
  });

  test.each([
    ['submitted', 'submitted'],
    ['submitted (exit_context)', 'context_window_exceeded'],
    ['exit_format', 'format_errors_exceeded'],
    ['exit_total_execution_time', 'limit_wall_time'],
    ['exit_environment_error', 'env_died'],
    ['__proto__', 'internal_error'],
    [null, 'cancelled'],
  ])('%s is %s', (status, reason) => {
    expect(sweReasonOf(status)).toBe(reason);
  });
});

describe('OpenHands', () => {
  const response = (id: string, name: string, args: string) => ({
    ...{
      id,
      model: 'gpt-x',
      usage: { prompt_tokens: 100, completion_tokens: 5, prompt_tokens_details: { cached_tokens: 40 } },
    },
    choices: [
      {
        message: {
          content: 'I look',
          tool_calls: [{ id: `t-${id}`, type: 'function', function: { name, arguments: args } }],
        },
      },
    ],
  });
  const meta = (id: string) => ({
    ...{ function_name: 'execute_bash', tool_call_id: `t-${id}` },
    model_response: response(id, 'execute_bash', '{"command":"ls"}'),
  });
  const flat = [
    {
      source: 'user',
      action: 'message',
      message: 'Fix it',
      args: { content: 'Fix it' },
      timestamp: '2026-01-23T16:27:34.291420',
    },
    {
      source: 'agent',
      action: 'run',
      args: { command: 'ls', thought: '' },
      tool_call_metadata: meta('r1'),
      message: 'Running',
    },
    { source: 'agent', observation: 'run', content: 'a.py', tool_call_metadata: meta('r1'), message: 'ran' },
    {
      source: 'agent',
      action: 'finish',
      args: { thought: 'done' },
      tool_call_metadata: meta('r2'),
      timestamp: '2026-01-23T16:28:34Z',
    },
  ];
  const pairs = [
    [
      { source: 'agent', action: 'run', args: { command: 'ls', thought: 'I look' }, message: 'Running' },
      { source: 'agent', observation: 'run', content: 'a.py', message: 'ran' },
    ],
  ];
  const sdk = [
    { kind: 'SystemPromptEvent', system_prompt: { type: 'text', text: 'You fix code.' }, source: 'agent' },
    {
      kind: 'MessageEvent',
      source: 'user',
      llm_message: { role: 'user', content: [{ type: 'text', text: 'Fix it' }] },
    },
    {
      ...{
        kind: 'ActionEvent',
        source: 'agent',
        thought: [{ type: 'text', text: 'I look' }],
        tool_call_id: 'c',
      },
      ...{ tool_name: 'terminal', tool_call: { id: 'c', name: 'terminal', arguments: '{"command":"ls"}' } },
    },
    {
      kind: 'ObservationEvent',
      tool_call_id: 'c',
      observation: { content: [{ type: 'text', text: 'a.py' }] },
    },
    { kind: 'AgentErrorEvent', tool_call_id: 'd', error: 'no such tool' },
    { kind: 'ConversationStateUpdateEvent', key: 'x' },
  ];
  const row = (instance_id: string, more: object = {}) => ({
    instance_id,
    ...{ test_result: { git_patch: PATCH }, instruction: 'Fix it', error: null, history: flat },
    metadata: { agent_class: 'CodeActAgent', llm_config: { model: 'vendor/model' } },
    metrics: { accumulated_cost: 0.3, costs: [{ cost: 0.1, timestamp: 1_769_185_672.1 }, { cost: 0.2 }] },
    ...more,
  });

  test('the flat history: each reply is a call with its cost, and said once', async () => {
    const { instances } = await readSource(
      join(folder({ 'output.jsonl': lines(row('a__a-1')) }), 'output.jsonl'),
    );
    expect(instances).toMatchObject([
      {
        instanceId: 'a__a-1',
        model: 'vendor/model',
        costNano: 300_000_000,
        steps: 2,
        exitReason: 'submitted',
        modelPatch: PATCH,
      },
    ]);
    expect(instances[0]!.calls).toMatchObject([
      { inputTokens: 60, cacheReadTokens: 40, outputTokens: 5, costNano: 100_000_000, model: 'gpt-x' },
      { inputTokens: 60, costNano: 200_000_000 },
    ]);
    expect(instances[0]!.messages.map(({ role, content }) => [role, content])).toEqual([
      ['user', 'Fix it'],
      ['assistant', 'I look'],
      ['tool', 'a.py'],
      ['assistant', 'I look'],
    ]);
    expect(instances[0]!.endedAt! - instances[0]!.startedAt!).toBeCloseTo(60 - 0.29142, 2);
  });

  test('pairs of action and observation, and the events of the SDK', async () => {
    const dir = folder({
      'output.jsonl': lines(
        row('a__a-1', { history: pairs, metrics: null }),
        row('a__a-2', {
          ...{ history: sdk, metadata: null, test_result: { git_patch: '' }, attempt: 1 },
          metrics: {
            ...{ accumulated_cost: 0, costs: [] },
            token_usages: [
              {
                model: 'm',
                prompt_tokens: 10,
                completion_tokens: 2,
                cache_read_tokens: 4,
                cache_write_tokens: 1,
              },
            ],
          },
        }),
      ),
      'metadata.json': { llm: { model: 'vendor/new' } },
    });
    const { instances } = await readSource(dir);
    expect(instances.map(({ model, costNano, modelPatch }) => [model, costNano, modelPatch])).toEqual([
      ['vendor/model', null, PATCH],
      // Without a price its sum of 0 is no cost.
      ['vendor/new', null, ''],
    ]);
    expect(instances[0]!.messages.map(({ role, content }) => [role, content])).toEqual([
      ['assistant', 'I look'],
      ['user', 'a.py'],
    ]);
    expect(instances[1]!.messages.map(({ role, content }) => [role, content])).toEqual([
      ['system', 'You fix code.'],
      ['user', 'Fix it'],
      ['assistant', 'I look'],
      ['tool', 'a.py'],
      ['tool', 'no such tool'],
    ]);
    expect(instances[1]!.calls).toMatchObject([
      { inputTokens: 5, cacheReadTokens: 4, cacheWriteTokens: 1, costNano: null },
    ]);
  });

  const reports = {
    'a__a-1': { resolved: true },
    'a__a-2': { resolved: false, error_eval: true },
    'a__a-3': { resolved: false, empty_generation: true },
  };
  const ids = ['a__a-1', 'a__a-2', 'a__a-3', 'a__a-4'];
  const said = { 'a__a-1': 'resolved', 'a__a-2': 'error', 'a__a-3': 'empty_patch' };
  test.each<[string, Readonly<Record<string, unknown>>]>([
    [
      'in the lines',
      { 'output.jsonl': lines(...ids.map((id) => row(id, { report: reports[id as 'a__a-1'] }))) },
    ],
    [
      'in its results',
      {
        'output.jsonl': lines(
          ...ids.map((id) => row(id, { test_result: { git_patch: PATCH, report: reports[id as 'a__a-1'] } })),
        ),
      },
    ],
    [
      'in output.swebench_eval.jsonl',
      {
        'output.jsonl': lines(...ids.map((id) => row(id))),
        'output.swebench_eval.jsonl': lines(
          ...Object.entries(reports).map(([id, report]) => ({ instance_id: id, test_result: { report } })),
        ),
      },
    ],
    [
      'in a run report',
      {
        'output.jsonl': lines(...ids.map((id) => row(id))),
        'report.json': {
          resolved_ids: ['a__a-1'],
          error_ids: ['a__a-2'],
          empty_patch_ids: ['a__a-3'],
          total_instances: 4,
        },
      },
    ],
    [
      'in output.report.json',
      {
        'output.jsonl': lines(...ids.map((id) => row(id))),
        'output.report.json': {
          resolved_ids: ['a__a-1'],
          error_ids: ['a__a-2'],
          empty_patch_ids: ['a__a-3'],
        },
      },
    ],
  ])('verdicts %s', async (_, files) => {
    const dir = folder(files);
    expect((await recogniseSource(dir))?.words).toBe("OpenHands' output.jsonl");
    const { verdicts } = await readSource(dir);
    expect(Object.fromEntries([...verdicts].map(([id, { verdict }]) => [id, verdict]))).toEqual(said);
    const { arm, told } = await imported(dir);
    expect([arm.resolved.x, arm.resolved.n]).toEqual([1, 2]);
    expect(told).toMatch(/its own number is 1 of [34]/);
  });

  test('broken and hostile lines: one that was cut off is told, another is a problem with its place', async () => {
    const cut = join(
      folder({
        'output.jsonl': `\uFEFF${lines(row('a__a-1'))}\r\n${JSON.stringify(row('a__a-2')).slice(0, 99)}`,
      }),
      'output.jsonl',
    );
    const read = await readSource(cut);
    expect([read.instances.length, read.problems]).toEqual([1, []]);
    expect(read.warnings.join()).toMatch(/output\.jsonl:3 is cut off and was left out/);
    const dir = folder({
      'output.jsonl': `${lines(row('a__a-1'), row('__proto__'), row('../x'))}{"instance_id"\n${lines(row('a__a-1'))}{"instance_id":"b","history":7,"test_result":{}}\n`,
    });
    const broken = await readSource(dir);
    expect(broken.problems.map((problem) => /output\.jsonl:(\d)/.exec(problem)?.[1])).toEqual([
      '3',
      '4',
      '6',
    ]);
    expect(broken.instances.map(({ instanceId }) => instanceId)).toEqual(['a__a-1', '__proto__']);
    expect(broken.warnings.join()).toMatch(/:5 repeats a__a-1; the later one counts/);
  });

  test.each([
    [
      'RuntimeError: Agent reached maximum iteration. Current iteration: 100, max iteration: 100',
      'limit_steps',
    ],
    ['AgentStuckInLoopError: Agent got stuck in a loop', 'submitted'],
    ['litellm.RateLimitError: slow down', 'model_unavailable'],
    ['LLMContextWindowExceedError: too long', 'context_window_exceeded'],
    ['AgentRuntimeTimeoutError', 'env_died'],
    ['ValueError: x', 'internal_error'],
  ])('%s is %s', (error, reason) => {
    expect(outputReasonOf(error)).toBe(reason);
  });

  test('its patch is what its evaluation grades: from the first diff on', () => {
    expect(patchOfOutput(`git diff --no-color\r\n${PATCH}\n\n`)).toBe(PATCH);
    expect([patchOfOutput(null), patchOfOutput(' \n')]).toEqual(['', '']);
  });
});

describe('Terminal-Bench 1', () => {
  const trial = (
    task_id: string,
    k: number,
    is_resolved: boolean | null,
    failure_mode = 'unset',
    more: object = {},
  ) => ({
    ...{
      id: 'x',
      trial_name: `${task_id}.${k}-of-2.2025-09-05`,
      task_id,
      instruction: 'Do it',
      is_resolved,
      failure_mode,
    },
    ...{ parser_results: { test_a: 'passed' }, total_input_tokens: 100, total_output_tokens: 5 },
    ...{ trial_started_at: '2025-09-05T16:00:00+00:00', trial_ended_at: '2025-09-05T16:01:00+00:00' },
    ...more,
  });
  const trials = [
    trial('fix-git', 2, false, 'agent_timeout'),
    trial('fix-git', 1, true),
    trial('crack.easy', 1, null, 'parse_error'),
    trial('crack.easy', 2, false, 'agent_installation_failed', {
      total_input_tokens: 0,
      total_output_tokens: 0,
    }),
    trial('zork', 1, true),
  ];
  const metadata = {
    ...{ run_id: 'r', agent_name: 'terminus', model_name: 'vendor/m', n_attempts: 2, accuracy: 0.4 },
    task_ids: ['fix-git', 'crack.easy', 'zork', 'never'],
  };
  const whole = {
    'run_metadata.json': metadata,
    'results.json': { id: 'x', results: trials, resolved_ids: ['fix-git'], unresolved_ids: ['fix-git'] },
  };

  test('attempts are epochs; what has no verdict, could not start or never ran is missing; its accuracy is told', async () => {
    const dir = folder(whole);
    expect((await recogniseSource(dir))?.words).toBe('a run of Terminal-Bench 1');
    for (const source of [dir, join(dir, 'results.json')]) {
      const { arm, told, db } = await imported(source);
      expect([arm.planned, arm.valid, arm.resolved.x, arm.resolved.n]).toEqual([8, 3, 2, 3]);
      expect(told).toMatch(/its own number is 2 of 5 = 40\.0 %; here it is 2 of 3 = 66\.7 %/);
      const ends = db
        .prepare(
          `SELECT i.instance_id AS id, t.epoch, a.exit_reason AS why FROM trials t JOIN instances i ON i.id = t.instance_pk
           JOIN attempts a ON a.trial_id = t.id ORDER BY 1, 2`,
        )
        .all();
      expect(ends).toEqual([
        { id: 'crack.easy', epoch: 1, why: 'submitted' },
        { id: 'crack.easy', epoch: 2, why: 'env_start_failed' },
        { id: 'fix-git', epoch: 1, why: 'submitted' },
        { id: 'fix-git', epoch: 2, why: 'limit_wall_time' },
        { id: 'zork', epoch: 1, why: 'submitted' },
      ]);
    }
  });

  test('a run that died before its results were written has those of its trials', async () => {
    const { 'results.json': _, ...dead } = whole;
    const dir = folder({
      ...dead,
      ...Object.fromEntries(trials.map((each) => [`${each.task_id}/${each.trial_name}/results.json`, each])),
    });
    expect((await readSource(dir)).instances).toHaveLength(5);
    const again = await compareSources(
      { sides: [dir, folder(whole)], results: join(dir, 'results') },
      { env: { XDG_CACHE_HOME: folder({}) }, tell: () => {} },
    );
    expect(JSON.stringify(again)).toContain('fix-git');
  });

  test('a damaged trial is a problem with its file and line', async () => {
    const dir = folder({
      'results.json': `{"results": [{"trial_name": "a", "task_id": "a", "is_resolved": true},\n {"trial_name": "b", "task_id": 7}]}`,
    });
    expect((await readSource(dir)).problems.join()).toMatch(/results\.json: line 2/);
  });
});

test('results without names of trials are of Terminal-Bench all the same; a folder above says which one to name', async () => {
  const results = { results: [{ task_id: 'a', is_resolved: true, failure_mode: 'unset' }] };
  expect((await readSource(folder({ 'results.json': results }))).instances).toHaveLength(1);
  const above = folder({ 'a/output.jsonl': '{}', 'b/output.jsonl': '{}' });
  await expect(imported(above)).rejects.toMatchObject({
    hint: expect.stringMatching(
      /^name the folder .*\/a; the nearest kind, for its a\/output\.jsonl, is OpenHands/,
    ),
  });
});
