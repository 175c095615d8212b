// A job folder of Harbor as a run: what infrastructure lost is missing, and the difference to Harbor's own number is told.
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { readForeignRun, recogniseSource } from '../../src/formats/formats.ts';
import { importResults, openResults } from '../../src/index.ts';
import { openStore } from '../../src/store/open.ts';

const trialOf = (task: string, more: Record<string, unknown>) => ({
  ...{ id: 'x', task_name: task, trial_name: `${task}__1`, task_checksum: '', trial_uri: '', config: {} },
  agent_info: { name: 'mini', version: '2', model_info: { name: 'm', provider: 'p' } },
  agent_result: { n_input_tokens: 10, n_cache_tokens: 4, n_output_tokens: 2, cost_usd: 0.25 },
  ...{ started_at: '2026-01-01T00:00:00Z', finished_at: '2026-01-01T00:01:00Z' },
  ...more,
});
const rewards = (reward: number) => ({ verifier_result: { rewards: { reward } } });
const raised = (exception_type: string) => ({
  exception_info: {
    exception_type,
    exception_message: 'why',
    exception_traceback: '',
    occurred_at: '2026-01-01T00:00:00Z',
  },
});

const ATIF = {
  schema_version: 'ATIF-v1.8',
  ...{ session_id: 's', agent: { name: 'mini', version: '2' } },
  steps: [
    { step_id: 1, source: 'user', message: 'do it' },
    {
      ...{ step_id: 2, source: 'agent', message: [{ type: 'text', text: 'I look' }] },
      tool_calls: [{ tool_call_id: 'c', function_name: 'bash', arguments: { command: 'ls' } }],
      observation: { results: [{ source_call_id: 'c', content: 'a.py' }] },
    },
  ],
};

function job(trials: Record<string, unknown>[], mean?: number): string {
  const dir = mkdtempSync(join(tmpdir(), 'harbor-job-'));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  const evals = mean === undefined ? {} : { mini__m__d: { metrics: [{ mean }] } };
  writeFileSync(
    join(dir, 'result.json'),
    JSON.stringify({ id: 'x', n_total_trials: trials.length, stats: { evals } }),
  );
  trials.forEach((trial, at) => {
    const folder = join(dir, `trial-${at}`);
    mkdirSync(join(folder, 'agent'), { recursive: true });
    writeFileSync(join(folder, 'result.json'), JSON.stringify(trial));
    if (at === 0) writeFileSync(join(folder, 'agent', 'trajectory.json'), JSON.stringify(ATIF));
  });
  return dir;
}

test('rewards, tokens, cost and the conversation are taken; lost trials are missing and named', async () => {
  const source = job(
    [
      trialOf('org/a__a-1', rewards(1)),
      trialOf('a__a-2', rewards(0.5)),
      trialOf('a__a-3', raised('SandboxBuildFailedError')),
      trialOf('a__a-4', { ...rewards(0), ...raised('AgentTimeoutError') }),
      trialOf('a__a-5', { ...rewards(1), ...raised('NonZeroAgentExitCodeError') }),
    ],
    0.5,
  );
  const told: string[] = [];
  const results = join(source, '..', `results-${process.pid}`);
  onTestFinished(() => rmSync(results, { recursive: true, force: true }));
  const answer = await importResults(
    { source, results, name: 'theirs' },
    { env: {}, tell: ({ text }) => void told.push(text) },
  );
  expect(answer).toMatchObject({ instances: 5, verdicts: { found: 5, judged: 5 } });
  expect(told.join('\n')).toMatch(
    /mean is 0\.500 over 5 trials, because it counts 2 .* over the 3 others it is 0\.500, 0\.000 more\. Missing here: a__a-3 \(SandboxBuildFailedError\), a__a-5/,
  );
  const store = openStore(join(results, 'swebatch.db'), { readonly: true });
  const verdicts = store
    .prepare('SELECT outcome, resolved, reward FROM evaluations ORDER BY instance_id')
    .all();
  const messages = store.prepare('SELECT role, content FROM messages ORDER BY seq').all();
  const calls = store
    .prepare('SELECT sum(input_tokens) AS tokens, sum(cost_nano) AS nano FROM model_calls')
    .get();
  store.close();
  expect(verdicts).toEqual([
    { outcome: 'resolved', resolved: 1, reward: 1 },
    { outcome: 'unresolved', resolved: 0, reward: 0.5 },
    { outcome: 'infra', resolved: null, reward: null },
    { outcome: 'unresolved', resolved: 0, reward: 0 },
    { outcome: 'infra', resolved: null, reward: null },
  ]);
  expect(messages).toEqual([
    { role: 'user', content: 'do it' },
    { role: 'assistant', content: 'I look' },
    { role: 'tool', content: 'a.py' },
  ]);
  expect(calls).toEqual({ tokens: 30, nano: 1_250_000_000 });
});

