// Harbor tasks of several steps in real containers: each step is verified on what it left, a gate holds the others back, and no test is
// ever in the container of the agent.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { agentBench } from '../support/agents/agentBench.ts';
import { startFakeProvider } from '../support/agents/playedProvider.ts';
import { tempDir } from '../support/cli.ts';
import { dockerAvailable } from '../support/docker.ts';
import {
  attemptsIn,
  isThere,
  keptImages,
  NAMES,
  queryRun,
  removeKept,
  runSteps,
  SCORE,
  SEARCH,
  steppedTask,
  verdictsIn,
} from '../support/kinds/steppedTasks.ts';

const available = await dockerAvailable();

const made: string[] = [];
afterAll(async () => {
  for (const out of made) await removeKept(out);
});

describe.skipIf(!available)('a task of three steps (needs Docker)', () => {
  test('rewards each step on the state it left; a gate stops, strategies differ, a bad test costs its own task alone', async () => {
    const dir = tempDir();
    await steppedTask(dir, 'all-three', [
      {
        toml: 'min_reward = 1.0',
        files: { 'workdir/setup.sh': 'cp given.txt made.txt\n', 'workdir/given.txt': 'given\n' },
        test: `grep -ls "keep[-]running" /proc/[0-9]*/cmdline && exit 1; grep -q given made.txt && test -e one && ! test -e two && ${SCORE(1)}`,
        commands: [SEARCH, 'touch one; (exec -a keep-running sleep 1000) >/dev/null 2>&1 &'],
      },
      {
        toml: 'min_reward = { reward = 0.5 }\n[steps.healthcheck]\ncommand = "test -e one"\n[steps.verifier]\nenv = { HALF = "0.5" }',
        test: `grep -q shared /tests/shared.txt && test -e two && ! test -e three && ${SCORE('$HALF')}`,
        commands: [SEARCH, 'grep -ls "keep[-]running" /proc/[0-9]*/cmdline; touch two'],
      },
      {
        toml: '[steps.verifier]\nenvironment_mode = "separate"\n[[steps.verifier.collect]]\ncommand = "cp /work/three /logs/artifacts/"',
        test: `test -e /logs/artifacts/three && ! test -e /work/three && ${SCORE(1)}`,
        commands: [SEARCH, 'touch three'],
      },
    ]);
    await steppedTask(dir, 'gate-stops', [{}, { toml: 'min_reward = 0.5', test: SCORE(0.25) }, {}]);
    await steppedTask(
      dir,
      'last-counts',
      [{ test: SCORE(0) }, { test: SCORE(0) }, {}],
      'multi_step_reward_strategy = "final"',
    );
    await steppedTask(dir, 'no-reward', [{}, { test: 'echo oops; exit 3' }, {}]);
    const both = await steppedTask(dir, 'out-of-range', [{}, {}, { test: SCORE(7) }]);

    made.push(dir);
    const done = await runSteps(dir, both);
    expect(done.stderr).not.toContain('internal_error');
    const verdicts = verdictsIn(dir);
    expect(
      verdicts.map(({ instance_id, outcome, reward, resolved_strict }) => [
        ...[instance_id, outcome, reward, resolved_strict],
      ]),
    ).toEqual([
      ['all-three', 'unresolved', 2.5 / 3, 0],
      ['gate-stops', 'unresolved', 1.25 / 2, 0],
      ['last-counts', 'resolved', 1, 1],
      ['no-reward', 'infra', null, null],
      ['out-of-range', 'infra', null, null],
    ]);
    expect(JSON.parse(verdicts[0]!.rewards!)).toEqual({
      ...{ reward: 2.5 / 3, 'first/reward': 1, 'second/reward': 0.5, 'third/reward': 1 },
    });
    expect(verdicts[3]!.error_message).toContain(
      'step second has no reward: no-reward: the tests wrote neither /logs/verifier/reward.txt',
    );
    expect(verdicts[3]!.error_message).toContain('Harbor leaves such a step out, and would say: reward 1');
    expect(verdicts[4]!.error_message).toContain('the reward "reward" is 7, which is not between 0 and 1');

    const attempts = attemptsIn(dir);
    expect(attempts.map(({ exit_reason, steps }) => [exit_reason, steps])).toEqual([
      ...[
        ['submitted', 9],
        ['submitted', 2],
        ['submitted', 3],
        ['submitted', 3],
        ['submitted', 3],
      ],
    ]);
    expect(JSON.parse(attempts[1]!.notes)).toEqual(
      expect.arrayContaining([
        'step 2 of 3, second: submitted',
        'step second ends the attempt: its reward "reward" is 0.25, and 0.5 is the least to go on. Not begun: third',
      ]),
    );
    // The end states go with a verdict, and stay for the next evaluation where there is none.
    const there = await Promise.all(attempts.map((one) => Promise.all(keptImages([one]).map(isThere))));
    expect(there).toEqual([
      ...[
        [false, false, false],
        [false, false],
        [false, false, false],
      ],
      ...[
        [true, true, true],
        [true, true, true],
      ],
    ]);

    const searches = queryRun<{ output: Buffer }>(
      dir,
      `SELECT output FROM commands WHERE command LIKE 'grep -rlI%' OR command LIKE 'grep -ls%'`,
    ).map(({ output }) => String(output).trim());
    expect(searches).toEqual(['searched', 'searched', '', 'searched']);

    const messages = queryRun<{ role: string; content: string; data: string }>(
      dir,
      `SELECT m.role, m.content, m.data FROM message_texts m JOIN attempts a ON a.id = m.attempt_id JOIN trials t ON t.id = a.trial_id
       JOIN instances i ON i.id = t.instance_pk WHERE i.instance_id = 'all-three' ORDER BY m.seq`,
    );
    const marked = messages.map(
      ({ data }) => (JSON.parse(data) as { extra: { task_step: string } }).extra.task_step,
    );
    expect([...new Set(marked)]).toEqual([...NAMES]);
    expect(marked).toEqual(
      marked.toSorted((a, b) => NAMES.indexOf(a as 'first') - NAMES.indexOf(b as 'first')),
    );
    for (const name of NAMES)
      expect(messages.filter(({ content }) => content.includes(`Do the ${name} part.`))).toHaveLength(1);
    const trajectory = readFileSync(
      join(dir, 'r1', 'trajectories', 'all-three', 'all-three.traj.json'),
      'utf8',
    );
    expect((JSON.parse(trajectory) as { messages: unknown[] }).messages).toHaveLength(messages.length);
  });

  test('a step whose verifier the agent forged leaves no strict verdict, also when it was verified before the next began', async () => {
    const dir = tempDir();
    const judge = `python3 -c "open('/logs/verifier/reward.txt', 'w').write('0')"`;
    const forge = `printf '#!/bin/sh\necho 1 > /logs/verifier/reward.txt\n' > /usr/local/bin/python3; chmod +x /usr/local/bin/python3`;
    await steppedTask(dir, 'in-between', [
      { toml: 'min_reward = 1.0', test: judge, commands: [forge] },
      { commands: ['rm /usr/local/bin/python3'] },
      {},
    ]);
    const tasks = await steppedTask(dir, 'at-the-end', [{}, {}, { test: judge, commands: [forge] }]);
    made.push(dir);
    await runSteps(dir, tasks);
    expect(
      verdictsIn(dir).map(({ outcome, reward, resolved_strict }) => [outcome, reward, resolved_strict]),
    ).toEqual([
      ['resolved', 1, 0],
      ['resolved', 1, 0],
    ]);
  });

  test('an installed agent is started anew for each step, and its calls are one record', async () => {
    const dir = tempDir();
    const ask = `python3 -c '
import json, os, sys, urllib.request
body = {"model": sys.argv[1], "messages": [{"role": "user", "content": open(sys.argv[2]).read()}], "tools": [{"type": "function", "function": {"name": "bash", "parameters": {}}}]}
request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", json.dumps(body).encode(), {"authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "content-type": "application/json"})
urllib.request.urlopen(request).read()
' {{model}} {{prompt_file}}; cat {{prompt_file}} >> /work/asked`;
    const counts = (n: number) =>
      `test $(grep -c "^Do the" asked) = ${n} && r=1 || r=0; echo $r > /logs/verifier/reward.txt`;
    const { tasks } = await steppedTask(
      dir,
      'program',
      [1, 2, 3].map((n) => ({ test: counts(n) })),
    );
    await using provider = await startFakeProvider([]);
    const bench = agentBench({
      ...{ ids: ['program'], subset: tasks, url: provider.url, dialect: 'chat', grading: true },
      agent: { agent_class: 'command', command: ask, prompt_template: '{{task}}', step_limit: 2 },
    });
    const done = await bench.run();
    expect(done.code, done.stderr).toBe(0);
    // The limit of the attempt ends the third: it is not begun, and its verifier says so.
    expect(attemptsIn(bench.out)).toMatchObject([{ exit_reason: 'limit_steps', steps: 2 }]);
    expect(verdictsIn(bench.out)).toMatchObject([{ outcome: 'unresolved', reward: 2 / 3 }]);
    made.push(bench.out);
    const calls = bench.query<{ call: number; step: number; first_message: number }>(
      'SELECT call, step, first_message FROM program_calls ORDER BY call',
    );
    expect(calls.map(({ call, step }) => [call, step])).toEqual([
      [0, 1],
      [1, 2],
    ]);
    expect(calls[1]!.first_message).toBeGreaterThan(calls[0]!.first_message);
    expect(provider.requests).toHaveLength(2);
  });
});
