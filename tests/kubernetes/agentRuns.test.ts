// Whole runs of installed agents in pods of a real cluster: they solve instances of the bundled dataset, and nothing of them has the key.
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, expect, test } from 'vitest';
import { buildPrograms } from '../../scripts/buildPrograms.ts';
import {
  type AgentBenchOptions,
  addedFromNpm,
  agentBench,
  agentsTested,
  byInstance,
  REAL_KEY,
  solve,
} from '../support/agents/agentBench.ts';
import { startFakeProvider, type Turn } from '../support/agents/playedProvider.ts';
import { attemptsOf, filesWith } from '../support/agents/programFaults.ts';
import { docker } from '../support/docker.ts';
import { clusterScript, containersOfPod, kubectl, podNames } from './clusterTools.ts';

beforeAll(() => void buildPrograms());

const ID = 'swebatch__tabular-23';
const OTHER = 'swebatch__cronwheel-25';
/** The key in pieces, because the command itself would be found. */
const LOOK = `grep -rlsE "${REAL_KEY.slice(0, 6)}[-]?${REAL_KEY.slice(6)}" /proc/[0-9]*/environ /proc/[0-9]*/cmdline /opt /var /tmp /root /home /etc /run /usr/local /testbed; env | grep -i proxy; ls -d /var/run/secrets/kubernetes.io; timeout 5 bash -c 'exec 3<>/dev/tcp/1.1.1.1/443' && echo outside; echo looked`;

/** Asks the model in chat's form as often as `$1` says. */
const ASK = `python3 -c '
import json, os, sys, urllib.request
for n in range(int(sys.argv[1])):
    body = {"model": sys.argv[2], "messages": [{"role": "user", "content": "turn %d" % n}], "tools": [{"type": "function", "function": {"name": "bash", "parameters": {}}}]}
    request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", json.dumps(body).encode(), {"authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "content-type": "application/json"})
    try:
        urllib.request.urlopen(request).read()
    except urllib.error.HTTPError as error:
        print(error.code, flush=True)
'`;

const bench = (options: Omit<AgentBenchOptions, 'environment' | 'variables'>) =>
  agentBench({
    ...options,
    environment: {
      ...{ environment_class: 'kubernetes', memory: '1g' },
      kubernetes: { cpu_request: '10m', memory_request: '16Mi' },
    },
    variables: { KUBECONFIG: process.env.KUBECONFIG ?? '' },
  });
const outcomesOf = (of: ReturnType<typeof bench>) =>
  of.query<{ outcome: string }>('SELECT outcome FROM evaluations ORDER BY id').map(({ outcome }) => outcome);
/** A pod that only starts has none, and one that is being removed neither. */
const logsOf = (pod: string): string => {
  try {
    return kubectl('logs', pod, '--all-containers');
  } catch {
    return '';
  }
};
/** Everything the cluster can tell: pods as they were made, and what their containers printed. */
const clusterSays = () =>
  [
    kubectl('get', 'pods', '-o', 'json'),
    kubectl('get', 'events', '-o', 'json'),
    ...podNames().map(logsOf),
  ].join('\n');