test('a trial without the key "reward" is 0 in the mean that Harbor prints, and the mean of its keys here', async () => {
  const several = (all: Record<string, number>) => ({ verifier_result: { rewards: all } });
  const source = job([
    trialOf('a__a-1', several({ reward: 1, style: 1 })),
    trialOf('a__a-2', several({ reward: 0.25, style: 1 })),
    trialOf('a__a-3', several({ style: 0.334 })),
  ]);
  const told: string[] = [];
  const results = join(source, '..', `results-keys-${process.pid}`);
  onTestFinished(() => rmSync(results, { recursive: true, force: true }));
  await importResults(
    { source, results, name: 'theirs' },
    { env: {}, tell: ({ text }) => void told.push(text) },
  );
  expect(told.join('\n')).toContain(
    'Harbor\'s mean is 0.417 over 3 trials, because it counts 1 without the name "reward" as 0; with the mean of their own names it is 0.528',
  );
});

/** As 0.26 writes what it raised, with the policy that it computed. */
const policed = (exception_type: string, has_valid_reward: boolean) => {
  const { exception_info } = raised(exception_type);
  const policy = { should_retry: true, should_grade: true, has_valid_reward };
  return { exception_info: { ...exception_info, policy } };
};

test('0.26 says itself which rewards are valid, and leaves the others out of its mean', async () => {
  const source = job(
    [
      trialOf('a__a-1', { ...rewards(1), reward_valid: true }),
      // A program that exits with another code than 0 has done its work.
      trialOf('a__a-2', { ...rewards(0), ...policed('NonZeroAgentExitCodeError', true), reward_valid: true }),
      trialOf('a__a-3', { ...rewards(1), ...policed('SomethingNewError', true), reward_valid: true }),
      trialOf('a__a-4', { ...rewards(1), ...policed('ApiRateLimitError', false), reward_valid: false }),
      // A job may set a policy of its own.
      trialOf('a__a-5', { ...rewards(1), ...policed('AgentTimeoutError', false), reward_valid: false }),
      trialOf('a__a-6', { verifier_result: { rewards: { reward: null } }, reward_valid: false }),
      trialOf('a__a-7', { verifier_result: { rewards: { reward: 'NaN' } }, reward_valid: true }),
      // The policy alone says it too, of a step as well.
      trialOf('a__a-8', { ...rewards(1), step_results: [policed('RuntimeError', false)] }),
    ],
    2 / 3,
  );
  const read = await readForeignRun(source);
  expect(read.problems).toEqual([]);
  expect([...read.verdicts].map(([id, { verdict, reason }]) => [id, verdict, reason])).toEqual([
    ['a__a-1', 'resolved', null],
    ['a__a-2', 'unresolved', null],
    ['a__a-3', 'resolved', null],
    ['a__a-4', 'error', 'ApiRateLimitError'],
    ['a__a-5', 'error', 'AgentTimeoutError'],
    ['a__a-6', 'error', 'no_reward'],
    ['a__a-7', 'error', 'no_reward'],
    ['a__a-8', 'error', 'RuntimeError'],
  ]);
  expect(read.warnings).toEqual([
    expect.stringMatching(
      /^Harbor's mean is 0\.667 over the 3 trials with a valid reward; here it is 0\.667\. It leaves out 5, which are missing here: a__a-4 \(ApiRateLimitError\), .*a__a-6 \(no reward\)/,
    ),
  ]);
  // What has a valid reward counts in the run that is made of it.
  const results = join(source, 'results');
  await importResults({ source, results, name: 'theirs' }, { env: {}, tell: () => {} });
  const opened = openResults(results);
  onTestFinished(() => opened.close());
  expect(opened.report('theirs').arms[0]!.resolved).toMatchObject({ x: 2, n: 3 });
});

test('before 0.26 one trial without a number is missing, and its job is read', async () => {
  const read = await readForeignRun(
    job(
      [trialOf('a__a-1', rewards(1)), trialOf('a__a-2', { verifier_result: { rewards: { reward: null } } })],
      0.5,
    ),
  )!;
  expect(read.problems).toEqual([]);
  expect(read.verdicts.get('a__a-2')).toMatchObject({ verdict: 'error', reason: 'no_reward' });
  expect(read.warnings).toEqual([
    "Harbor's mean is 0.500 over 2 trials, because it counts 1 that gave no valid reward as 0; over the 1 others it is 1.000, 0.500 more. Missing here: a__a-2 (no reward)",
  ]);
});

