// Tests that ask a model, and variables of this machine: what they get, what it costs, and where nothing of it stands.
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import Database from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import { type FakeProvider, startFakeProvider } from '../../support/agents/playedProvider.ts';
import { cli, tempDir } from '../../support/cli.ts';
import { dockerAvailable } from '../../support/docker.ts';
import { BASE_IMAGE } from '../../support/dockerEnvironment.ts';
import { harborTask } from '../../support/kinds/harborTask.ts';

const available = await dockerAvailable();
const KEY = 'sk-judge-7f3a9c2e51d84b06a1c0ffee';
const SECRET = 'tok_9Zq4Lm27Rw81Xc55Vb30';

const toml = (more: string) => `schema_version = "1.3"
[environment]
network_mode = "no-network"
[agent]
timeout_sec = 60
[verifier]
timeout_sec = 120
${more}`;
const WANTS_JUDGE = `[verifier.env]
OPENAI_API_KEY = "\${OPENAI_API_KEY}"
OPENAI_BASE_URL = "\${OPENAI_BASE_URL:-https://api.openai.com/v1}"
`;
const DOCKERFILE = `FROM ${BASE_IMAGE}\nRUN mkdir -p /work\nWORKDIR /work\n`;
const SOLVE =
  '#!/bin/bash\necho 42 > answer\nenv > seen\ntr "\\0" "\\n" < /proc/1/environ >> seen\necho "listening $(cat /proc/net/tcp /proc/net/tcp6 | grep -c " 0A ")" >> seen\n';
/** One request for each of its questions; a verifier that takes every failure for a no. */
const asking = (...questions: string[]) => `#!/bin/bash
cat seen; echo; env | sort
python3 - <<'E' > /logs/verifier/reward.txt
import json, os
from urllib.request import Request, urlopen
def ask(text):
    body = {"model": "gpt-4o", "messages": [{"role": "user", "content": text}]}
    head = {"authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "content-type": "application/json"}
    url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
    return json.load(urlopen(Request(url, json.dumps(body).encode(), head), timeout=60))["choices"][0]["message"]["content"]
good = True
for question in ${JSON.stringify(questions)}:
    try:
        good = ask(question + open("answer").read()) == "yes" and good
    except Exception:
        good = False
print(int(good))
E
`;

const answer = (response: ServerResponse, content: string) => {
  const choices = [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }];
  const usage = { prompt_tokens: 1000, completion_tokens: 50, total_tokens: 1050 };
  const body = { id: 'c', object: 'chat.completion', created: 1, model: 'judge-1', choices, usage };
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  return true;
};

const asked = (provider: FakeProvider) =>
  provider.requests.map(({ body }) => (body.messages as { content: string }[])[0]!.content.trim());

function configOf(dir: string, provider: FakeProvider): string {
  const path = join(dir, 'suite.yaml');
  const judge = {
    ...{ model_name: 'judge-1', base_url: `${provider.url}/v1`, prices: { input: 1, output: 2 } },
    ...{ api_key_env: 'JUDGE_KEY', retry: { max_retries: 0, max_retry_after_s: 0 } },
  };
  writeFileSync(path, JSON.stringify({ suite: { judge } }));
  return path;
}

function rows(out: string, sql: string): Record<string, unknown>[] {
  const db = new Database(join(out, 'swebatch.db'), { readonly: true });
  try {
    return db.prepare(sql).all() as Record<string, unknown>[];
  } finally {
    db.close();
  }
}
const verdicts = (out: string) =>
  rows(out, 'SELECT outcome, reward, infra_reason FROM evaluations ORDER BY id');
const unpacked = (bytes: unknown) => gunzipSync(bytes as Buffer).toString('utf8');

/** Every file of the results, and what is packed in the record. */
function everything(out: string): string {
  const files = readdirSync(out, { recursive: true, encoding: 'utf8' })
    .map((name) => join(out, name))
    .filter((path) => statSync(path).isFile());
  return [
    ...files.map((path) => readFileSync(path, 'latin1')),
    ...rows(out, 'SELECT log FROM evaluations WHERE log IS NOT NULL').map(({ log }) => unpacked(log)),
    ...rows(out, 'SELECT request FROM judge_calls').map(({ request }) => unpacked(request)),
    ...rows(out, 'SELECT response FROM judge_calls').map(({ response }) => unpacked(response)),
  ].join('\n');
}