describe('an installed agent in pods', () => {
  test.for(agentsTested())(
    '$agent solves two instances, and neither pods, logs nor files have the key',
    async (one, context) => {
      const missing = await addedFromNpm(one);
      if (missing) return context.skip(missing);
      const turns = (id: string): Turn[] => [one.runs(LOOK), one.runs(solve(id)), { say: 'Done.' }];
      let said = '';
      await using provider = await startFakeProvider(
        byInstance({ [ID]: turns(ID), [OTHER]: turns(OTHER) }),
        (_seen, _response, { results }) => {
          if (results === 2) said += clusterSays();
          return false;
        },
      );
      const run = bench({
        ...{ ids: [ID, OTHER], url: provider.url, dialect: one.dialect, grading: true },
        agent: { agent_class: one.agent, wall_time_limit_seconds: 300 },
      });
      const done = await run.run('-w', '2');
      expect(done.code, done.stderr).toBe(0);
      expect(attemptsOf(run)).toMatchObject(
        [1, 2].map(() => ({ exit_reason: 'submitted', exit_class: 'agent', steps: 3 })),
      );
      expect(outcomesOf(run)).toEqual(['resolved', 'resolved']);
      const looked = run.query<{ output: Buffer }>(
        "SELECT output FROM commands WHERE command LIKE 'grep -rlsE%'",
      );
      expect(looked).toHaveLength(2);
      for (const { output } of looked) {
        expect(output.toString()).toMatch(/\nlooked\b/);
        expect(output.toString()).not.toMatch(/environ|cmdline|outside|proxy=|^\//m);
      }
      expect(said).toContain('swebatch-relay');
      expect(said).not.toContain(REAL_KEY);
      expect(JSON.stringify(provider.requests[0]!.headers)).toContain(REAL_KEY);
      expect(filesWith(run.out, REAL_KEY)).toEqual([]);
      await expect.poll(podNames).toEqual([]);
    },
  );

  /** The first call of a model stays open. */
  function holdFirst() {
    const held = Promise.withResolvers<void>();
    let first = true;
    const before = () => {
      const hold = first;
      first = false;
      if (hold) held.resolve();
      return hold;
    };
    return { held: held.promise, before };
  }
  const line = (url: string, command: string, more: Partial<AgentBenchOptions> = {}) =>
    bench({
      ...{ ids: [ID], url, dialect: 'chat', grading: true, ...more },
      agent: { agent_class: 'command', command, ...more.agent },
    });

  test('a line of a shell is an agent too, and is tried again when its relay is killed', async () => {
    const { held, before } = holdFirst();
    await using provider = await startFakeProvider([], before);
    const run = line(provider.url, `${ASK} 1 {{model}} && ${solve(ID)}`, {
      run: { retry: { attempts: 2, backoff_s: 0 } },
    });
    const running = run.start();
    await Promise.race([held, running.done.then(({ stderr }) => Promise.reject(new Error(stderr)))]);
    const [pod] = kubectl('get', 'pods', '-l', `swebatch/run=${run.id}`, '-o', 'name').trim().split('\n');
    const [relay] = await containersOfPod(pod!.replace('pod/', ''), 'swebatch-relay');
    await docker.getContainer(relay!).kill();
    const done = await running.done;
    expect(done.code, done.stderr).toBe(0);
    expect(attemptsOf(run)).toMatchObject([
      { exit_reason: 'env_died', exit_class: 'infra' },
      { exit_reason: 'submitted', exit_class: 'agent' },
    ]);
    expect(outcomesOf(run)).toEqual(['resolved']);
    await expect.poll(podNames).toEqual([]);
  });

  test('one whose streams break with the API server runs again, and that uses up no attempt', async () => {
    const { held, before } = holdFirst();
    await using provider = await startFakeProvider([], before);
    const run = line(provider.url, `${ASK} 1 {{model}} && ${solve(ID)}`, { run: { retry: { attempts: 1 } } });
    const running = run.start();
    await Promise.race([held, running.done.then(({ stderr }) => Promise.reject(new Error(stderr)))]);
    clusterScript('api', 'stop');
    clusterScript('api', 'start');
    const done = await running.done;
    expect(done.code, done.stderr).toBe(0);
    expect(run.query('SELECT exit_class, exit_detail FROM attempts ORDER BY id')).toMatchObject([
      { exit_class: 'infra', exit_detail: 'daemon_lost' },
      { exit_class: 'agent' },
    ]);
    expect(outcomesOf(run)).toEqual(['resolved']);
    await expect.poll(podNames).toEqual([]);
  });

  /** Resolves when the pod of the grading works. */
  async function gradingBegins(run: ReturnType<typeof bench>): Promise<void> {
    await expect
      .poll(() => kubectl('get', 'pods', '-l', `swebatch/run=${run.id}`, '-o', 'json'), {
        interval: 200,
        timeout: 60_000,
      })
      .toMatch(/"swebatch.attempt": "grade-[\s\S]*"phase": "Running"/);
  }
  const AWAY_MS = 20_000;

  test('one whose grading meets an API server that is away for 20 s is graded, and no pod is left', async () => {
    await using provider = await startFakeProvider([]);
    const run = line(provider.url, `${ASK} 1 {{model}} && ${solve(ID)}`, { run: { retry: { attempts: 1 } } });
    const running = run.start();
    await gradingBegins(run);
    clusterScript('api', 'stop');
    await sleep(AWAY_MS);
    clusterScript('api', 'start');
    const done = await running.done;
    expect(done.code, done.stderr).toBe(0);
    expect(outcomesOf(run)).toEqual(['resolved']);
    await expect.poll(podNames).toEqual([]);
  });

  test('one that is killed while the API server is away leaves pods, and clean finds and removes them', async () => {
    await using provider = await startFakeProvider([]);
    const run = line(provider.url, `${ASK} 1 {{model}} && ${solve(ID)}`);
    const running = run.start();
    await gradingBegins(run);
    clusterScript('api', 'stop');
    running.process.kill('SIGKILL');
    await running.done;
    clusterScript('api', 'start');
    await expect.poll(() => podNames().length).toBeGreaterThan(0);
    const cleaned = await run.clean();
    expect(cleaned.code, cleaned.stderr).toBe(0);
    await expect.poll(podNames).toEqual([]);
  });

  test.each([
    ['steps', `${ASK} 100000 {{model}}`, { step_limit: 2 }, 'limit_steps'],
    [
      'time',
      '(setsid sleep 1000 &) ; trap "" TERM INT; while :; do sleep 1; done',
      { wall_time_limit_seconds: 3 },
      'limit_wall_time',
    ],
  ])(
    'one that ignores its limit of %s is ended, and its work is captured',
    async (_, command, limit, reason) => {
      await using provider = await startFakeProvider([]);
      const run = line(provider.url, `echo two > new.txt; ${command}`, { agent: limit, grading: false });
      const done = await run.run();
      expect(done.code, done.stderr).toBe(0);
      const [attempt] = attemptsOf(run);
      expect(attempt).toMatchObject({ exit_reason: reason, exit_class: 'limit' });
      expect(attempt?.model_patch).toContain('+two');
      await expect.poll(podNames).toEqual([]);
    },
  );

  test('one whose run is killed in the middle of a call works again at resume, and no pod is left', async () => {
    const { held, before } = holdFirst();
    await using provider = await startFakeProvider([], before);
    const run = line(provider.url, `${ASK} 1 {{model}} && ${solve(ID)}`);
    const running = run.start();
    await Promise.race([held, running.done.then(({ stderr }) => Promise.reject(new Error(stderr)))]);
    running.process.kill('SIGKILL');
    await running.done;
    const resumed = await run.resume();
    expect(resumed.code, resumed.stderr).toBe(0);
    expect(attemptsOf(run).map(({ exit_reason }) => exit_reason)).toEqual(['orchestrator_lost', 'submitted']);
    expect(outcomesOf(run)).toEqual(['resolved']);
    await expect.poll(podNames).toEqual([]);
  });
});