test('before 0.26 a reward that is not valid counted as it stands, and the warning says so', async () => {
  const read = await readForeignRun(
    job([
      trialOf('a__a-1', rewards(0)),
      trialOf('a__a-2', { ...rewards(1), ...raised('NonZeroAgentExitCodeError') }),
      trialOf('a__a-3', raised('SandboxBuildFailedError')),
    ]),
  )!;
  expect(read.warnings).toEqual([
    expect.stringContaining(
      "Harbor's mean is 0.333 over 3 trials, because it counts 2 that gave no valid reward, 1 as it stands and the others as 0; over the 1 others it is 0.000",
    ),
  ]);
});

test('trials of a job that have no result are missing, by its lock and by the folders that they left', async () => {
  const source = job([trialOf('org/a', rewards(1)), trialOf('b', rewards(0))], 0.5);
  const begun = { task: { path: 'tasks/c' }, agent: { name: 'mini', model_name: 'p/m' } };
  for (const [folder, config] of [
    ['c__abcdefg', begun],
    ['__proto____abcdefg', null],
    ['notes', null],
  ] as const) {
    mkdirSync(join(source, folder));
    if (config) writeFileSync(join(source, folder, 'config.json'), JSON.stringify(config));
  }
  const locked = ['org/a', 'b', 'b', 'c', 'd'].map((name) => ({ task: { name }, agent: begun.agent }));
  writeFileSync(join(source, 'lock.json'), JSON.stringify({ trials: locked }));
  const never = async () =>
    (await readForeignRun(source)).neverRun?.map(({ instanceId, epoch }) => `${instanceId} ${epoch}`);
  expect(await never()).toEqual(['b 2', 'c 1', 'd 1', '__proto__ 1']);
  writeFileSync(join(source, 'lock.json'), 'no lock');
  expect(await never()).toEqual(['__proto__ 1', 'c 1']);
});

test('what the steps of a trial used is summed; a step that does not say its cost makes the sum unknown', async () => {
  const step = (step_name: string, cost_usd: number | null) => ({
    ...{ step_name, agent_result: { n_input_tokens: 10, n_cache_tokens: 4, n_output_tokens: 2, cost_usd } },
  });
  const steps = (...step_results: object[]) => ({ ...rewards(1), agent_result: null, step_results });
  const idle = { step_name: 'idle', agent_result: { n_input_tokens: null, cost_usd: null } };
  const source = job([
    trialOf('a__a-1', rewards(1)),
    trialOf('a__a-2', steps(step('one', 0.25), step('two', 0.5), idle)),
    trialOf('a__a-3', steps(step('one', 0.25), step('two', null))),
  ]);
  const conversation = join(source, 'trial-1/steps/two/agent');
  mkdirSync(conversation, { recursive: true });
  writeFileSync(join(conversation, 'trajectory.json'), JSON.stringify(ATIF));
  const [, summed, unknown] = (await readForeignRun(source)).instances;
  expect(summed).toMatchObject({ costNano: 750_000_000, steps: 1 });
  expect(summed!.calls[0]).toMatchObject({ inputTokens: 12, cacheReadTokens: 8, outputTokens: 4 });
  expect(summed!.messages).toHaveLength(3);
  expect(unknown).toMatchObject({ costNano: null, calls: [{ inputTokens: 12 }] });
});

test('the cost of a trial without one of its own is that of its trajectory', async () => {
  const source = job([trialOf('a__a-1', { ...rewards(1), agent_result: null })]);
  const path = join(source, 'trial-0/agent/trajectory.json');
  writeFileSync(path, JSON.stringify({ ...ATIF, final_metrics: { total_cost_usd: 0.25 } }));
  const results = join(source, '..', `results-cost-${process.pid}`);
  onTestFinished(() => rmSync(results, { recursive: true, force: true }));
  await importResults({ source, results, name: 'theirs' }, { env: {}, tell: () => {} });
  const store = openStore(join(results, 'swebatch.db'), { readonly: true });
  onTestFinished(() => void store.close());
  expect(store.prepare('SELECT sum(cost_nano) FROM model_calls').pluck().get()).toBe(250_000_000);
});