const oracle = ['-c', 'agent.agent_class=oracle', '--run-id', 'o', '--evaluate'];
const env = { JUDGE_KEY: KEY };

describe.skipIf(!available)('tests that ask a model', () => {
  const judged = (dir: string) => {
    harborTask(join(dir, 'tasks'), 'judged', {
      'task.toml': toml(WANTS_JUDGE),
      'environment/Dockerfile': DOCKERFILE,
      'solution/solve.sh': SOLVE,
      'tests/test.sh': asking('Is it right?', 'Is it short?'),
    });
    return ['--subset', join(dir, 'tasks'), '-o', join(dir, 'out')];
  };

  test('ask it by way of the gateway: metered as grading, and the key is in no container and no file', async () => {
    await using provider = await startFakeProvider([], (_seen, response) => answer(response, 'yes'));
    const dir = tempDir('judge-');
    const out = join(dir, 'out');
    const run = await cli(['run', ...judged(dir), '-c', configOf(dir, provider), ...oracle], { env });
    expect(run.stdout + run.stderr).toMatch(/judged graded resolved/);
    expect(asked(provider)).toEqual(['Is it right?42', 'Is it short?42']);
    expect(provider.requests.map(({ headers, body }) => [headers.authorization, body.model])).toEqual(
      Array(2).fill([`Bearer ${KEY}`, 'judge-1']),
    );
    expect(rows(out, 'SELECT label, state, cost_nano FROM model_calls')).toEqual(
      Array(2).fill({ label: 'grading', state: 'ok', cost_nano: 1_100_000 }),
    );
    expect(everything(out)).not.toContain(KEY);
    // What the agent saw is above what the tests saw.
    const [seen, own] = unpacked(rows(out, 'SELECT log FROM evaluations')[0]!.log).split(
      /^ANTHROPIC_BASE_URL=/m,
    );
    expect(seen).not.toMatch(/OPENAI|swebatch-/);
    expect(seen).toMatch(/^listening 0$/m);
    expect(own).toMatch(/^OPENAI_API_KEY=swebatch-\S{32}$/m);
    const shown = await cli(['show', 'o', 'judged', '-o', out]);
    expect(shown.stdout).toMatch(/grading: 2 calls of judge-1, \$0\.0022/);
    const all = await cli(['show', 'o', '-o', out]);
    expect(all.stdout).toMatch(/cost +\$0\.0022/);
    const verified = await cli(['verify', 'o', '-o', out]);
    expect(verified.code, verified.stdout).toBe(0);
  });

  test('an outage is infra of the grading and never a zero, and what was answered is not asked again', async () => {
    let away = true;
    await using provider = await startFakeProvider([], ({ body }, response) => {
      if (!away || !JSON.stringify(body).includes('short')) return answer(response, 'yes');
      response.writeHead(503, { 'content-type': 'application/json' });
      response.end('{"error":{"message":"overloaded"}}');
      return true;
    });
    const dir = tempDir('judge-');
    const out = join(dir, 'out');
    const run = await cli(['run', ...judged(dir), '-c', configOf(dir, provider), ...oracle], { env });
    expect(run.stdout + run.stderr).toMatch(/the judge judge-1 could not be asked/);
    expect(verdicts(out)).toEqual([{ outcome: 'infra', reward: null, infra_reason: 'judge_unavailable' }]);
    // It was tried once more, alone.
    expect(asked(provider).toSorted()).toEqual(['Is it right?42', 'Is it short?42', 'Is it short?42']);
    away = false;
    const later = await cli(['evaluate', 'o', '-o', out], { env });
    expect(later.code, later.stderr).toBe(0);
    expect(verdicts(out).at(-1)).toEqual({ outcome: 'resolved', reward: 1, infra_reason: null });
    expect(asked(provider).filter((one) => one.includes('right'))).toHaveLength(1);
  });

  test('an answer is given again from the record when the same work is graded again and the provider is away', async () => {
    const provider = await startFakeProvider([], (_seen, response) => answer(response, 'yes'));
    const dir = tempDir('judge-');
    const out = join(dir, 'out');
    const of = judged(dir);
    const preds = join(dir, 'preds.json');
    const model_patch =
      'diff --git a/answer b/answer\nnew file mode 100644\n--- /dev/null\n+++ b/answer\n@@ -0,0 +1 @@\n+42\n';
    writeFileSync(preds, JSON.stringify([{ instance_id: 'judged', model_name_or_path: 'm', model_patch }]));
    const ungiven = await cli(['evaluate', preds, ...of, '--run-id', 'none'], { env });
    expect(ungiven.stdout + ungiven.stderr).toMatch(
      /it wants \$OPENAI_API_KEY of this machine, which nobody gives it/,
    );
    const again = ['evaluate', preds, ...of, '--run-id', 'p', '--again', '-c', configOf(dir, provider)];
    await cli(again, { env });
    expect(provider.requests).toHaveLength(2);
    await provider[Symbol.asyncDispose]();
    await cli(again, { env });
    expect(verdicts(out).slice(-2)).toEqual(
      Array(2).fill({ outcome: 'resolved', reward: 1, infra_reason: null }),
    );
    expect(rows(out, 'SELECT count(*) AS n FROM model_calls')).toEqual([{ n: 2 }]);
  });

  test('a budget that is used up is no zero either', async () => {
    await using provider = await startFakeProvider([], (_seen, response) => answer(response, 'yes'));
    const dir = tempDir('judge-');
    const out = join(dir, 'out');
    const of = ['run', ...judged(dir), '-c', configOf(dir, provider), '-c', 'run.cost_limit=0.00000001'];
    await cli([...of, ...oracle], { env });
    expect(provider.requests).toEqual([]);
    expect(rows(out, 'SELECT outcome, infra_reason, error_message FROM evaluations')).toEqual([
      {
        outcome: 'infra',
        infra_reason: 'judge_unavailable',
        error_message: expect.stringContaining('the run budget of'),
      },
    ]);
  });

  test('ask it also beside what the agent left running', async () => {
    await using provider = await startFakeProvider([], (_seen, response) => answer(response, 'yes'));
    const dir = tempDir('judge-');
    const out = join(dir, 'out');
    harborTask(join(dir, 'tasks'), 'serves', {
      'task.toml': toml(WANTS_JUDGE),
      'environment/Dockerfile': DOCKERFILE,
      'solution/solve.sh': `${SOLVE}setsid python3 -m http.server 8080 >/dev/null 2>&1 &\nsleep 0\n`,
      'tests/test.sh': asking('Is it right?').replace(
        'good = True',
        'good = urlopen("http://127.0.0.1:8080/answer").read() == b"42\\n"',
      ),
    });
    const of = ['run', '--subset', join(dir, 'tasks'), '-o', out, '-c', configOf(dir, provider)];
    await cli([...of, ...oracle], { env });
    expect(rows(out, 'SELECT outcome, resolved_strict, suspicion FROM evaluations')).toEqual([
      { outcome: 'resolved', resolved_strict: 1, suspicion: expect.stringContaining('"ran_beside"') },
    ]);
    expect(provider.requests).toHaveLength(1);
  });

  test('ask it in the protocol that they speak, in a container of their own', async () => {
    await using provider = await startFakeProvider([], (_seen, response) => answer(response, 'yes'));
    const dir = tempDir('judge-');
    const out = join(dir, 'out');
    harborTask(join(dir, 'tasks'), 'apart', {
      'task.toml': `artifacts = ["/work/answer"]\n${toml(`environment_mode = "separate"
[verifier.environment]
network_mode = "no-network"
env = { ANTHROPIC_API_KEY = "\${ANTHROPIC_API_KEY}" }
`)}`,
      'environment/Dockerfile': DOCKERFILE,
      'solution/solve.sh': SOLVE,
      'tests/Dockerfile': `FROM ${BASE_IMAGE}\nCOPY test.sh /tests/test.sh\nRUN chmod +x /tests/test.sh\n`,
      'tests/test.sh': `#!/bin/bash
python3 - <<'E' > /logs/verifier/reward.txt
import json, os
from urllib.request import Request, urlopen
body = {"model": "claude-x", "max_tokens": 9, "messages": [{"role": "user", "content": "Is it right?" + open("/work/answer").read()}]}
head = {"x-api-key": os.environ["ANTHROPIC_API_KEY"], "anthropic-version": "2023-06-01", "content-type": "application/json"}
said = json.load(urlopen(Request(os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages", json.dumps(body).encode(), head), timeout=60))
print(int(said["content"][0]["text"] == "yes"))
E
`,
    });
    const of = ['run', '--subset', join(dir, 'tasks'), '-o', out, '-c', configOf(dir, provider)];
    await cli([...of, ...oracle], { env });
    expect(rows(out, 'SELECT outcome, suspicion, error_message FROM evaluations')).toEqual([
      { outcome: 'resolved', suspicion: expect.stringContaining('"judge_other_model"'), error_message: null },
    ]);
    expect(provider.requests.map(({ path }) => path)).toEqual(['/v1/chat/completions']);
  });

  test('without one a task whose tests want it is refused, with what to write', async () => {
    const dir = tempDir('judge-');
    const run = await cli(['run', ...judged(dir), ...oracle], { env });
    expect(run.code).toBe(2);
    expect(run.stderr).toMatch(
      /verifier\.env\.OPENAI_API_KEY wants \$OPENAI_API_KEY.*suite\.judge\.model_name=NAME/,
    );
  });
});

