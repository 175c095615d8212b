// The record of a run whose agent is a program: shown, exported, imported, compared and verified, without secrets, and played again with
// the provider off to the same patch.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { agentBench, REAL_KEY } from '../support/agents/agentBench.ts';
import { startFakeProvider } from '../support/agents/playedProvider.ts';
import { cli } from '../support/cli.ts';
import { dockerAvailable } from '../support/docker.ts';
import { harborModels } from '../support/python/harborModels.ts';

const available = await dockerAvailable();
const ID = 'swebatch__tabular-23';

/** A title, two turns of its own, and a sub-agent between them; every request holds what is new in each run of it. */
const PROGRAM = `python3 -c '
import json, os, sys, time, urllib.request, uuid
def ask(messages, tools=True, stream=False, **headers):
    body = {"model": sys.argv[1], "messages": messages, "stream": stream, "user": str(uuid.uuid4())}
    if tools: body["tools"] = [{"type": "function", "function": {"name": "bash", "parameters": {}}}]
    request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", json.dumps(body).encode(), {"authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "content-type": "application/json", **headers})
    with urllib.request.urlopen(request) as answer: return answer.read().decode()
task = {"role": "user", "content": "solve it, session %s, started %f" % (uuid.uuid4(), time.time())}
ask([{"role": "user", "content": "name it"}], tools=False)
call = json.loads(ask([task]))["choices"][0]["message"]
ask([{"role": "user", "content": "look into a.py"}], **{"x-openai-subagent": "look"})
said = ask([task, call, {"role": "tool", "tool_call_id": call["tool_calls"][0]["id"], "content": "hi\\nin %f s" % time.time()}], stream=True)
open("answer.txt", "w").write(said)
print("last words", flush=True)
sys.exit(3)
' {{model}}`;

const filesUnder = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));

describe.skipIf(!available)('the record of a program (needs Docker)', () => {
  test('is whole, holds no secret, goes in and out, and leads to the same patch again', async (context) => {
    const turns = [{ tool: 'bash', args: { command: 'echo hi' } }, { say: 'It is done.' }];
    const provider = await startFakeProvider(turns, ({ body }, response) => {
      if (body.tools !== undefined) return false;
      // A provider that repeats its key: nothing of it may stay.
      const message = { role: 'assistant', content: `Your key is ${REAL_KEY}` };
      const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };
      response.writeHead(200, { 'content-type': 'application/json' }).end(
        JSON.stringify({
          id: 'x',
          model: 'fake-1',
          choices: [{ index: 0, message, finish_reason: 'stop' }],
          usage,
        }),
      );
      return true;
    });
    const agent = { agent_class: 'command', command: PROGRAM };
    const bench = agentBench({ ids: [ID], url: provider.url, dialect: 'chat', agent });
    const done = await bench.run();
    await provider[Symbol.asyncDispose]();
    expect(done.code, done.stderr).toBe(0);
    const verb = async (name: string, ...args: string[]) => {
      const result = await cli([name, ...args, '-o', bench.out]);
      expect(result.code, `${name}: ${result.stderr}`).toBe(0);
      return result.stdout;
    };

    const again = await bench.replay();
    expect(again.code, again.stderr).toBe(0);
    const attempts = bench.query<Record<string, unknown>>(
      'SELECT exit_reason, steps, model_patch, patch_sha256 FROM attempts ORDER BY id',
    );
    expect(attempts).toHaveLength(2);
    expect(attempts[0]).toMatchObject({ exit_reason: 'submitted', steps: 3 });
    expect(String(attempts[0]!.model_patch)).toContain('It is done.');
    expect(attempts[1]).toEqual(attempts[0]);
    const calls = (attempt: number) =>
      bench.query(
        `SELECT step, label, call, state, cost_nano, input_tokens FROM model_calls WHERE attempt_id = ${attempt} ORDER BY id`,
      );
    expect(calls(1)).toHaveLength(4);
    expect(calls(2)).toEqual(calls(1));
    expect(bench.query('SELECT call, label, thread, answer FROM program_calls WHERE attempt_id = 1')).toEqual(
      [
        { call: 0, label: 'title', thread: 'title', answer: 'whole' },
        { call: 1, label: null, thread: 'main', answer: 'whole' },
        { call: 2, label: 'subagent:look', thread: 'look', answer: 'whole' },
        { call: 3, label: null, thread: 'main', answer: 'whole' },
      ],
    );

    for (const run of [bench.id, `${bench.id}-again`]) await verb('verify', run);
    await verb('compare', bench.id, `${bench.id}-again`, '--instance', ID);
    const shown = await verb('show', bench.id, ID);
    expect(shown).toMatch(
      /conversations: main · 2 calls · \$[\d.]+; title · 1 call · \$[\d.]+; look \(subagent\) · 1 call/,
    );
    expect(shown).toMatch(/══ look \(subagent\)[^\n]*\n\n── user[^\n]*\nlook into a\.py/);
    expect(shown).toMatch(/── program · exit 3 ─+\nlast words/);

    await verb('export', bench.id, 'all');
    const [atif] = JSON.parse(await verb('export', bench.id, 'atif', '--json')).written as [string];
    const document = JSON.parse(readFileSync(atif, 'utf8')) as {
      subagent_trajectories: { trajectory_id: string }[];
    };
    expect(document.subagent_trajectories.map(({ trajectory_id }) => trajectory_id)).toEqual([
      'title',
      'look',
    ]);
    await verb('import', join(bench.out, bench.id), '--run-id', 'imported');
    await verb('verify', 'imported');
    await verb('compare', bench.id, 'imported', '--instance', ID);
    expect(bench.query('SELECT DISTINCT patch_sha256 FROM attempts')).toHaveLength(1);

    const blobs = bench.query<{ request: Buffer; response: Buffer }>(
      'SELECT request, response FROM program_calls',
    );
    const kept = [
      ...filesUnder(bench.out).map((path) => readFileSync(path, 'latin1')),
      ...blobs.flatMap(({ request, response }) =>
        [request, response].map((bytes) => gunzipSync(bytes).toString()),
      ),
    ].join('\n');
    expect(kept).toContain('Your key is ‹redacted:FAKE_KEY›');
    expect(kept).not.toContain(REAL_KEY);

    const models = await harborModels();
    if (typeof models === 'string') return context.skip(models);
    expect(models.judge([document])).toEqual([{ kept: document }]);
  });
});