test('further trials of a task are epochs in the order in which they began; other agents are arms; attempts that never ran are missing', async () => {
  const at = (minute: number) => ({ started_at: `2026-01-01T00:0${minute}:00Z` });
  const other = { agent_info: { name: 'other', version: '1', model_info: { name: 'm', provider: 'p' } } };
  const dir = job(
    [
      trialOf('a__a-1', { ...rewards(0), ...at(2) }),
      trialOf('a__a-1', { ...rewards(1), ...at(1) }),
      trialOf('a__a-2', { ...rewards(1), ...at(1) }),
      trialOf('a__a-1', { ...rewards(1), ...other }),
    ],
    0.75,
  );
  writeFileSync(join(dir, 'config.json'), JSON.stringify({ n_attempts: 2 }));
  const told: string[] = [];
  const results = join(dir, 'results');
  const answer = await importResults(
    { source: dir, results, name: 'theirs' },
    { env: {}, tell: ({ text }) => void told.push(text) },
  );
  expect(answer).toMatchObject({ instances: 2, trials: 4, verdicts: { found: 4, judged: 4 } });
  expect(told.join()).toMatch(/Harbor's mean is 0\.750 over 4 trials; here it is 0\.750/);
  const opened = openResults(results);
  onTestFinished(() => opened.close());
  const trials = opened.trials('theirs').map((t) => `${t.arm} ${t.instance_id} ${t.epoch} ${t.outcome}`);
  expect(trials.sort()).toEqual([
    'mini/p/m a__a-1 1 resolved',
    'mini/p/m a__a-1 2 unresolved',
    'mini/p/m a__a-2 1 resolved',
    'mini/p/m a__a-2 2 null',
    'other/p/m a__a-1 1 resolved',
    'other/p/m a__a-1 2 null',
  ]);
  expect(opened.run('theirs').status).toBe('incomplete');
});

test('tasks of one name from two places are two tasks', async () => {
  const dir = job([
    trialOf('x/a__a-1', rewards(1)),
    trialOf('y/a__a-1', rewards(0)),
    trialOf('x/b', rewards(0)),
  ]);
  const read = await readForeignRun(dir);
  expect(read?.instances.map((i) => [i.instanceId, i.epoch])).toEqual([
    ['b', 1],
    ['x__a__a-1', 1],
    ['y__a__a-1', 1],
  ]);
});

test('a damaged trial is a problem with its file; another folder is no job', async () => {
  const dir = job([trialOf('a__a-1', rewards(1)), trialOf('a__a-1', rewards(0))]);
  expect((await readForeignRun(dir)).warnings).toEqual([]);
  expect((await readForeignRun(dir)).verdicts.get('a__a-1')?.verdict).toBe('resolved');
  expect((await readForeignRun(dir)).verdicts.get('a__a-1 2 ')?.verdict).toBe('unresolved');
  writeFileSync(join(dir, 'trial-1', 'result.json'), '{"task_name":');
  expect((await readForeignRun(dir)).problems.join()).toMatch(/trial-1\/result\.json: it is not JSON/);
  expect(await recogniseSource(join(dir, 'trial-0'))).toBeNull();
  const odd = await readForeignRun(job([trialOf('a__a-1', rewards(7))]));
  expect(odd?.verdicts.get('a__a-1')).toMatchObject({
    verdict: 'resolved',
    reward: null,
    rewards: { reward: 7 },
  });
});

test('a job that Harbor 0.25.0 wrote: two attempts of five tasks, one of which could not start, one with two named rewards', async () => {
  // Its agent "oracle" ran in containers without network; only paths of the machine were replaced.
  const files = JSON.parse(
    readFileSync(join(import.meta.dirname, 'fixtures', 'harborJob.json'), 'utf8'),
  ) as Record<string, unknown>;
  const source = mkdtempSync(join(tmpdir(), 'harbor-job-'));
  onTestFinished(() => rmSync(source, { recursive: true, force: true }));
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(source, path)), { recursive: true });
    writeFileSync(join(source, path), JSON.stringify(content));
  }
  const told: string[] = [];
  const results = join(source, 'results');
  const answer = await importResults(
    { source, results, name: 'theirs' },
    { env: {}, tell: ({ text }) => void told.push(text) },
  );
  expect(answer).toMatchObject({ instances: 5, trials: 10 });
  expect(told.join('\n')).toContain(
    "Harbor's mean is 0.500 over 10 trials, because it counts 2 that gave no valid reward as 0; over the 8 others it is 0.625, 0.125 more. Missing here: lost (RuntimeError) (2 trials)",
  );
  const opened = openResults(results);
  onTestFinished(() => opened.close());
  const trials = opened.trials('theirs').map((t) => `${t.instance_id} ${t.epoch} ${t.outcome}`);
  expect(trials.sort()).toEqual([
    ...['lost 1 infra', 'lost 2 infra', 'named 1 resolved', 'named 2 resolved'],
    ...['partial 1 unresolved', 'partial 2 unresolved', 'right 1 resolved', 'right 2 resolved'],
    ...['wrong 1 unresolved', 'wrong 2 unresolved'],
  ]);
  const store = openStore(join(results, 'swebatch.db'), { readonly: true });
  const calls = store.prepare('SELECT count(*) AS n FROM model_calls').get();
  const rewards = store.prepare("SELECT DISTINCT rewards FROM evaluations WHERE instance_id = 'named'").all();
  store.close();
  expect(calls).toEqual({ n: 0 });
  expect(rewards).toEqual([{ rewards: '{"reward":1,"style":0.25}' }]);
});
