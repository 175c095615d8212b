// Whole runs of installed agents in pods of a real cluster: they solve instances of the bundled dataset, and nothing of them has the key.
import { beforeAll, describe, expect, test } from 'vitest';
import { buildRelay } from '../../scripts/buildRelay.ts';
import {
  AGENTS,
  type AgentBenchOptions,
  addedFromNpm,
  agentBench,
  byInstance,
  REAL_KEY,
  solve,
} from '../support/agents/agentBench.ts';
import { startFakeProvider, type Turn } from '../support/agents/playedProvider.ts';
import { attemptsOf, filesWith } from '../support/agents/programFaults.ts';
import { docker } from '../support/docker.ts';
import { containersOfPod, kubectl, podNames } from './clusterTools.ts';

beforeAll(() => void buildRelay());

const ID = 'swebatch__tabular-23';
const OTHER = 'swebatch__cronwheel-25';
const codex = AGENTS.find(({ agent }) => agent === 'codex')!;
/** The key in pieces, because the command itself would be found. */
const LOOK = `grep -rlsE "${REAL_KEY.slice(0, 6)}[-]?${REAL_KEY.slice(6)}" /proc/[0-9]*/environ /proc/[0-9]*/cmdline /opt /var /tmp /root /home /etc /run /usr/local /testbed; env | grep -i proxy; ls -d /var/run/secrets/kubernetes.io; timeout 5 bash -c 'exec 3<>/dev/tcp/1.1.1.1/443' && echo outside; echo looked`;

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
/** Everything the cluster can tell: pods as they were made, and what their containers printed. */
const clusterSays = () =>
  [
    kubectl('get', 'pods', '-o', 'json'),
    kubectl('get', 'events', '-o', 'json'),
    ...podNames().map((pod) => kubectl('logs', pod, '--all-containers')),
  ].join('\n');

describe('an installed agent in pods', () => {
  test('Codex solves two instances, and neither pods, logs nor files have the key', async (context) => {
    const missing = await addedFromNpm(codex);
    if (missing) return context.skip(missing);
    const turns = (id: string): Turn[] => [codex.runs(LOOK), codex.runs(solve(id)), { say: 'Done.' }];
    let said = '';
    await using provider = await startFakeProvider(
      byInstance({ [ID]: turns(ID), [OTHER]: turns(OTHER) }),
      (_seen, _response, { results }) => {
        if (results === 2) said += clusterSays();
        return false;
      },
    );
    const run = bench({
      ...{ ids: [ID, OTHER], url: provider.url, dialect: codex.dialect, grading: true },
      agent: { agent_class: 'codex', wall_time_limit_seconds: 300 },
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
      expect(output.toString()).toMatch(/looked\n?$/);
      expect(output.toString()).not.toMatch(/environ|cmdline|outside|proxy=|^\/(?!bin\/bash)/m);
    }
    expect(said).toContain('swebatch-relay');
    expect(said).not.toContain(REAL_KEY);
    expect(JSON.stringify(provider.requests[0]!.headers)).toContain(REAL_KEY);
    expect(filesWith(run.out, REAL_KEY)).toEqual([]);
    await expect.poll(podNames).toEqual([]);
  });

  test('a line of a shell is an agent too, and is tried again when its relay is killed', async () => {
    const held = Promise.withResolvers<void>();
    let first = true;
    await using provider = await startFakeProvider([], () => {
      const hold = first;
      first = false;
      if (hold) held.resolve();
      return hold;
    });
    const ASK = `python3 -c '
import json, os, sys, urllib.request
body = {"model": sys.argv[1], "messages": [{"role": "user", "content": "turn"}], "tools": [{"type": "function", "function": {"name": "bash", "parameters": {}}}]}
request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", json.dumps(body).encode(), {"authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "content-type": "application/json"})
urllib.request.urlopen(request).read()
' {{model}}`;
    const run = bench({
      ...{ ids: [ID], url: provider.url, dialect: 'chat', grading: true },
      agent: { agent_class: 'command', command: `${ASK} && ${solve(ID)}` },
      run: { retry: { attempts: 2, backoff_s: 0 } },
    });
    const running = run.start();
    await Promise.race([held.promise, running.done.then(({ stderr }) => Promise.reject(new Error(stderr)))]);
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
});
