// Any shell line as an agent: limits, time, floods and the budget end it, and what it left in the tree is its patch.
import type { ServerResponse } from 'node:http';
import { describe, expect, test } from 'vitest';
import { agentBench } from '../support/agents/agentBench.ts';
import { startFakeProvider } from '../support/agents/playedProvider.ts';
import { docker, dockerAvailable } from '../support/docker.ts';

const available = await dockerAvailable();
const ID = 'swebatch__tabular-23';

const attempt =
  'SELECT exit_reason, exit_class, patch_source, steps, error_evidence, notes FROM attempts ORDER BY id';
interface Attempt {
  readonly exit_reason: string;
  readonly exit_class: string;
  readonly patch_source: string;
  readonly steps: number;
  readonly error_evidence: string;
}

describe.skipIf(!available)('a program that is an agent (needs Docker)', () => {
  /** Asks the model in chat's form, packed, as often as `$1` says, and takes every answer. */
  const ASK = `python3 -c '
import gzip, json, os, sys, urllib.request
for n in range(int(sys.argv[1])):
    body = {"model": sys.argv[2], "messages": [{"role": "user", "content": "turn %d" % n}], "tools": [{"type": "function", "function": {"name": "bash", "parameters": {}}}]}
    request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", gzip.compress(json.dumps(body).encode()), {"content-encoding": "gzip", "authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "content-type": "application/json"})
    try:
        urllib.request.urlopen(request).read()
        print("answered", flush=True)
    except urllib.error.HTTPError as error:
        print(error.code, flush=True)
'`;
  const script = (command: string, more: Record<string, unknown> = {}) => ({
    agent_class: 'command',
    command,
    ...more,
  });
  const play = async (agent: Record<string, unknown>, run: Record<string, unknown> = {}) => {
    const provider = await startFakeProvider([]);
    const bench = agentBench({ ids: [ID], url: provider.url, dialect: 'chat', agent, run });
    return { provider, bench };
  };
  const containers = async (run: string) =>
    (await docker.listContainers({ all: true })).filter(({ Labels }) => Labels['swebatch.run'] === run);

  test('gets SIGTERM when its time is over, and what it writes then is in its patch', async () => {
    const { provider, bench } = await play(
      script(
        `exec python3 -c '
import signal, sys, time
def end(*_):
    open("late.txt", "w").write("so far\\n")
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
while True: time.sleep(0.1)
'`,
        // Its start counts, and on a busy machine it takes seconds.
        { wall_time_limit_seconds: 8 },
      ),
    );
    await using _ = provider;
    const done = await bench.run();
    expect(done.code, done.stderr).toBe(0);
    const [ended] = bench.query<Attempt & { model_patch: string }>(
      'SELECT exit_reason, error_evidence, model_patch FROM attempts',
    );
    expect(ended!.exit_reason).toBe('limit_wall_time');
    expect(ended!.model_patch).toContain('+so far');
    expect(JSON.parse(ended!.error_evidence)).toMatchObject({ exit_code: 0 });
  });

  test('has its prompt, asks its model, and what it leaves in the tree is its patch', async () => {
    const { provider, bench } = await play(
      script(
        `mkdir .tool && echo done > .tool/tasks.json; grep -c issue {{prompt_file}}; ${ASK} 2 {{model}}; echo two > new.txt`,
        { beside_work: ['.tool'] },
      ),
    );
    await using _ = provider;
    const done = await bench.run();
    expect(done.code, done.stderr).toBe(0);
    expect(bench.query<Attempt>(attempt)).toMatchObject([{ exit_reason: 'submitted', steps: 2 }]);
    const [{ model_patch }] = bench.query<{ model_patch: string }>('SELECT model_patch FROM attempts') as [
      { model_patch: string },
    ];
    expect(model_patch).toContain('+two');
    expect(model_patch).not.toContain('tasks.json');
    expect(provider.requests).toHaveLength(2);
  });

  test('that only says that it is no longer maintained, and ends with 0, did not start', async () => {
    const { provider, bench } = await play(script('echo kimi is no longer maintained; exit 0'), {
      retry: { attempts: 1 },
    });
    await using _ = provider;
    const done = await bench.run();
    expect(done.code).toBe(3);
    const [ended] = bench.query<Attempt & { error_message: string }>('SELECT * FROM attempts');
    expect(ended).toMatchObject({ exit_reason: 'env_start_failed', exit_class: 'infra' });
    expect(ended!.error_message).toMatch(
      /exit code 0 and never asked a model .*model_optional.*: kimi is no longer/,
    );
  });

  test('that ignores its limit of steps is ended, and its work is captured', async () => {
    const { provider, bench } = await play(
      script(`echo two > new.txt; ${ASK} 100000 {{model}}`, { step_limit: 2 }),
    );
    await using _ = provider;
    const done = await bench.run();
    expect(done.code, done.stderr).toBe(0);
    expect(bench.query<Attempt>(attempt)).toMatchObject([
      { exit_reason: 'limit_steps', exit_class: 'limit', patch_source: 'captured_at_exit', steps: 2 },
    ]);
    expect(provider.requests).toHaveLength(2);
  });

  test('that never ends is killed at its time, with all that it started', async () => {
    const { provider, bench } = await play(
      script('echo two > new.txt; (setsid sleep 1000 &) ; trap "" TERM INT; while :; do sleep 1; done', {
        wall_time_limit_seconds: 3,
      }),
    );
    await using _ = provider;
    const done = await bench.run();
    expect(done.code, done.stderr).toBe(0);
    expect(bench.query<Attempt>(attempt)).toMatchObject([
      { exit_reason: 'limit_wall_time', exit_class: 'limit', patch_source: 'captured_at_exit' },
    ]);
    expect(await containers(bench.id)).toEqual([]);
  });

  test('that writes 100 MB is heard to its end, and its exit code and the end of its output are evidence', async () => {
    const { provider, bench } = await play(
      script(`${ASK} 1 {{model}}; head -c 100000000 /dev/zero | tr '\\0' x; echo last words; exit 3`),
    );
    await using _ = provider;
    const done = await bench.run();
    expect(done.code, done.stderr).toBe(0);
    const [ended] = bench.query<Attempt>(attempt);
    expect(ended).toMatchObject({ exit_reason: 'submitted', exit_class: 'agent' });
    const evidence = JSON.parse(ended!.error_evidence) as { output_end: string };
    expect(evidence).toMatchObject({ exit_code: 3, output_bytes: 100_000_020 });
    expect(evidence.output_end).toMatch(/xlast words$/);
  });

  test('is stopped by the budget of the run', async () => {
    const { provider, bench } = await play(script(`${ASK} 100000 {{model}}`), { cost_limit: 0.02 });
    await using _ = provider;
    await bench.run();
    expect(bench.query<Attempt>(attempt)).toMatchObject([
      { exit_reason: 'budget_stopped', exit_class: 'not_run' },
    ]);
    const [{ spent }] = bench.query<{ spent: number }>('SELECT sum(cost_nano) AS spent FROM model_calls') as [
      { spent: number },
    ];
    expect(spent).toBeLessThanOrEqual(20_000_000);
  });

  test('whose run dies in the middle of a call works again at resume, and nothing is left running', async () => {
    const held = Promise.withResolvers<void>();
    let first = true;
    await using provider = await startFakeProvider([], () => {
      const hold = first;
      first = false;
      if (hold) held.resolve();
      return hold;
    });
    const agent = script(`${ASK} 1 {{model}}; echo two > new.txt`);
    const bench = agentBench({ ids: [ID], url: provider.url, dialect: 'chat', agent });
    const running = bench.start();
    await held.promise;
    running.process.kill('SIGKILL');
    await running.done;
    const resumed = await bench.resume();
    expect(resumed.code, resumed.stderr).toBe(0);
    expect(bench.query<Attempt>(attempt).map(({ exit_reason }) => exit_reason)).toEqual([
      'orchestrator_lost',
      'submitted',
    ]);
    expect(await containers(bench.id)).toEqual([]);
  });

  test('that neither ends nor asks its model is stalled, and its work is captured', async () => {
    const { provider, bench } = await play(script('echo two > new.txt; sleep 1000'), {
      stall: { exec_s: 2 },
    });
    await using _ = provider;
    const done = await bench.run();
    expect(done.code, done.stderr).toBe(3);
    expect(bench.query<Attempt>(attempt)).toMatchObject([{ exit_reason: 'stalled', exit_class: 'infra' }]);
    expect(await containers(bench.id)).toEqual([]);
  });

  test('that is interrupted in the middle of a call goes on at resume, in every epoch', async () => {
    const held = Promise.withResolvers<ServerResponse>();
    let first = true;
    await using provider = await startFakeProvider([], (_seen, response) => {
      const hold = first;
      first = false;
      if (hold) held.resolve(response);
      return hold;
    });
    const agent = script(`${ASK} 1 {{model}}; echo two > new.txt`);
    const bench = agentBench({ ids: [ID], url: provider.url, dialect: 'chat', agent });
    const running = bench.start('--epochs', '2', '-w', '1');
    const response = await held.promise;
    running.process.kill('SIGINT');
    await running.said('Again: capture');
    running.process.kill('SIGINT');
    await running.said('Again: exit at once');
    response.destroy();
    expect((await running.done).code).toBe(130);
    const resumed = await bench.resume();
    expect(resumed.code, resumed.stderr).toBe(0);
    expect(bench.query<Attempt>(attempt).map(({ exit_reason }) => exit_reason)).toEqual([
      'cancelled',
      'submitted',
      'submitted',
    ]);
    expect(await containers(bench.id)).toEqual([]);
  });

  test('whose provider is down opens the breaker, and nothing more is started', async () => {
    await using provider = await startFakeProvider([], (_seen, response) => {
      response.writeHead(503).end('{"error":{"message":"down"}}');
      return true;
    });
    const ids = [ID, 'swebatch__tabular-25', 'swebatch__tabular-26'];
    const run = {
      breaker: { consecutive: 1, fraction: 0, empty_patches: 0, max_probes: 1, probe_after_s: 1 },
    };
    const agent = script(`${ASK} 1 {{model}}`);
    const bench = agentBench({ ids, url: provider.url, dialect: 'chat', agent, run });
    const done = await bench.run('-w', '1');
    expect(done.code, done.stderr).toBe(3);
    const reasons = bench.query<Attempt>(attempt).map(({ exit_reason }) => exit_reason);
    expect(new Set(reasons)).toEqual(new Set(['model_unavailable']));
    expect(reasons.length).toBeLessThan(ids.length);
  });

  test('works beside the built-in agent as an arm of one run, on one model, and its commands are judged alike', async () => {
    const command =
      'git log --all >/dev/null; echo two > new.txt; git add -A; echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; git diff --cached';
    await using provider = await startFakeProvider([{ tool: 'bash', args: { command } }]);
    const arms = [
      { name: 'mini', agent: { agent_class: 'default', protocol: 'tool-call' } },
      { name: 'line', agent: script(`${ASK} 1 {{model}}; echo two > new.txt`) },
    ];
    const bench = agentBench({ ids: [ID], url: provider.url, dialect: 'chat', agent: {}, arms });
    const done = await bench.run();
    expect(done.code, done.stderr).toBe(0);
    const trials = bench.query<{ name: string; exit_reason: string; model_patch: string; suspicion: string }>(
      'SELECT arms.name, exit_reason, model_patch, suspicion FROM attempts JOIN trials ON trials.id = trial_id JOIN arms ON arms.id = arm_id ORDER BY arms.id',
    );
    expect(trials.map(({ name, exit_reason }) => [name, exit_reason])).toEqual([
      ['mini', 'submitted'],
      ['line', 'submitted'],
    ]);
    for (const { model_patch } of trials) expect(model_patch).toMatch(/\+two\n$/);
    // The program never ran what the model called for, but the call is what is judged.
    expect(JSON.parse(trials[1]!.suspicion)).toEqual(JSON.parse(trials[0]!.suspicion));
    expect(JSON.parse(trials[0]!.suspicion)).not.toEqual([]);
  });
});