describe.skipIf(!available)('a variable of this machine', () => {
  test('refuses the task by its name; where it is allowed it reaches the tests alone, and no file', async () => {
    const dir = tempDir('judge-');
    const tasks = join(dir, 'tasks');
    harborTask(tasks, 'wants', {
      'task.toml': toml(`[verifier.env]\nTOKEN = "\${GRADER_TOKEN}"\nMODE = "\${GRADER_MODE:-plain}"\n`),
      'environment/Dockerfile': DOCKERFILE,
      'solution/solve.sh': SOLVE,
      'tests/test.sh': `#!/bin/bash
cat seen; echo "token $TOKEN mode $MODE"
[ "$TOKEN" = "$(printf '${SECRET.slice(0, 9)}%s' '${SECRET.slice(9)}')" ] && ! grep -q TOKEN seen
echo $((1-$?)) > /logs/verifier/reward.txt
`,
    });
    const out = join(dir, 'out');
    const of = ['run', '--subset', tasks, '-o', out, ...oracle];
    const refused = await cli(of, { env: { GRADER_TOKEN: SECRET } });
    expect(refused.code).toBe(2);
    expect(refused.stderr).toMatch(
      /wants: verifier\.env\.TOKEN wants \$GRADER_TOKEN of this machine: allow it with suite\.env=GRADER_TOKEN/,
    );
    const allowed = ['-c', 'suite.env=GRADER_TOKEN'];
    const unset = await cli([...of, ...allowed]);
    expect(unset.stderr).toMatch(/\$GRADER_TOKEN, which suite\.env allows and which is not set/);
    const run = await cli([...of, ...allowed], { env: { GRADER_TOKEN: SECRET } });
    expect(run.stdout + run.stderr).toMatch(/wants graded resolved/);
    const text = everything(out);
    expect(text).toContain('mode plain');
    expect(text).not.toContain(SECRET);
  });

  test('of the environment reaches the agent, and is in no patch, output or file', async () => {
    const dir = tempDir('judge-');
    const tasks = join(dir, 'tasks');
    harborTask(tasks, 'given', {
      'task.toml': toml('').replace('[agent]', `[environment.env]\nTOKEN = "\${GRADER_TOKEN}"\n[agent]`),
      'environment/Dockerfile': DOCKERFILE,
      'solution/solve.sh': '#!/bin/bash\nenv > seen\nenv\n',
      'tests/test.sh': '#!/bin/bash\ncat seen; grep -c "^TOKEN=tok" seen > /logs/verifier/reward.txt\n',
    });
    const out = join(dir, 'out');
    const of = ['run', '--subset', tasks, '-o', out, ...oracle, '-c', 'suite.env=GRADER_TOKEN'];
    const run = await cli(of, { env: { GRADER_TOKEN: SECRET } });
    expect(run.stdout + run.stderr).toMatch(/given graded resolved/);
    expect(everything(out)).not.toContain(SECRET);
  });
});
